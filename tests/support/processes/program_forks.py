"""Programs of this project as forks of a process that has imported them: there in a tenth of the time.

Starting an interpreter and importing a node costs a core most of a second, a command half of one; tests start thousands.
Each test process has one server (`program_server`) for as long as it runs. Where the start itself is what is tested, or
how much memory a program has, it is run by itself: `running(..., forked=False)`.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PROGRAMS: Final = frozenset({"smg-node", "smg-admin", "smg-chaos"})
_TESTS: Final = Path(__file__).parents[2]
_START_S: Final = 300.0


@dataclass(slots=True)
class _Fork:
    """One fork: its exit status once it has ended."""

    pid: int
    ended: threading.Event
    status: int | None = None


class ForkedProgram:
    """A program that runs as a fork, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, fork: _Fork, words: Sequence[str]) -> None:
        self._fork = fork
        self._words = words

    @property
    def pid(self) -> int:
        """The process id."""
        return self._fork.pid

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._fork.status

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; subprocess.TimeoutExpired if it has not ended in time."""
        if not self._fork.ended.wait(timeout):
            raise subprocess.TimeoutExpired(self._words, timeout or 0.0)
        assert self._fork.status is not None
        return self._fork.status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return  # it has ended, and that is not told yet

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it now."""
        self.send_signal(signal.SIGKILL)


class ProgramServer:
    """The fork server of this test process; use `program_server`."""

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "support.processes.program_server"],
            cwd=_TESTS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._ordering = threading.Lock()
        self._changed = threading.Condition()
        self._started: list[_Fork] = []
        self._forks: dict[int, _Fork] = {}
        self._ready = threading.Event()
        self._gone = False
        threading.Thread(target=self._listen, name="program-server", daemon=True).start()
        atexit.register(self.close)
        if not self._ready.wait(_START_S) or self._gone:
            raise RuntimeError(
                "the fork server of the programs does not start; see its error above"
            )

    def start(
        self, words: Sequence[str], *, folder: Path, environment: Mapping[str, str], out: Path, err: Path
    ) -> ForkedProgram:  # fmt: skip
        """Start a program, whose path is the first word; its output goes to the files, which may be one."""
        path = Path(words[0])
        for file in (out, err):
            file.write_bytes(b"")
        order = {
            "program": path.name,
            "path": str(path),
            "words": list(words[1:]),
            "folder": str(folder.resolve()),
            "environment": dict(environment),
            "out": str(out.resolve()),
            "err": str(err.resolve()),
        }
        assert self._popen.stdin is not None
        with self._ordering:
            self._popen.stdin.write(json.dumps(order).encode() + b"\n")
            self._popen.stdin.flush()
            with self._changed:
                self._changed.wait_for(lambda: bool(self._started) or self._gone, _START_S)
                if not self._started:
                    raise RuntimeError("the fork server of the programs is gone")
                return ForkedProgram(self._started.pop(), words)

    def close(self) -> None:
        """End the server, and with it all that it started."""
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()

    def _listen(self) -> None:
        assert self._popen.stdout is not None
        try:
            for line in self._popen.stdout:
                self._hear(json.loads(line))
        except ValueError:
            pass  # closed while it was read
        with self._changed:
            self._gone = True
            self._changed.notify_all()
        self._ready.set()

    def _hear(self, answer: dict[str, int]) -> None:
        if "ready" in answer:
            self._ready.set()
            return
        with self._changed:
            if "started" in answer:
                pid = answer["started"]
                self._forks[pid] = _Fork(pid, threading.Event())
                self._started.append(self._forks[pid])
                self._changed.notify_all()
            else:
                fork = self._forks.pop(answer["ended"])
                fork.status = answer["status"]
                fork.ended.set()


@cache
def program_server() -> ProgramServer:
    """Return the fork server of this test process, which is started when the first program is."""
    return ProgramServer()


def is_forkable(command: Sequence[str]) -> bool:
    """Return whether a command is one of our programs, installed where this interpreter is."""
    path = Path(command[0])
    return path.name in PROGRAMS and path.parent == Path(sys.executable).parent
