"""System clock and random numbers: the one place where real time and randomness enter."""

import random
import secrets
import time


class SystemClock:
    """The machine's clocks."""

    monotonic_s = staticmethod(time.monotonic)
    """Return seconds from an arbitrary start; never goes back. The system's own function: a request asks a dozen times."""

    def now_ms(self) -> int:
        """Return wall-clock milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


def system_rng() -> random.Random:
    """Return a generator seeded by the operating system."""
    return random.Random(random.SystemRandom().getrandbits(128))


def secret_text(characters: int, alphabet: str) -> str:
    """Return that many unguessable characters: for keys, and for nothing that is to be repeated."""
    return "".join(secrets.choice(alphabet) for _ in range(characters))
