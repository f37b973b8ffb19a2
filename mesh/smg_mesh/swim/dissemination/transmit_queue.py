"""Transmit queue: entries to be sent a few times each, the least sent first.

Entries live in one bucket per number of transmissions. A bucket is a heap with the newest entry on
top, so a packet takes what it carries without sorting what it leaves. An entry that was replaced or
forgotten stays in its heap until it comes to the top, and all heaps are rebuilt when such leftovers
outnumber the living.
"""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeAlias, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MISFITS_MAX: Final = 4
"""Entries too large for what is left of a packet that are passed over before it counts as full."""
_LEFTOVERS_MIN: Final = 64
"""Fewer than that are not worth a rebuilding."""


class Waiting(Generic[K, V]):
    """One entry and how often it was sent."""

    __slots__ = ("key", "number", "size_bytes", "transmissions", "value")

    def __init__(self, key: K, value: V, size_bytes: int, number: int) -> None:
        self.key = key
        self.value = value
        self.size_bytes = size_bytes
        self.number = number
        """Falls with every entry: the newest has the smallest."""
        self.transmissions = 0


_Bucket: TypeAlias = list[tuple[int, Waiting[K, V]]]


class Transmissions(Generic[K, V]):
    """At most one entry per key; `add` replaces and starts afresh."""

    def __init__(self) -> None:
        self._entries: dict[K, Waiting[K, V]] = {}
        self._buckets: list[_Bucket[K, V]] = [[]]
        self._number = 0
        self._in_buckets = 0
        self.size_bytes = 0
        """Of all that waits."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return what waits under the key."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    @property
    def leftovers(self) -> int:
        """How many replaced or forgotten entries are still in a heap."""
        return self._in_buckets - len(self._entries)

    def add(self, key: K, value: V, size_bytes: int) -> None:
        """Let it wait as the newest, never sent; what waited under the key is gone."""
        self.forget(key)
        self._number -= 1
        entry = Waiting(key, value, size_bytes, self._number)
        self._entries[key] = entry
        self.size_bytes += size_bytes
        self._put(entry)
        if self.leftovers > len(self._entries) + _LEFTOVERS_MIN:
            self._rebuild()

    def forget(self, key: K) -> None:
        """Let nothing wait under the key."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.size_bytes -= entry.size_bytes

    def drop_most_sent(self) -> None:
        """Give up one of the entries that were sent most."""
        for bucket in reversed(self._buckets):
            while bucket:
                # The end of a heap is a leaf, so among the older ones, and taking it costs nothing.
                _, entry = bucket.pop()
                self._in_buckets -= 1
                if self._waits(entry):
                    self.forget(entry.key)
                    return

    def pick(self, bytes_left: int, count_left: int) -> list[Waiting[K, V]]:
        """Return what fits, the least sent first, then the newest.

        Picked entries wait in no bucket: `sent` is owed for them.
        """
        picked: list[Waiting[K, V]] = []
        misfits: list[Waiting[K, V]] = []
        for bucket in self._buckets:
            while bucket and len(picked) < count_left and len(misfits) < _MISFITS_MAX:
                _, entry = heappop(bucket)
                self._in_buckets -= 1
                if not self._waits(entry):
                    continue
                if entry.size_bytes <= bytes_left:
                    bytes_left -= entry.size_bytes
                    picked.append(entry)
                else:
                    misfits.append(entry)
        for entry in misfits:
            self._put(entry)
        return picked

    def sent(self, picked: list[Waiting[K, V]], transmissions_max: int) -> None:
        """Count one transmission of each, and give up those that were sent often enough."""
        for entry in picked:
            entry.transmissions += 1
            if entry.transmissions < transmissions_max:
                self._put(entry)
            else:
                self.forget(entry.key)

    def _waits(self, entry: Waiting[K, V]) -> bool:
        return self._entries.get(entry.key) is entry

    def _put(self, entry: Waiting[K, V]) -> None:
        while len(self._buckets) <= entry.transmissions:
            self._buckets.append([])
        # Ages are unique, so entries themselves are never compared.
        heappush(self._buckets[entry.transmissions], (entry.number, entry))
        self._in_buckets += 1

    def _rebuild(self) -> None:
        self._in_buckets = 0
        for bucket in self._buckets:
            bucket[:] = [item for item in bucket if self._waits(item[1])]
            heapify(bucket)
            self._in_buckets += len(bucket)
