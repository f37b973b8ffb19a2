"""Forgotten windows of one key: a voter has forgotten something of them, and stores none any more.

A few intervals. The first one begins at 0 and grows with time, over windows that were never wanted
too: a clock that jumps back finds none of them open. What lies farther ahead than time has passed
comes from a clock that was ahead for a while, and is an interval of its own: what is between is
stored as ever, once it is time.
"""

from bisect import bisect_left
from typing import Final

_RANGES_MAX: Final = 8
"""One per jump of the clock; beyond it the two that are closest become one, which is careful."""
_NEAR: Final = 4
"""Clocks that run a little apart, and windows that are forgotten some time after one another."""


class Forgotten:
    """Forgotten windows of one key."""

    __slots__ = ("_ranges", "touched_ms")

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        """(last, first) of each, in order; they do not touch."""
        self.touched_ms = 0

    def __contains__(self, window: int) -> bool:
        at = bisect_left(self._ranges, (window, 0))
        return at < len(self._ranges) and self._ranges[at][1] <= window

    def add(self, window: int, *, window_ms: int, now_ms: int, wall_ms: int) -> None:
        """Let a window be one of them; with the first one all are that began before `wall_ms`."""
        passed = (now_ms - self.touched_ms) // window_ms if window_ms else 0
        self.touched_ms = now_ms
        ranges = self._ranges
        if not ranges:
            ranges.append((max(0, min(window, wall_ms // window_ms)) if window_ms else window, 0))
            passed = 0
        if window in self:
            return
        at = bisect_left(ranges, (window, 0))
        first = window
        if at and window - ranges[at - 1][0] <= passed + _NEAR:
            at -= 1
            first = ranges.pop(at)[1]
        last = window
        if at < len(ranges) and ranges[at][1] - window <= 1:
            last = ranges.pop(at)[0]
        ranges.insert(at, (last, first))
        if len(ranges) > _RANGES_MAX:
            self._merge_closest()

    def _merge_closest(self) -> None:
        ranges = self._ranges
        gaps = [ranges[at + 1][1] - ranges[at][0] for at in range(len(ranges) - 1)]
        at = gaps.index(min(gaps))
        ranges[at : at + 2] = [(ranges[at + 1][0], ranges[at][1])]
