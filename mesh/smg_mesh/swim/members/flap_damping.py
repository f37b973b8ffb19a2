"""Flap damping: how often a member died and came back of late, and the hold-down that costs it.

A member that returns inside one boot is in the table at once, but subscribers are told only when it
has held out: three answers to direct pings in a row, and five seconds that double with every flap of
the last minute or so. A flapping member is also doubted longer.
"""

from dataclasses import dataclass
from typing import Final

PENALTY_MAX: Final = 6.0
"""Where the longest hold-down is reached."""
_NOTHING: Final = 0.05
PATIENCE_MAX: Final = 8.0
"""The times by which the suspicion of a flapping member may grow."""


class Flaps:
    """The penalty of one member: one more for each return, halved every `half_life_ms`."""

    __slots__ = ("_at_ms", "_penalty")

    def __init__(self) -> None:
        self._penalty = 0.0
        self._at_ms = 0

    def penalty(self, half_life_ms: int, *, now_ms: int) -> float:
        """Return what is left of it."""
        if self._penalty == 0.0:
            return 0.0
        left: float = self._penalty * 2.0 ** ((self._at_ms - now_ms) / half_life_ms)
        return left if left > _NOTHING else 0.0

    def add(self, half_life_ms: int, *, now_ms: int) -> float:
        """Count a return; return the penalty with it."""
        left = self.penalty(half_life_ms, now_ms=now_ms)
        self._penalty = min(PENALTY_MAX, left + 1.0)
        self._at_ms = now_ms
        return self._penalty

    def patience(self, half_life_ms: int, *, now_ms: int) -> float:
        """Return the factor by which doubts about this member last longer: 1 to 8."""
        if self._penalty == 0.0:
            return 1.0
        factor: float = 2.0 ** self.penalty(half_life_ms, now_ms=now_ms)
        return min(PATIENCE_MAX, factor)


def hold_down_ms(penalty: float, first_ms: int, max_ms: int) -> int:
    """Return how long a member of this penalty has to hold out before it is announced."""
    if penalty < 1.0:
        return 0
    span_ms: float = first_ms * 2.0 ** (penalty - 1.0)
    return min(max_ms, round(span_ms))


@dataclass(slots=True)
class Hold:
    """A member that came back and is not announced yet."""

    span_ms: int
    """How long it has to hold out, without being doubted."""
    token: int = 0
    nonce: int | None = None
    """Of the ping that is not answered yet."""
    answers: int = 0
    """In a row."""
    misses: int = 0
