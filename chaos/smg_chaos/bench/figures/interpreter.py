"""Interpreter speed: CPU nanoseconds of a plain Python step, and the version the figures were
measured with.

Builds of one version differ by a third, and so does what a request costs. A build with
profile-guided optimisation, as distributions and the official images have it, does a plain step in
130 to 150 ns where one without takes 200, on the same quiet machine. Its build flags do not always
tell, so it is measured. The load of other guests on a host shows as well: beside them the same
Python takes up to twice as long.
"""

import platform
from collections.abc import Callable
from time import process_time
from typing import Final

_STEPS: Final = 20_000
_TRIES: Final = 7


def step_ns(clock_s: Callable[[], float] = process_time) -> float:
    """Return the CPU nanoseconds of one plain step, the least of several tries; takes 50 ms."""
    return min(_tried(clock_s) for _ in range(_TRIES)) / _STEPS * 1e9


def told(machine: dict[str, object]) -> str:
    """Return the Python version and its speed, in words."""
    step = machine.get("python_step_ns")
    version = machine.get("python", platform.python_version())
    return f"{version} ({step} ns a plain step)" if step else str(version)


def _tried(clock_s: Callable[[], float]) -> float:
    begun_s = clock_s()
    _steps()
    return clock_s() - begun_s


def _steps() -> int:
    """Execute a plain mix of interpreter work: look up, call, allocate, add."""
    kept: dict[int, int] = {}
    total = 0
    for number in range(_STEPS):
        kept[number % 100] = number
        total += len(str(number))
        row = [number] * 3
        total += row[1]
    return total
