"""Round trips of one peer: its last samples, and how long to wait for the next answer."""

from typing import Final

SAMPLES_MAX: Final = 64
SAMPLES_MIN: Final = 8
"""Below this many samples nothing is known and the ceiling is used."""
WAIT_MIN_MS: Final = 50
"""Event loops are late by tens of milliseconds now and then, however near the peer is."""


class RoundTrips:
    """A ring of the last samples of one peer."""

    __slots__ = ("_next", "_samples_ms")

    def __init__(self) -> None:
        self._samples_ms: list[int] = []
        self._next = 0

    def add(self, sample_ms: int) -> None:
        """Remember a sample; the oldest of 64 goes."""
        if len(self._samples_ms) < SAMPLES_MAX:
            self._samples_ms.append(sample_ms)
        else:
            self._samples_ms[self._next] = sample_ms
            self._next = (self._next + 1) % SAMPLES_MAX

    def wait_ms(self, ceiling_ms: int) -> int:
        """Return three times the 99th percentile, at least 50 ms and at most `ceiling_ms`.

        The 99th percentile of at most 64 samples is the largest of them.
        """
        if len(self._samples_ms) < SAMPLES_MIN:
            return ceiling_ms
        return min(max(3 * max(self._samples_ms), WAIT_MIN_MS), ceiling_ms)

    def median_ms(self) -> float | None:
        """Return the median of the samples, or None without any."""
        if not self._samples_ms:
            return None
        ordered = sorted(self._samples_ms)
        middle = len(ordered) // 2
        if len(ordered) % 2:
            return float(ordered[middle])
        return (ordered[middle - 1] + ordered[middle]) / 2
