"""Sorted list: distinct entries in ascending order; found by binary search, added by a shift.

Finding is a binary search. Adding and taking out move the pointers behind the place, at most as many as a store in
memory may have rows: for a hundred thousand that is less than a tenth of a millisecond, and almost everything is
added at the end, where nothing moves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T", bound=Any)


class Ordered(Generic[T]):
    """Different entries that can be compared, in ascending order."""

    def __init__(self) -> None:
        self._entries: list[T] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, entry: T) -> bool:
        place = bisect_left(self._entries, entry)
        return place < len(self._entries) and self._entries[place] == entry

    def add(self, entry: T) -> None:
        """Add it, unless it is there."""
        if not self._entries or self._entries[-1] < entry:
            self._entries.append(entry)
        elif entry not in self:
            self._entries.insert(bisect_left(self._entries, entry), entry)

    def discard(self, entry: T) -> None:
        """Take it out, if it is there."""
        if entry in self:
            del self._entries[bisect_left(self._entries, entry)]

    def ascending(self, after: T | None = None) -> Iterator[T]:
        """Yield the entries that are larger, the smallest first; nothing may be added or taken out meanwhile."""
        begin = 0 if after is None else bisect_right(self._entries, after)
        for place in range(begin, len(self._entries)):
            yield self._entries[place]

    def descending(self, before: T | None = None) -> Iterator[T]:
        """Yield the entries that are smaller, the largest first; nothing may be added or taken out meanwhile."""
        end = len(self._entries) if before is None else bisect_left(self._entries, before)
        for place in range(end - 1, -1, -1):
            yield self._entries[place]
