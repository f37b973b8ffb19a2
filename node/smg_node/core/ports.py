"""Ports of pure code to the world: clock and random numbers, always passed as arguments."""

from collections.abc import Awaitable
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


class SendGate(Protocol):
    """Gate before the first byte of a run: another node must be able to find out that there is one."""

    @property
    def waits(self) -> bool:
        """Whether anything has to be kept at all."""
        ...

    def passed(self, block: int) -> Awaitable[bool]:
        """Return when what was said of the call in this block is kept; false where it never will be."""
        ...
