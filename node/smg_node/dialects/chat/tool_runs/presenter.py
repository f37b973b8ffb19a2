"""Presenter of Chat for requests that ask for tools on this node's side: runs are no calls of the client's.

They leave no trace but the time they take, unless the client asks to be shown them: then `smg.tool_runs` on the last
chunk, and in the body, tells of each what was called and what came of it. An answer that ends because its model has had
all its passes has the `finish_reason` `length`, as there is more to come; what tells it from one that was too long is
`smg.tool_rounds`, how many passes there were, on the chunk with the reason, and in the body.
"""

from collections.abc import Sequence
from typing import Any

from smg_node.core.generation.answer import Answer, Choice
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import BlockEnd, Event, Finish, Usage
from smg_node.dialects.chat.presenter import ChatPresenter
from smg_node.dialects.chat.tool_runs.client_events import (
    ClientEvents,
    annotations_of,
    client_choice,
)
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.frames import encode_json, json_line


class ServedPresenter(ChatPresenter):
    """Renders one generation of a request that asks for tools on this node's side."""

    def __init__(self, reading: ParsedBody[ChatView]) -> None:
        super().__init__(reading)
        view = self._view
        together = view.include_reasoning and not view.separate_reasoning
        self._content = ("text", "reasoning") if together else ("text",)
        self._events = ClientEvents(self._content)
        self._unfinished = reading.request.choices

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for what the client is shown of these events."""
        return b"".join(self._told(event) for event in self._events.feed(events))

    def around(self) -> FrameTemplate | None:
        """See `Presenter`; none while the first text of a block may be changed."""
        return None if self._events.waits(0) else super().around()

    def _told(self, event: Event) -> bytes:
        """Return the frames of an event; citations follow their text, and the last chunk tells of runs."""
        frames = super().frames((event,))
        if isinstance(event, BlockEnd):
            cited = annotations_of(event)
            if cited:
                frames += self._frame(event.choice, b'"annotations":' + json_line(cited))
            return frames
        told = self._told_beside(event)
        if told and frames:
            return frames.removesuffix(b"}\n\n") + b',"smg":' + json_line(told) + b"}\n\n"
        return frames

    def _told_beside(self, event: Event) -> dict[str, Any]:
        """Return what the chunk of an event tells of runs and rounds."""
        told: dict[str, Any] = {}
        if isinstance(event, Finish):
            self._unfinished -= 1
            if event.rounds:
                told["tool_rounds"] = event.rounds
        last = isinstance(event, Usage) if self._view.include_usage else isinstance(event, Finish)
        if self._view.tool_runs and last and not self._unfinished:
            told["tool_runs"] = self._events.runs()
        return told

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        choices = [client_choice(choice, self._content) for choice in answer.choices]
        shown = Answer(answer.begin, [choice for choice, _ in choices], answer.usage)
        body = super().answer(shown)
        told: dict[str, Any] = {}
        rounds = max((one.finish.rounds for one in answer.choices if one.finish), default=0)
        if rounds:
            told["tool_rounds"] = rounds
        if self._view.tool_runs:
            told["tool_runs"] = [run for _, some in choices for run in some]
        if not told:
            return body
        return body.removesuffix(b"}") + b',"smg":' + encode_json(told) + b"}"

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        shown = super()._choice(index, choice)
        cited = [one for block in choice.blocks for one in annotations_of(block)]
        if cited:
            shown["message"]["annotations"] = cited
        return shown
