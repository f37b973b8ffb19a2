"""Bucket: what is left of one thing that an account may spend, and how it fills. Pure.

A reset is when a bucket is full again, and it fills evenly until then; a fixed window fills at its end.
"""

import math
from typing import Final

import msgspec

UNTOLD_RESET_S: Final = 60.0
"""Where nobody says when a bucket fills: its limits are told by the minute."""


class Bucket(msgspec.Struct, frozen=True):
    """What is left of one thing that an account may spend, as of `seen`, in seconds since the epoch.

    `full_at` is when it holds `limit` again. `window`: it fills at once then, and not before.
    """

    limit: float
    remaining: float
    full_at: float
    seen: float
    window: bool = False

    def holds(self, now: float) -> float:
        """Return what is in it by now."""
        if now >= self.full_at:
            return self.limit
        if self.window or now <= self.seen:
            return self.remaining
        return min(self.limit, self.remaining + self._rate() * (now - self.seen))

    def wait_s(self, need: float, now: float) -> float:
        """Return the seconds until it holds `need`; infinite for more than it ever holds."""
        left = self.holds(now)
        if need <= left:
            return 0.0
        if need > self.limit:
            return math.inf
        until_full = self.full_at - now
        if self.window:
            return max(0.0, until_full)
        rate = self._rate()
        return max(0.0, min((need - left) / rate, until_full) if rate > 0 else until_full)

    def refill(self) -> float:
        """Return how much comes back in a second, about; of a window, all of it over a minute."""
        return self.limit / UNTOLD_RESET_S if self.window else self._rate()

    def lowered(self, amount: float, now: float) -> "Bucket":
        """Return it with `amount` taken out now; it fills as fast as before, and may owe."""
        rate, left = self._rate(), self.holds(now) - amount
        if self.window:
            full_at = self.full_at if now < self.full_at else now + UNTOLD_RESET_S
            return msgspec.structs.replace(self, remaining=left, full_at=full_at, seen=now)
        full_at = now + (self.limit - left) / rate if rate > 0 else self.full_at
        return msgspec.structs.replace(self, remaining=left, full_at=full_at, seen=now)

    def _rate(self) -> float:
        """How much comes back in a second: what is missing until it is full, over that time."""
        span = self.full_at - self.seen
        missing = self.limit - self.remaining
        if span > 0 and missing > 0:
            return missing / span
        # A bucket that was full says nothing of it, and limits are told by the minute.
        return self.limit / UNTOLD_RESET_S
