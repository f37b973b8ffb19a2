"""Visited windows of a key: nothing stands with a node twice, even if its clock goes back."""

from typing import Final

_RANGES_MAX: Final = 8
"""One per jump of the clock; beyond it the two oldest become one, which is careful."""
_NEAR: Final = 4
"""A few windows that were slept through count as visited: fewer ranges."""


class Visited:
    """A set of window numbers as a few ranges, in the order of their first visit."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def __contains__(self, window: int) -> bool:
        return any(low <= window <= high for low, high in self._ranges)

    def add(self, window: int) -> None:
        """Remember that window."""
        if window in self:
            return
        for index, (low, high) in enumerate(self._ranges):
            if low <= window <= high + _NEAR:
                self._ranges[index] = (low, window)
                return
        self._ranges.append((window, window))
        if len(self._ranges) > _RANGES_MAX:
            first, second = self._ranges[:2]
            self._ranges[:2] = [(min(first[0], second[0]), max(first[1], second[1]))]
