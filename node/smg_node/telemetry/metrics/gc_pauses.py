"""GC pauses: time the process stood still for Python's garbage collector, as a metric.

Python calls back before and after each collection; what is added up is the time between the two, on
the monotonic clock.
"""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.meters import Meters

_GENERATIONS: Final = 3


class GcPauses:
    """Adds up the pauses by generation, in seconds."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._now_s: Final = monotonic_s
        self._began_s: float | None = None
        self._seconds: Final = [0.0] * _GENERATIONS

    def called(self, phase: str, said: Mapping[str, int]) -> None:
        """Take a callback of Python's collector: `start` or `stop` of a collection, with its
        `generation`.
        """
        if phase == "start":
            self._began_s = self._now_s()
        elif self._began_s is not None:
            # None where the watch began during a look.
            self._seconds[said["generation"]] += self._now_s() - self._began_s
            self._began_s = None

    def read(self) -> Mapping[tuple[str, ...], float]:
        """Return the seconds so far by the label `generation`."""
        return {(str(place),): seconds for place, seconds in enumerate(self._seconds)}


@contextmanager
def gc_pauses(meters: Meters, monotonic_s: Callable[[], float]) -> Iterator[None]:
    """Count the pauses of this process in `meters` meanwhile."""
    pauses = GcPauses(monotonic_s)
    # One object, because another access to the method would be another one to take away.
    called = pauses.called
    meters.watch(declared.GC_PAUSE_SECONDS, pauses.read)
    gc.callbacks.append(called)
    try:
        yield
    finally:
        gc.callbacks.remove(called)
