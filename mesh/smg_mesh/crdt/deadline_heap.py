"""Deadline heap: finds which of many keys is due first, where most are put off before that.

A key that is put off costs a store into a dict: its place in the heap stays, and is looked at again when
it comes to the top. So a million refreshes of a thousand keys leave a thousand places.
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Any)
D = TypeVar("D", bound=Any)

_LEFTOVERS_MIN = 64
"""Fewer stale places than that are not worth a rebuilding."""


class Deadlines(Generic[K, D]):
    """Keys, each with what it is ordered by. Keys and orders can be compared among themselves."""

    __slots__ = ("_due", "_heap", "_placed")

    def __init__(self) -> None:
        self._due: dict[K, D] = {}
        self._placed: dict[K, D] = {}
        """Where a key waits in the heap: never later than it is due."""
        self._heap: list[tuple[D, K]] = []

    def __len__(self) -> int:
        return len(self._due)

    @property
    def places(self) -> int:
        """How many places the heap has: at most twice the keys, and a few."""
        return len(self._heap)

    def put(self, key: K, due: D) -> None:
        """Let the key be due then, whatever it was before."""
        self._due[key] = due
        placed = self._placed.get(key)
        if placed is not None and placed <= due:
            return
        self._placed[key] = due
        heappush(self._heap, (due, key))
        if len(self._heap) > 2 * len(self._due) + _LEFTOVERS_MIN:
            self._rebuild()

    def forget(self, key: K) -> None:
        """Let the key never be due."""
        if self._due.pop(key, None) is not None:
            del self._placed[key]
        if len(self._heap) > 2 * len(self._due) + _LEFTOVERS_MIN:
            self._rebuild()

    def first(self) -> tuple[D, K] | None:
        """Return what is due first, and what it is ordered by; None without keys."""
        heap = self._heap
        while heap:
            placed, key = heap[0]
            if self._placed.get(key) != placed:
                heappop(heap)
                continue
            due = self._due[key]
            if due == placed:
                return placed, key
            self._placed[key] = due
            heapreplace(heap, (due, key))
        return None

    def clear(self) -> None:
        """Forget all keys."""
        self._due.clear()
        self._placed.clear()
        self._heap.clear()

    def _rebuild(self) -> None:
        self._placed = dict(self._due)
        self._heap = [(due, key) for key, due in self._due.items()]
        heapify(self._heap)
