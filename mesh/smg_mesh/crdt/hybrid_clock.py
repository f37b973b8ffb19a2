"""Hybrid logical clock: time that never goes back, so that "latest" means the same on every node.

    hlc = 48 bits of wall-clock milliseconds << 16 | 16 bits of counter

A tick is the wall clock where that is ahead of everything seen so far, and one more than the largest seen
otherwise. So a write is later than every write its writer knew of, whatever the clocks of the two nodes
say, and nodes whose clocks agree order their writes by time. One clock that runs far ahead must not drag
the others along: what is more than `future_ms` ahead of the wall clock here is not witnessed. From "Logical
Physical Clocks and Consistent Snapshots in Globally Distributed Databases" (2014), with the counter
allowed to run over into the milliseconds.
"""

from typing import Final

_COUNTER_BITS: Final = 16


def hlc_ms(hlc: int) -> int:
    """Return the milliseconds since 1970 in a hybrid time."""
    return hlc >> _COUNTER_BITS


def hlc_from(wall_ms: int) -> int:
    """Return the first hybrid time of a millisecond."""
    return wall_ms << _COUNTER_BITS


class HybridClock:
    """The clock of one node. Wall time is an argument; it may jump."""

    __slots__ = ("_future_ms", "_heard", "_last")

    def __init__(self, *, future_ms: int) -> None:
        assert future_ms >= 0
        self._future_ms: Final = future_ms
        self._last = 0
        self._heard = 0

    def tick(self, wall_ms: int) -> int:
        """Return a time for a write: strictly larger than everything ticked or witnessed here."""
        assert wall_ms >= 0
        self._last = max(self._last + 1, wall_ms << _COUNTER_BITS)
        return self._last

    def witness(self, hlc: int, wall_ms: int) -> bool:
        """Take note of a time that another node gave; False, and nothing moves, if it is far ahead."""
        if self.is_future(hlc, wall_ms):
            return False
        self._heard = max(self._heard, hlc)
        self._last = max(self._last, hlc)
        return True

    def recall(self, hlc: int, wall_ms: int) -> None:
        """Take note of a time that this node itself gave in an earlier life, unless it is far ahead."""
        if not self.is_future(hlc, wall_ms):
            self._last = max(self._last, hlc)

    def fall_back(self, wall_ms: int) -> bool:
        """Follow a wall clock that was set back, if it was wrong before; return whether that was so.

        It was if nothing another node gave is ahead of it: then only this node was ever there, and would
        write from the future until that has come. Otherwise it may be wrong now, and time stays.
        """
        ahead = hlc_from(wall_ms + self._future_ms + 1)
        if self._last < ahead or self._heard >= ahead:
            return False
        self._last = max(self._heard, hlc_from(wall_ms))
        return True

    def is_future(self, hlc: int, wall_ms: int) -> bool:
        """Return whether `hlc` is more than `future_ms` ahead of the wall clock, and of all seen here.

        What was once seen stays past though the wall clock be set back.
        """
        return hlc > self._last and hlc >> _COUNTER_BITS > wall_ms + self._future_ms
