"""Process family: all that a program of a test has started, found by a mark in their environment and their session.

A program is given the mark when it starts, and what it starts inherits it: children that are forked, that
execute something else, that begin a session of their own or whose parent is gone. A family is ended whole
by SIGKILL, since members may ignore anything else. A watcher process, one for each test process, ends
all families of a test process that was killed. Without /proc only the session is known.
"""

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

_RUN: Final = "SMG_TEST_RUN"
_FAMILY: Final = "SMG_TEST_FAMILY"
_GONE_S: Final = 30.0
_POLL_S: Final = 0.01
_numbers: Final = count(1)

# Waits for the end of its parent, by the end of its input, and kills whoever has the mark.
_WATCH: Final = """
import os, select, signal, sys, time
mark, parent = os.fsencode(sys.argv[1]), int(sys.argv[2])
while os.getppid() == parent and not select.select([0], [], [], 0.5)[0]:
    pass
for _ in range(200):
    found = False
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        try:
            if entry.isdigit() and mark in open(f"/proc/{entry}/environ", "rb").read().split(b"\\0"):
                os.kill(int(entry), signal.SIGKILL)
                found = True
        except OSError:
            continue
    if not found:
        break
    time.sleep(0.01)
"""


class Family:
    """All that one program has started; `mark` is for its environment."""

    def __init__(self) -> None:
        self.mark: Final[Mapping[str, str]] = {
            _RUN: watched_run(),
            _FAMILY: f"{os.getpid()}-{next(_numbers)}",
        }
        self._word = f"{_FAMILY}={self.mark[_FAMILY]}".encode()

    def members(self, session: int) -> list[int]:
        """Return the processes that have the mark, or belong to that session, and are no zombies."""
        found = (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))
        return [pid for pid in found if self._is_member(pid, session)]

    def end(self, session: int) -> None:
        """Kill all of them; AssertionError if some do not die, which means that they cannot."""
        give_up_s = time.monotonic() + _GONE_S
        # Where the program is gone, nothing may be left in its group.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(session, signal.SIGKILL)
        while left := self.members(session):
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            assert time.monotonic() < give_up_s, f"processes that do not die: {left}"
            time.sleep(_POLL_S)

    def _is_member(self, pid: int, session: int) -> bool:
        try:
            state, _, _, its = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
            if state == "Z":
                return False
            marks = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            return False
        except PermissionError:
            # Another user's: the programs of tests that become one bind their own to their life.
            return False
        return int(its) == session or self._word in marks


@cache
def watched_run() -> str:
    """Return the mark of this test process, whose families are ended when it is killed."""
    run = f"{os.getpid()}-{time.time_ns()}"
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WATCH, f"{_RUN}={run}", str(os.getpid())],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )

    def end() -> None:
        # What is still there now belongs to nobody any more.
        assert watcher.stdin is not None
        watcher.stdin.close()
        watcher.wait()

    atexit.register(end)
    return run
