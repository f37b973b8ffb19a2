"""Child process of a stdio server: its own process group, its three pipes, and its end.

The process is asked to end by the end of its input, then by TERM, then by KILL, each after `PATIENCE_S`; the signals go
to its whole group, so that what it started ends with it.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from typing import Final, cast

from smg_node.mcp.definition import ServerDefinition

PATIENCE_S: Final = 2.0
_GIVEN: Final = ("HOME", "LANG", "PATH")
_POLL_S: Final = 0.02
_LOG_LINES_MAX: Final = 200
"""Lines of its error output that are logged in `_LOG_SPAN_S`; the others are counted."""
_LOG_SPAN_S: Final = 60.0
_LINE_CHARACTERS_MAX: Final = 500
_UNREAD_BYTES_MAX: Final = 64 << 20
"""A process that does not read its input is given no more than this."""
_log: Final = logging.getLogger("smg_node.mcp")


def environment_of(definition: ServerDefinition, own: Mapping[str, str]) -> dict[str, str]:
    """Return the variables a process gets: three of our own, and what its definition says."""
    return {**{name: own[name] for name in _GIVEN if name in own}, **definition.env}


class ChildProcess(asyncio.SubprocessProtocol):
    """One process. `on_output` is given what it prints, `on_end` is told once why it is of no use any more."""

    def __init__(
        self, name: str, on_output: Callable[[bytes], None], on_end: Callable[[str], None]
    ) -> None:
        self._name = name
        self._on_output = on_output
        self._on_end = on_end
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited = asyncio.Event()
        self._log_until_s = 0.0
        self._logged = 0

    async def start(self, definition: ServerDefinition) -> None:
        """Start it; OSError if it cannot be run."""
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self,
            definition.command,
            *definition.args,
            env=environment_of(definition, os.environ),
            cwd=definition.cwd or None,
            start_new_session=True,
        )

    def write(self, line: bytes) -> str:
        """Give it a line; return why that cannot be, "" if it can."""
        if self._transport is None or self._transport.is_closing() or self._exited.is_set():
            return "its process has ended"
        pipe = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        if pipe.is_closing():
            return "its process takes no input any more"
        if pipe.get_write_buffer_size() > _UNREAD_BYTES_MAX:
            return "its process does not read its input"
        pipe.write(line + b"\n")
        return ""

    async def end(self) -> None:
        """End it, and all of its group; returns when that has happened."""
        transport = self._transport
        if transport is None:
            return
        pid = transport.get_pid()
        pipe = transport.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()
        try:
            await self._wait_exit()
            for number in (signal.SIGTERM, signal.SIGKILL):
                if not _signal_group(pid, number):
                    break
                await self._wait_group(pid)
        finally:
            # Nothing of it is left behind, also where whoever ends it is itself cancelled.
            _signal_group(pid, signal.SIGKILL)
            transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """See asyncio."""
        if fd == 1:
            self._on_output(data)
        else:
            self._log(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """See asyncio."""
        if fd == 1:
            self._on_end("its process closed its output")

    def process_exited(self) -> None:
        """See asyncio."""
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio: the process has ended, and all of its output was read."""
        self._on_end("its process has ended")

    async def _wait_exit(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._exited.wait()
        except TimeoutError:
            pass  # The signal comes next.

    async def _wait_group(self, pid: int) -> None:
        """Wait until a group has no process left. The system tells of no other's end than the child's own."""
        for _ in range(round(PATIENCE_S / _POLL_S)):
            if not _signal_group(pid, 0):
                return
            await asyncio.sleep(_POLL_S)

    def _log(self, output: bytes) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._log_until_s:
            if self._logged > _LOG_LINES_MAX:
                _log.info("%s: %d more lines", self._name, self._logged - _LOG_LINES_MAX)
            self._log_until_s, self._logged = now_s + _LOG_SPAN_S, 0
        for line in output.splitlines():
            self._logged += 1
            if self._logged <= _LOG_LINES_MAX:
                text = line[:_LINE_CHARACTERS_MAX].decode("utf-8", "replace")
                _log.info("%s: %s", self._name, ascii(text)[1:-1])


def _signal_group(pid: int, number: int) -> bool:
    """Send a signal to a group; return whether there is one."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
