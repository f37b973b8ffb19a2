"""Wall clock that may be wrong, set back and set forward: shows time that does not go back.

Time shown here does not go back: a clock that is set back would make this node's own entries come from
the future. But where this node alone was ever there, its clock was wrong before, not now; then time is what
the clock says, and what was dated far ahead is dated again.
"""

from collections.abc import Callable
from typing import Final

from smg_mesh.crdt.hybrid_clock import HybridClock

SET_MS: Final = 1_000
"""More than a clock is corrected by without being set."""


class WallClock:
    """The wall clock of one node. `fell_back` is called when time went back, before it is read again."""

    def __init__(
        self,
        clock_ms: Callable[[], int],
        *,
        clock: HybridClock,
        future_ms: int,
        fell_back: Callable[[], None],
    ) -> None:
        self._clock_ms: Final = clock_ms
        self._clock: Final = clock
        self._future_ms: Final = future_ms
        self._fell_back: Final = fell_back
        self._latest_ms = 0
        self._ahead_ms: int | None = None

    def ms(self) -> int:
        """Return the clock's time, or the latest it ever showed here, unless that was wrong."""
        now_ms = self._clock_ms()
        if now_ms + self._future_ms < self._latest_ms and self._clock.fall_back(now_ms):
            self._latest_ms = now_ms
            self._fell_back()
        self._latest_ms = max(self._latest_ms, now_ms)
        return self._latest_ms

    def was_set(self, monotonic_ms: int) -> bool:
        """Return whether the clock was set since this was last asked."""
        ahead_ms = self._clock_ms() - monotonic_ms
        before_ms, self._ahead_ms = self._ahead_ms, ahead_ms
        return before_ms is not None and abs(ahead_ms - before_ms) > SET_MS
