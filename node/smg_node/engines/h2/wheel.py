"""When calls are late, to a tenth of a second: one timer for all instead of one each."""

from typing import Final, Generic, TypeVar

TICK_S: Final = 0.1
"""How coarse it is; deadlines of answers are minutes, and the engine keeps the exact one."""

Item = TypeVar("Item")


class Wheel(Generic[Item]):
    """Items by the tick at which they are due. Adding and removing cost the same however many there are."""

    __slots__ = ("_buckets", "_next", "_size")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[Item, None]] = {}
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, item: Item, due_s: float, now_s: float) -> int:
        """Note when `item` is due, and return its tick; it is never told too early."""
        if not self._size:
            # What was not turned for a while need not be caught up with.
            self._next = int(now_s / TICK_S)
        tick = max(int(due_s / TICK_S) + 1, self._next)
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = {}
        bucket[item] = None
        self._size += 1
        return tick

    def remove(self, item: Item, tick: int) -> None:
        """Forget `item`, which was added with that tick; harmless if it was told or forgotten before."""
        bucket = self._buckets.get(tick)
        if bucket is not None and item in bucket:
            del bucket[item]
            self._size -= 1
            if not bucket:
                del self._buckets[tick]

    def items(self) -> list[Item]:
        """Return everything that is noted."""
        return [item for bucket in self._buckets.values() for item in bucket]

    def due(self, now_s: float) -> list[Item]:
        """Forget and return what is due, earliest first."""
        found: list[Item] = []
        now = int(now_s / TICK_S)
        while self._next <= now and self._size:
            bucket = self._buckets.pop(self._next, None)
            self._next += 1
            if bucket is not None:
                self._size -= len(bucket)
                found += bucket
        return found
