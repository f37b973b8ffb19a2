"""Sliding window counter: how often something happened in the last seconds, in a few buckets.

Time is cut into buckets of equal width; the oldest falls out when a new one begins. So a window of 30 s in
10 buckets speaks of the last 27 to 30 s. Adding and asking cost well under a microsecond, whatever happened.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

BUCKETS: Final = 10


class Window:
    """Counts of the last `span_s` seconds. Time is monotonic seconds; an older `now_s` counts as the newest."""

    __slots__ = ("_at", "_counts", "_past", "_place", "_present", "_until_s", "_wide_s")

    def __init__(self, span_s: float, buckets: int = BUCKETS) -> None:
        assert span_s > 0
        assert buckets > 0
        self._counts = [0] * buckets
        self._wide_s = span_s / buckets
        self._at: int | None = None
        # The present bucket, and when the next one begins.
        self._place = 0
        self._until_s = float("-inf")
        # What came since it was last turned to is in no bucket yet: counting is one addition, for every request.
        self._present = 0
        self._past = 0

    def add(self, now_s: float, count: int = 1) -> None:
        """Count `count` more of it."""
        if now_s >= self._until_s:
            self._turn(now_s)
        self._present += count

    def add_all(self, times_s: Sequence[float]) -> None:
        """Count one at each of these times, the oldest first."""
        at = 0
        while at < len(times_s):
            now_s = times_s[at]
            if now_s >= self._until_s:
                self._turn(now_s)
            up_to = max(at + 1, bisect_left(times_s, self._until_s, at))
            self._present += up_to - at
            at = up_to

    def total(self, now_s: float) -> int:
        """Return how often it happened within the window that ends now."""
        if now_s >= self._until_s:
            self._turn(now_s)
        return self._past + self._present

    def clear(self) -> None:
        """Forget everything."""
        self._counts = [0] * len(self._counts)
        self._past = self._present = 0

    def _turn(self, now_s: float) -> None:
        """Go on to the bucket of `now_s`, which is a later one, and drop what is too old."""
        before, at, counts = self._at, int(now_s // self._wide_s), self._counts
        counts[self._place] += self._present
        self._past += self._present
        self._present = 0
        if before is not None:
            for step in range(1, min(at - before, len(counts)) + 1):
                place = (before + step) % len(counts)
                self._past -= counts[place]
                counts[place] = 0
        self._at = at
        self._place = at % len(counts)
        self._until_s = (at + 1) * self._wide_s
