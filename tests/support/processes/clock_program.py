"""A program that says on its standard output what it sees of clocks and disks, as often as it is asked on its input.

It is run by itself, with a library before it that makes them wrong (`test_clock_skew`), so it needs nothing but Python and C's library.
"""

import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime_ns
from typing import Any, Final

NS: Final = 1_000_000_000
WAIT_NS: Final = NS // 50
_COARSE: Final = 5
"""CLOCK_REALTIME_COARSE, which Python does not name."""
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_BYTES: Final = 64
"""More than a mutex or a condition takes; all zero is a new one."""


class Moment(ctypes.Structure):
    """A timespec or a timeval."""

    _fields_ = (("whole", ctypes.c_int64), ("part", ctypes.c_int64))


def clocks() -> dict[str, int]:
    """Return every clock in nanoseconds, by who was asked; those that only know seconds or microseconds in these."""
    day = Moment()
    _LIBC.gettimeofday(ctypes.byref(day), None)
    _LIBC.time.restype = ctypes.c_int64
    return {
        "realtime": clock_gettime_ns(CLOCK_REALTIME),
        "coarse": clock_gettime_ns(_COARSE),
        "gettimeofday_us": day.whole * 1_000_000 + day.part,
        "time_s": _LIBC.time(None),
        "monotonic": clock_gettime_ns(CLOCK_MONOTONIC),
    }


def _took(what: Callable[[], object]) -> int:
    begun = clock_gettime_ns(CLOCK_MONOTONIC)
    what()
    return clock_gettime_ns(CLOCK_MONOTONIC) - begun


def disk(folder: str) -> dict[str, int]:
    """Return how many nanoseconds each way to write and sync a file in a folder takes."""
    path = Path(folder) / "written"
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    try:
        told = {
            "write": _took(lambda: os.write(file, b"one ")),
            "writev": _took(lambda: os.writev(file, [b"two ", b"three "])),
            "pwrite": _took(lambda: os.pwrite(file, b"four", 14)),
            "fsync": _took(lambda: os.fsync(file)),
            "fdatasync": _took(lambda: os.fdatasync(file)),
            "read": _took(lambda: os.pread(file, 10, 0)),
        }
    finally:
        os.close(file)
    assert path.read_bytes() == b"one two three four"
    return told


def pipe(_folder: str) -> dict[str, int]:
    """Return how many nanoseconds it takes to write into a pipe."""
    reads, writes = os.pipe()
    try:
        return {"pipe": _took(lambda: os.write(writes, b"x"))}
    finally:
        os.close(reads)
        os.close(writes)


def _until() -> Moment:
    at = clock_gettime_ns(CLOCK_REALTIME) + WAIT_NS
    return Moment(at // NS, at % NS)


def _condition() -> None:
    mutex, condition = (ctypes.create_string_buffer(_BYTES) for _ in "ab")
    _LIBC.pthread_mutex_lock(mutex)
    _LIBC.pthread_cond_timedwait(condition, mutex, ctypes.byref(_until()))


def _mutex() -> None:
    mutex = ctypes.create_string_buffer(_BYTES)
    _LIBC.pthread_mutex_lock(mutex)
    _LIBC.pthread_mutex_timedlock(mutex, ctypes.byref(_until()))


def waits() -> dict[str, int]:
    """Return how many nanoseconds it takes to wait for `WAIT_NS` of the wall clock, or of another, in each way that there is."""
    lock, semaphore = threading.Lock(), multiprocessing.Semaphore(0)
    lock.acquire()
    seconds = WAIT_NS / NS
    return {
        "lock": _took(lambda: lock.acquire(timeout=seconds)),
        "event": _took(lambda: threading.Event().wait(seconds)),
        "semaphore": _took(lambda: semaphore.acquire(timeout=seconds)),
        "condition": _took(_condition),
        "mutex": _took(_mutex),
    }


def child() -> dict[str, int]:
    """Return what a program sees that this one has started."""
    command = [sys.executable, "-S", __file__]
    asked = json.dumps(["clocks"]) + "\n"
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    told: dict[str, int] = json.loads(done.stdout)
    return told


DOES: Final[dict[str, Callable[..., dict[str, int]]]] = {
    one.__name__: one for one in (clocks, disk, pipe, waits, child)
}


def main() -> None:
    """Answer each line, a name and its arguments in JSON, until there are no more."""
    for line in sys.stdin:
        asked: list[Any] = json.loads(line)
        sys.stdout.write(json.dumps(DOES[asked[0]](*asked[1:])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
