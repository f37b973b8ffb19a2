"""Stdio door: a child process that reads requests and prints answers, one line of JSON each."""

import logging
from collections.abc import Callable
from typing import Final

from smg_node.mcp.definition import ServerDefinition
from smg_node.mcp.doors.child_process import ChildProcess
from smg_node.mcp.doors.door import Exchange, OnChange, OnProgress
from smg_node.mcp.doors.open_answers import OpenAnswers
from smg_node.mcp.failures import Failure, lost
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.session.session import Notification, Request, Session
from smg_node.mcp.wire.line_reader import LineReader

_NOISE_CHARACTERS: Final = 200
_log: Final = logging.getLogger("smg_node.mcp")


class StdioDoor:
    """Door to one process, after `open`; a process that ends or speaks nonsense closes it."""

    def __init__(
        self, definition: ServerDefinition, limits: McpLimits, on_change: OnChange
    ) -> None:
        self.closed = "not open"
        self._definition = definition
        self._open = OpenAnswers(on_change)
        self._lines = LineReader(limits.answer_bytes_max)
        self._child = ChildProcess(definition.name, self._take, self._ended)

    async def open(self) -> Failure | None:
        """Start the process; return why it cannot be run."""
        try:
            await self._child.start(self._definition)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "its command cannot be used"
            return lost(
                f"{self._definition.command[:200]} cannot be run: {why.lower()}", sent=False
            )
        self.closed = ""
        return None

    async def ask(self, session: Session, request: Request, on_progress: OnProgress) -> Exchange:
        """See `Door`."""
        if self.closed:
            session.close_request(request.id)
            return Exchange(lost(self.closed, sent=False))
        answer = self._open.expect(session, request, on_progress)
        try:
            if why := self._child.write(request.body):
                session.close_request(request.id)
                return Exchange(lost(why, sent=False))
            return Exchange(await answer)
        finally:
            self._open.forget(request)

    async def tell(self, session: Session, notification: Notification) -> Failure | None:
        """See `Door`."""
        why = self.closed or self._child.write(notification.body)
        return lost(why, sent=False) if why else None

    async def listen(self, session: Session, begun: Callable[[], None]) -> Failure | None:
        """See `Door`: all that the process says is heard anyway."""
        return None

    async def end(self, session: Session) -> None:
        """See `Door`: its end is that of the process."""

    async def close(self, session: Session | None) -> None:
        """See `Door`: the process and its children have ended when this returns."""
        self.closed = self.closed or "closed"
        await self._child.end()

    def _take(self, output: bytes) -> None:
        read = self._lines.feed(output)
        self._open.hear(read.messages)
        for reply in self._open.replies:
            self._child.write(reply.body)
        self._open.replies.clear()
        for line in read.noise:
            shown = line[:_NOISE_CHARACTERS].decode("utf-8", "replace")
            _log.info(
                "%s printed what is no message: %s", self._definition.name, ascii(shown)[1:-1]
            )
        if read.dead:
            self._ended(f"its process printed {read.dead}")

    def _ended(self, why: str) -> None:
        self.closed = self.closed or why
        self._open.lose(why)
