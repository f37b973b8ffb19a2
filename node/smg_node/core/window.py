"""How often something happened in the last seconds: a sliding window of a few buckets.

Time is cut into buckets of equal width; the oldest falls out when a new one begins. So a window of 30 s in
10 buckets speaks of the last 27 to 30 s. Adding and asking cost well under a microsecond, whatever happened.
"""

from typing import Final

BUCKETS: Final = 10


class Window:
    """Counts of the last `span_s` seconds. Time is monotonic seconds; an older `now_s` counts as the newest."""

    __slots__ = ("_at", "_counts", "_total", "_wide_s")

    def __init__(self, span_s: float, buckets: int = BUCKETS) -> None:
        assert span_s > 0
        assert buckets > 0
        self._counts = [0] * buckets
        self._wide_s = span_s / buckets
        self._at: int | None = None
        self._total = 0

    def add(self, now_s: float, count: int = 1) -> None:
        """Count `count` more of it."""
        at = int(now_s // self._wide_s)
        if at != self._at:
            at = self._turn(at)
        self._counts[at % len(self._counts)] += count
        self._total += count

    def total(self, now_s: float) -> int:
        """Return how often it happened within the window that ends now."""
        self._turn(int(now_s // self._wide_s))
        return self._total

    def clear(self) -> None:
        """Forget everything."""
        self._counts = [0] * len(self._counts)
        self._total = 0

    def _turn(self, at: int) -> int:
        """Go on to bucket `at`, if that is a later one, and drop what is too old; return the present bucket's number."""
        before = self._at
        if before is None:
            self._at = at
            return at
        if at <= before:
            return before
        counts = self._counts
        for step in range(1, min(at - before, len(counts)) + 1):
            place = (before + step) % len(counts)
            self._total -= counts[place]
            counts[place] = 0
        self._at = at
        return at
