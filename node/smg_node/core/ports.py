"""What pure code asks of the world: time and chance, always passed in."""

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
    """Chance, as an argument; `random.Random` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of `k` random bits."""
        ...

    def random(self) -> float:
        """Return a float in [0, 1)."""
        ...
