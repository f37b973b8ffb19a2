"""Look at a file or a program: the door of the file source. Bytes, or why there are none."""

import asyncio
import os
import signal
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from smg_node.config.schema.problems import printable
from smg_node.discovery.file.descendants import MARK, end_descendants, new_mark

BYTES_MAX: Final = 16 << 20
Signature: TypeAlias = tuple[int, int, int, int]
"""When a file changed last, in ns; its size; its inode, and the device that has it. Through links."""
_STDERR_MAX: Final = 4096
_LINE_MAX: Final = 200
_GONE_S: Final = 2.0


class LookError(Exception):
    """There is nothing to read; the message says why."""


class Read(NamedTuple):
    """Bytes of a file, and its signature when they were read."""

    raw: bytes
    signature: Signature


def signature_of(path: str) -> Signature:
    """Return a file's signature; LookError if it is not there."""
    try:
        return _signature(os.stat(path))
    except (OSError, ValueError) as error:
        raise LookError(_why(error)) from None


def read_file(path: str) -> Read:
    """Return a file's bytes; LookError if it cannot be read, is no plain file, is too large, or changes meanwhile."""
    try:
        # Opening a pipe would wait for whoever writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise LookError("it is no plain file")
            if before.st_size > BYTES_MAX:
                raise LookError(f"it is larger than {BYTES_MAX >> 20} MiB")
            with open(descriptor, "rb", closefd=False) as file:
                raw = file.read(BYTES_MAX + 1)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise LookError(_why(error)) from None
    if _signature(before) != _signature(after) or len(raw) != after.st_size:
        raise LookError("it changes while it is read")
    return Read(raw, _signature(after))


async def run_program(command: Sequence[str], *, timeout_s: float) -> bytes:
    """Return what a program prints; LookError if it cannot be run, fails, prints too much, or takes too long.

    What it has started ends with it: its process group at once, and then whatever carries its mark.
    """
    loop = asyncio.get_running_loop()
    program, mark = _Program(loop.create_future()), new_mark()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: program,
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, MARK: mark},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise LookError(f"it cannot be run: {_why(error)}") from None
    try:
        async with asyncio.timeout(timeout_s):
            await program.ended
    except TimeoutError:
        why = f"it takes longer than {timeout_s:g} s{_line(program.errors)}"
        raise LookError(why) from None
    finally:
        _end(transport.get_pid())
        transport.close()
        await program.gone()
        # In a thread: on a machine with thousands of processes it takes tens of milliseconds.
        await asyncio.to_thread(end_descendants, mark)
    status = transport.get_returncode()
    if status:
        raise LookError(f"it ended with {_status(status)}{_line(program.errors)}")
    return bytes(program.output)


class _Program(asyncio.SubprocessProtocol):
    """A running program: what it printed so far, and the last of what it said about errors."""

    def __init__(self, ended: asyncio.Future[None]) -> None:
        self.ended = ended
        """Done when it has ended and all is read; LookError if it printed too much."""
        self.output = bytearray()
        self.errors = bytearray()
        self._exited = asyncio.Event()

    async def gone(self) -> None:
        """Wait until the system has no process any more that was killed; not for ever, as a disk may hold one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GONE_S):
                await self._exited.wait()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """See asyncio."""
        if fd == 2:
            self.errors += data
            del self.errors[:-_STDERR_MAX]
        elif len(self.output) <= BYTES_MAX:
            self.output += data
            if len(self.output) > BYTES_MAX and not self.ended.done():
                self.ended.set_exception(LookError(f"it prints more than {BYTES_MAX >> 20} MiB"))

    def process_exited(self) -> None:
        """See asyncio."""
        self._exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio: it has ended, and all of its output was read."""
        if not self.ended.done():
            self.ended.set_result(None)


def _end(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # none of its group is left that is ours


def _status(code: int) -> str:
    return f"status {code}" if code > 0 else f"signal {-code}"


def _line(errors: bytes | bytearray) -> str:
    """Return the last line of a program's errors, behind a colon; "" if there is none."""
    lines = bytes(errors).decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f": {printable(last[:_LINE_MAX])}" if last else ""


def _signature(found: os.stat_result) -> Signature:
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return printable(str(error))[:_LINE_MAX]
