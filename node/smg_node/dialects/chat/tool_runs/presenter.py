"""Presenter of Chat for requests that ask for tools on this node's side: runs are no calls of the client's.

They leave no trace but the time they take, unless the client asks to be shown them: then `smg` on the last chunk, and in
the body, tells of each what was called and what came of it.
"""

from collections.abc import Sequence

from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
from smg_node.core.generation.events import Event, Finish, Usage
from smg_node.dialects.chat.presenter import ChatPresenter
from smg_node.dialects.chat.tool_runs.client_events import ClientEvents, client_choice
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.frames import encode_json, json_line


class ServedPresenter(ChatPresenter):
    """Renders one generation of a request that asks for tools on this node's side."""

    def __init__(self, reading: ParsedBody[ChatView]) -> None:
        super().__init__(reading)
        self._events = ClientEvents()
        self._unfinished = reading.request.choices

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for what the client is shown of these events."""
        shown = self._events.feed(events)
        if not self._view.tool_runs:
            return super().frames(shown)
        return b"".join(self._told(event) for event in shown)

    def around(self) -> FrameTemplate | None:
        """See `Presenter`; none while the first text of a block may be changed."""
        return None if self._events.waits(0) else super().around()

    def _told(self, event: Event) -> bytes:
        """Return the frames of an event; the last chunk tells of runs."""
        frames = super().frames((event,))
        if isinstance(event, Finish):
            self._unfinished -= 1
        last = isinstance(event, Usage) if self._view.include_usage else isinstance(event, Finish)
        if last and not self._unfinished and frames:
            told = b',"smg":' + json_line({"tool_runs": self._events.runs()})
            return frames.removesuffix(b"}\n\n") + told + b"}\n\n"
        return frames

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        choices = [client_choice(choice) for choice in answer.choices]
        shown = Answer(answer.begin, [choice for choice, _ in choices], answer.usage)
        body = super().answer(shown)
        if not self._view.tool_runs:
            return body
        runs = [run for _, some in choices for run in some]
        return body.removesuffix(b"}") + b',"smg":' + encode_json({"tool_runs": runs}) + b"}"
