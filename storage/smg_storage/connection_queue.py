"""Connection queue: which operations have a connection, and which wait for one.

A pool gives its connections in the order in which operations come. So what there is to know follows
from when operations came, when they were served, and when they were done, and no pool has to be
asked.
"""

from time import monotonic
from types import TracebackType
from typing import Final

from smg_storage.records import PoolFigures


class Place:
    """Place of one operation: in line from here on, until what is inside is over."""

    __slots__ = ("_came_s", "_line", "_served_s", "_waits")

    def __init__(self, line: "Line") -> None:
        self._line = line
        self._waits = False
        self._came_s = 0.0
        self._served_s = 0.0

    def __enter__(self) -> "Place":
        self._waits = self._line.enter()
        self._came_s = monotonic()
        return self

    def served(self) -> None:
        """Note that it has its connection now; a thread may say so."""
        self._served_s = monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Who gave up has waited until now.
        until_s = self._served_s or monotonic()
        self._line.leave(until_s - self._came_s if self._waits else None)


class Line:
    """Line of operations before so many connections. All but `Place.served` is for one thread."""

    def __init__(self, size: int) -> None:
        self._size: Final = size
        self._there = 0
        self._waits = 0
        self._waited_s = 0.0

    def place(self) -> Place:
        """Return a place in it, to be entered."""
        return Place(self)

    def enter(self) -> bool:
        """Count one more, and return whether it has to wait."""
        waits = self._there >= self._size
        self._there += 1
        self._waits += waits
        return waits

    def leave(self, waited_s: float | None) -> None:
        """Count one less, and how long it had waited if it had."""
        self._there -= 1
        self._waited_s += waited_s or 0.0

    def figures(self) -> PoolFigures:
        """Return how busy it is."""
        in_use = min(self._there, self._size)
        return PoolFigures(self._size, in_use, self._there - in_use, self._waits, self._waited_s)


def together(one: PoolFigures, other: PoolFigures) -> PoolFigures:
    """Return the figures of two pools as if they were one."""
    return PoolFigures(
        one.size + other.size,
        one.in_use + other.in_use,
        one.waiting + other.waiting,
        one.waits + other.waits,
        one.waited_s + other.waited_s,
    )
