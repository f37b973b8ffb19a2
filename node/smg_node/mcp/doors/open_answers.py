"""Open answers of a door whose answers all come in one stream: who waits for which, and what else is heard there."""

import asyncio
from typing import NamedTuple

from smg_node.mcp.doors.door import OnChange, OnProgress
from smg_node.mcp.failures import lost
from smg_node.mcp.session.session import (
    Answered,
    Notification,
    Outcome,
    Progressed,
    Request,
    Session,
    ToolsChanged,
)
from smg_node.mcp.wire.messages import Message


class _Waiting(NamedTuple):
    answer: asyncio.Future[Outcome]
    on_progress: OnProgress


class OpenAnswers:
    """The requests of one door that are not answered. Replies to the server's own requests are handed to `replies`."""

    def __init__(self, on_change: OnChange) -> None:
        self.replies: list[Notification] = []
        self._session: Session | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._on_change = on_change

    def expect(
        self, session: Session, request: Request, on_progress: OnProgress
    ) -> asyncio.Future[Outcome]:
        """Return the answer to come of a request that is about to be sent."""
        self._session = session
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = _Waiting(answer, on_progress)
        return answer

    def forget(self, request: Request) -> None:
        """Wait for a request no more; its session may still say that it is cancelled."""
        self._waiting.pop(request.id, None)

    def hear(self, messages: list[Message]) -> None:
        """Take messages of the stream."""
        if self._session is None:
            return
        for message in messages:
            match self._session.heard(message):
                case Answered(id=id_, outcome=outcome):
                    self._answer(id_, outcome)
                case Progressed(id=id_) as progress:
                    if (waiting := self._waiting.get(id_)) is not None:
                        waiting.on_progress(progress)
                case ToolsChanged():
                    self._on_change()
                case Notification() as reply:
                    self.replies.append(reply)
                case None:
                    pass

    def lose(self, why: str) -> None:
        """Say to all who wait that no answer comes."""
        for id_ in list(self._waiting):
            self._answer(id_, lost(f"{why}; what was asked may have run", sent=True))

    def _answer(self, id_: str, outcome: Outcome) -> None:
        waiting = self._waiting.pop(id_, None)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(outcome)
