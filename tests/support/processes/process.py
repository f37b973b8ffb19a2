"""Real processes for tests: started on a leash, watched through a log file, stopped by their own id.

A process started here dies with the test process, also when that one is killed: on Linux the kernel
sees to it (PR_SET_PDEATHSIG survives exec), elsewhere only `stop` does. All that it has started ends with
it (`process_family`), however it was stopped. Output goes to a file, so nothing ever blocks on a full pipe.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from support.processes.process_family import Family
from support.processes.program_forks import is_forkable, program_server

_POLL_S: Final = 0.02
_LOG_TAIL_LINES: Final = 40

# Runs first in the child. The parent may be gone before prctl took effect, so look once more.
_LEASH: Final = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("the test process is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""


class ProcessError(Exception):
    """A process that ended, or did not say in time what was waited for; carries the end of its log."""


class Started(Protocol):
    """A started program: the part of `subprocess.Popen` that is used."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Process:
    """One running process. Start it with `running`."""

    def __init__(self, popen: Started, name: str, log: Path, family: Family | None = None) -> None:
        self._popen = popen
        self._family = family
        self.name = name
        self.log = log

    @property
    def pid(self) -> int:
        """The process id, of the program itself."""
        return self._popen.pid

    def said(self) -> str:
        """Return everything it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def ended(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._popen.send_signal(number)

    def wait(self, timeout_s: float) -> int:
        """Return the exit status; ProcessError if it has not ended in time."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.error(f"has not ended within {timeout_s:.0f} s") from None

    def wait_until(self, true: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Return once `true()` holds; ProcessError if it ends first, or takes longer."""
        give_up_s = time.monotonic() + timeout_s
        while not true():
            if self.ended() is not None:
                raise self.error(f"ended with status {self.ended()} before it was {what}")
            if time.monotonic() > give_up_s:
                raise self.error(f"was not {what} within {timeout_s:.0f} s")
            time.sleep(_POLL_S)

    def wait_for(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Return the first match of `pattern` in its output; ProcessError if none comes in time."""
        expression = re.compile(pattern)
        found: list[re.Match[str]] = []

        def seen() -> bool:
            found.extend(match for match in [expression.search(self.said())] if match)
            return bool(found)

        self.wait_until(seen, f"saying {pattern!r}", timeout_s)
        return found[0]

    def kill(self) -> None:
        """Kill it and all that it has started, at once; none of them is there afterwards."""
        if self.ended() is None:
            self._popen.kill()
        self.stop(0)

    def stop(self, grace_s: float = 10.0) -> None:
        """End it: politely, and after `grace_s` by force; then all that it has started and left."""
        if self.ended() is None:
            self._popen.terminate()
            try:
                self._popen.wait(grace_s)
            except subprocess.TimeoutExpired:
                self._popen.kill()
        self._popen.wait()
        if self._family is not None:
            self._family.end(self.pid)

    def error(self, why: str) -> ProcessError:
        """Return an error about this process, with what it said last."""
        tail = "\n".join(self.said().splitlines()[-_LOG_TAIL_LINES:])
        return ProcessError(f"{self.name} (process {self.pid}) {why}; its output ends in:\n{tail}")


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    grace_s: float = 10.0,
    forked: bool = True,
) -> Iterator[Process]:
    """Run `command` inside `folder`, which is made and becomes its working folder, with its log.

    `environment` is added to this process's own. Our own programs are forks of a process that has imported them, unless
    that is not wanted (`forked`). On leaving, it is stopped with all that it has started.
    """
    family = Family()
    folder.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    log = folder / f"{Path(words[0]).name}.log"
    own = {**os.environ, **(environment or {}), **family.mark}
    started: Started
    if forked and is_forkable(words):
        started = program_server().start(words, folder=folder, environment=own, out=log, err=log)
    else:
        started = _started(words, folder, own, log)
    process = Process(started, Path(words[0]).name, log, family)
    try:
        yield process
    finally:
        process.stop(grace_s)


def _started(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
) -> Started:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", _LEASH, str(os.getpid()), *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tests, which then stop their processes
        )


@contextmanager
def reserved_port() -> Iterator[int]:
    """Keep a TCP port of 127.0.0.1 for one server that binds with SO_REUSEPORT, as gRPC's does.

    gRPC servers share a taken port in silence and calls are split between them. The kernel gives a
    port that is bound to nobody who asks for any free one, so as long as this socket is bound, and
    it never listens, the port is ours alone.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
