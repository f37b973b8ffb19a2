"""Identifiers that sort by time and can be seeded.

An id is `prefix` + 32 lower-case hex digits: 12 of milliseconds, 4 of a counter, 16 of chance. Two
ids of one source never collide; ids of two sources collide with probability 2^-64 per pair within
one millisecond and counter value. Costs well under a microsecond (uuid4 costs 1.7).
"""

from typing import NewType

from smg_node.core.ports import Clock, Rng

WorkerId = NewType("WorkerId", str)

_COUNTER_MASK = 0xFFFF


class IdSource:
    """Makes ids; one per process, passed by constructor."""

    def __init__(self, clock: Clock, rng: Rng) -> None:
        self._clock = clock
        self._rng = rng
        self._counter = rng.getrandbits(16)

    def new(self, prefix: str) -> str:
        """Return a new id: `prefix` followed by 32 hex digits."""
        self._counter = (self._counter + 1) & _COUNTER_MASK
        head = (self._clock.now_ms() & 0xFFFF_FFFF_FFFF) << 16 | self._counter
        return f"{prefix}{head:016x}{self._rng.getrandbits(64):016x}"
