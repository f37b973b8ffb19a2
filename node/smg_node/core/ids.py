"""Identifiers that sort by time and can be seeded.

An id is `prefix` + 32 lower-case hex digits: 12 of milliseconds, 4 of a counter, 16 of chance. Two
ids of one source never collide; ids of two sources collide with probability 2^-64 per pair within
one millisecond and counter value. Costs well under a microsecond (uuid4 costs 1.7).
"""

from typing import NewType

from smg_node.core.ports import Clock, Rng

WorkerId = NewType("WorkerId", str)

_COUNTER_MASK = 0xFFFF
_AT_ONCE = 64
"""So many ends of ids are made at once: 0.2 µs each, and the next id takes one from a list."""


class IdSource:
    """Makes ids; one per process, passed by constructor."""

    def __init__(self, clock: Clock, rng: Rng) -> None:
        self._now_ms = clock.now_ms
        self._rng = rng
        self._counter = rng.getrandbits(16)
        self._ms = -1
        self._head = ""
        """The digits of `_ms`."""
        self._ends: list[str] = []
        """Counter and chance of the next ids, the last one first."""

    def new(self, prefix: str) -> str:
        """Return a new id: `prefix` followed by 32 hex digits."""
        now_ms = self._now_ms()
        if now_ms != self._ms:
            self._ms, self._head = now_ms, f"{now_ms & 0xFFFF_FFFF_FFFF:012x}"
        ends = self._ends or self._more()
        return f"{prefix}{self._head}{ends.pop()}"

    def _more(self) -> list[str]:
        chance, first = f"{self._rng.getrandbits(64 * _AT_ONCE):0{16 * _AT_ONCE}x}", self._counter
        self._counter = last = first + _AT_ONCE
        self._ends = [
            f"{(last - at) & _COUNTER_MASK:04x}{chance[16 * at : 16 * at + 16]}"
            for at in range(_AT_ONCE)
        ]
        return self._ends
