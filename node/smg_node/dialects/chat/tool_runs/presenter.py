"""Presenter of Chat for requests that ask for tools on this node's side: runs are no calls of the client's.

They leave no trace but the time they take, unless the client asks to be shown them: then `smg` on the last chunk, and in
the body, tells of each what was called and what came of it.
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
        if not self._view.tool_runs:
            return frames
        if isinstance(event, Finish):
            self._unfinished -= 1
        last = isinstance(event, Usage) if self._view.include_usage else isinstance(event, Finish)
        if last and not self._unfinished and frames:
            told = b',"smg":' + json_line({"tool_runs": self._events.runs()})
            return frames.removesuffix(b"}\n\n") + told + b"}\n\n"
        return frames

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        choices = [client_choice(choice, self._content) for choice in answer.choices]
        shown = Answer(answer.begin, [choice for choice, _ in choices], answer.usage)
        body = super().answer(shown)
        if not self._view.tool_runs:
            return body
        runs = [run for _, some in choices for run in some]
        return body.removesuffix(b"}") + b',"smg":' + encode_json({"tool_runs": runs}) + b"}"

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        shown = super()._choice(index, choice)
        cited = [one for block in choice.blocks for one in annotations_of(block)]
        if cited:
            shown["message"]["annotations"] = cited
        return shown
