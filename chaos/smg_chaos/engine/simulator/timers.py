"""Timers: actions at given moments, in order."""

import heapq
from collections.abc import Callable


class Timers:
    """A heap of moments; among equal ones the first added comes first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = 0

    def add(self, when_s: float, do: Callable[[float], None]) -> None:
        """Schedule an action; it is called with its moment."""
        self._count += 1
        heapq.heappush(self._heap, (when_s, self._count, do))

    def due_s(self) -> float | None:
        """Return the first moment, or None."""
        return self._heap[0][0] if self._heap else None

    def fire(self, now_s: float) -> None:
        """Run the first action that is due, if one is."""
        if self._heap and self._heap[0][0] <= now_s:
            when_s, _, do = heapq.heappop(self._heap)
            do(when_s)
