"""Descendants of a program: found by a mark in their environment, and ended with it.

A process group holds what a program starts only as long as nothing leaves the group, and `setsid` does. The environment is
handed on to every process, whatever else it does; so a program gets a word in it that no other has, and what carries that
word when the program is over is ended. Out of reach is who empties his environment on purpose, or becomes another user.

Linux only, by /proc. A process is held by a descriptor while it is looked at and ended: its number may be another's by then.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "_SMG_DISCOVERY_RUN"
"""Not one of the names that configure a node: the program may be one of ours."""
_PROCESSES: Final = Path("/proc")
_ENVIRONMENT_MAX_BYTES: Final = 4 << 20
_ROUNDS_MAX: Final = 8
"""Whoever starts others faster than they are ended is a bomb, and not ours to defuse."""


def new_mark() -> str:
    """Return a value of `MARK` that no other run has, on this machine or another."""
    return os.urandom(16).hex()


def end_descendants(mark: str) -> int:
    """End all processes of this user that carry the mark; return how many there were. Blocks for some milliseconds."""
    if not hasattr(os, "pidfd_open"):
        return 0
    entry = f"{MARK}={mark}".encode()
    ended: set[int] = set()
    for _ in range(_ROUNDS_MAX):
        found = [number for number in _numbers() if _carries(number, entry)]
        if not found:
            break
        ended.update(number for number in found if _end(number, entry))
    for number in sorted(ended):
        # Theirs who have no other parent any more, where this process is the first one of a container.
        with suppress(ChildProcessError):
            os.waitpid(number, os.WNOHANG)
    return len(ended)


def _numbers() -> Iterator[int]:
    with suppress(OSError), os.scandir(_PROCESSES) as entries:
        for entry in entries:
            if entry.name.isdecimal():
                yield int(entry.name)


def _carries(number: int, entry: bytes) -> bool:
    """Whether a process has that in its environment; one that is another user's, or over, has not."""
    try:
        with (_PROCESSES / str(number) / "environ").open("rb") as file:
            environment = file.read(_ENVIRONMENT_MAX_BYTES)
    except OSError:
        return False
    return entry in environment.split(b"\0")


def _end(number: int, entry: bytes) -> bool:
    try:
        process = os.pidfd_open(number)
    except OSError:
        return False
    try:
        if not _carries(number, entry):
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(process)
    return True
