"""Demand: how much of a thing is asked for in a second, the last seconds counting most. Pure."""

import math
from typing import Final

LIFE_S: Final = 1.0
"""What was asked for counts by a third after so long: a burst is over soon, and news are told four times a second."""


class Demand:
    """Moving average of one thing. Amounts are its units, `now` seconds since the epoch."""

    __slots__ = ("_rate", "_seen")

    def __init__(self) -> None:
        self._rate = 0.0
        self._seen = 0.0

    def ask(self, amount: float, now: float) -> None:
        """Take in that so much was asked for, whether it was let in or not."""
        self._rate = self.a_second(now) + amount / LIFE_S
        self._seen = max(now, self._seen)

    def a_second(self, now: float) -> float:
        """Return how much of it is asked for in a second by now."""
        return self._rate * math.exp(-max(0.0, now - self._seen) / LIFE_S)
