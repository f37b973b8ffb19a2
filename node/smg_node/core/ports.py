"""Ports of pure code to the world: clock and random numbers, always passed as arguments."""

from typing import Protocol


class Clock(Protocol):
    """Time, as an argument."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since the epoch; may jump."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds from an arbitrary start; never goes back."""
        ...


class Rng(Protocol):
    """Random numbers, as an argument; `random.Random` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of `k` random bits."""
        ...

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...
