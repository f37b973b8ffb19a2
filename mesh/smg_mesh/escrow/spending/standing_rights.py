"""Standing rights: what stands with one node in a window, whatever it and
others heard of limits and rosters.

What stands needs no message, so no node can take it back: an owner that has not heard of a change
mints as if there had been none. Shrinking is therefore always safe, and growing takes care:

    a new version of a limit    what stands leaves room for all that an owner may mint who goes by an older version,
                                of the largest of those amounts (`Limit.minted_before`)
    a new roster                a right that grows counts from the second window on: an owner of the roster
                                before may have minted the first one ahead

In long windows what stands accrues in slices, so that a minority lives at a steady rate and a restart loses
one slice; within one window the rate never grows.
"""

from typing import Final

from smg_mesh.escrow.limit_model import Limit

SLICE_MS: Final = 10_000
"""Windows longer than this accrue; given rights of theirs are good for so long."""


def borrowed_right(limit: Limit, divisor: int) -> int:
    """Return what a node without a majority may borrow of a window: up to its fair part of the amount."""
    if not divisor or limit.mode != "balanced":
        return 0
    return max(0, limit.amount // divisor - limit.standing_right(divisor))


def slices_of(window_ms: int) -> int:
    """Return in how many slices a window accrues; 1 for those that are there at once."""
    return -(-window_ms // SLICE_MS) if window_ms > SLICE_MS else 1


class Accrual:
    """Accrual of a right in one window: `total` never exceeds it, whenever its rate shrinks."""

    __slots__ = ("_rate", "_slices", "_sum", "total")

    def __init__(self, slices: int) -> None:
        self._slices = slices
        self._rate = -1
        self._sum = 0
        self.total = 0

    def add(self, right: int, *, slices: int = 1) -> int:
        """Let so many slices accrue at this right for the whole window, or the least before; return the new."""
        if self._rate < 0 or right < self._rate:
            self._rate = right
        self._sum += self._rate * slices
        new = self._sum // self._slices - self.total
        self.total += new
        return new

    def coming(self, right: int, *, slices: int) -> int:
        """Return how much so many more slices will accrue, at this right or the least before."""
        return (self._sum + self._least(right) * max(0, slices)) // self._slices - self.total

    def slices_for(self, units: int, right: int) -> int:
        """Return how many more slices accrue until there are so many units more; 0: they never do."""
        rate = self._least(right)
        if rate <= 0:
            return 0
        missing = (self.total + units) * self._slices - self._sum
        return max(1, -(-missing // rate))

    def _least(self, right: int) -> int:
        return max(0, right if self._rate < 0 else min(right, self._rate))
