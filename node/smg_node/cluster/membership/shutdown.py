"""Shutdown state of this node: serving, drained by an operator, or leaving, with its exit code.

A signal, an operator's command, or another process that keeps its name makes the node leave. The first
of them counts and decides the exit code; a signal after that hurries.
"""

import asyncio
import logging
import signal
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.app import Server
from smg_node.http.middleware.drain_phases import Phase

OK: Final = 0
SUPERSEDED: Final = 3
"""Of a process whose name another one keeps: a code of its own, so that a service is not started again."""
LEAVING_CODE: Final = "member_leaving"

_log = logging.getLogger("smg_node.cluster")


class Shutdown:
    """State of a node between serving and gone. The wiring sets `server` once there is one."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self.code = OK
        self.server: Server | None = None

    @property
    def leaving(self) -> bool:
        """Whether the node is leaving."""
        return self.wanted.is_set() or (
            self.server is not None and self.server.phase is not Phase.SERVING
        )

    @property
    def aside(self) -> bool:
        """Whether an operator set the node aside."""
        return self.server is not None and self.server.aside

    @property
    def draining(self) -> bool:
        """Whether the node wants no new work, for either reason."""
        return self.leaving or self.aside

    def set_aside(self, *, on: bool) -> None:
        """Take no new work, or take it again. CONFLICT once the node is leaving."""
        if self.leaving or self.server is None:
            raise SmgError(ErrorKind.CONFLICT, "this node is leaving", code=LEAVING_CODE)
        if on is not self.server.aside:
            _log.info("set aside: no new work" if on else "back: work is welcome again")
        self.server.set_aside(on=on)

    def leave(self, why: str, *, code: int = OK) -> None:
        """Begin to leave; does nothing if that has begun. `code` is what the process will exit with."""
        if not self.wanted.is_set():
            _log.info("%s: draining; a signal cuts what is left", why)
            self.code = code
            self.wanted.set()

    def signalled(self, number: signal.Signals) -> None:
        """Take a signal: the first one drains, another one hurries."""
        if not self.wanted.is_set():
            self.leave(number.name)
        elif self.server is not None:
            _log.warning("%s again: cutting what is left", number.name)
            self.server.hurry()
