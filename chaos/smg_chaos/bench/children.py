"""Child processes of the benchmark: one session each, output in a file, always stopped."""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

_STOP_S: Final = 4.0
_LOG_TAIL: Final = 2000
_ANSWER_MAX: Final = 1 << 20


class BenchError(Exception):
    """A precondition of the benchmark is not met; the message says what to do."""


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface on which nothing listened a moment ago."""
    with ExitStack() as stack:
        ports = []
        for _ in range(count):
            probe = stack.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(int(probe.getsockname()[1]))
        return ports


@dataclass(frozen=True, slots=True)
class Child:
    """A running process. Signals of the terminal do not reach it: `stop` ends it."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """The process's id, which is also its session's."""
        return self.process.pid

    def died(self) -> str:
        """Return a description of its end, or nothing while it runs."""
        code = self.process.poll()
        return "" if code is None else f"{self.name} ended with code {code}\n{self.last_words()}"

    def last_words(self) -> str:
        """Return the end of its log."""
        try:
            content = self.log.read_bytes()[-_LOG_TAIL:].decode(errors="replace").strip()
        except OSError:
            content = ""
        return f"the end of {self.log}:\n{content}"

    def terminate(self) -> None:
        """Ask it to end."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    async def stop(self) -> None:
        """End it: SIGTERM first, then SIGKILL to everything it left behind in its session."""
        self.terminate()
        try:
            for _ in range(int(_STOP_S / 0.05)):
                if self.process.poll() is not None:
                    break
                await asyncio.sleep(0.05)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it now, and everything in its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()


def spawn(
    name: str,
    command: Sequence[str],
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    pipes: bool = False,
) -> Child:
    """Start a process; BenchError if there is no such program.

    With `pipes` its stdin and stdout are connected to the caller, which closes stdout after reading
    it.
    """
    end = subprocess.PIPE if pipes else None
    with log.open("wb") as output:
        words: int | IO[bytes] = subprocess.PIPE if pipes else output
        try:
            process = subprocess.Popen(
                command,
                stdin=end or subprocess.DEVNULL,
                stdout=words,
                stderr=output,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        except OSError as error:
            raise BenchError(f"{name} cannot be started: {error}") from error
    return Child(name, command, process, log)


async def fetch(
    host: str,
    port: int,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 5.0,
) -> tuple[int, bytes]:
    """Return status and body of one HTTP request; OSError if no answer comes in time."""
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n"
        f"content-type: application/json\r\n{more}content-length: {len(body)}\r\n\r\n"
    )
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(head.encode() + body)
            answer = b""
            while piece := await reader.read(65536):
                answer += piece
                if len(answer) > _ANSWER_MAX:
                    raise OSError("the answer does not end")
        finally:
            writer.close()
    head_bytes, _, content = answer.partition(b"\r\n\r\n")
    status = head_bytes[9:12]
    if not status.isdigit():
        raise OSError(f"no HTTP answer: {answer[:100]!r}")
    return int(status), content
