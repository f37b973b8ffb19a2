"""Identifiers that sort by time and can be seeded.

An id is `prefix` + 32 lower-case hex digits: 12 of milliseconds, 4 of a counter, 16 of chance. Two
ids of one source never collide; ids of two sources collide with probability 2^-64 per pair within
one millisecond and counter value. Costs well under a microsecond (uuid4 costs 1.7).
"""

import re
from typing import Final, NewType

from smg_node.core.ports import Clock, Rng

WorkerId = NewType("WorkerId", str)

_MS_MASK: Final = 0xFFFF_FFFF_FFFF
_COUNTER_MASK: Final = 0xFFFF
_AT_ONCE: Final = 64
"""The chance of so many ids is drawn at once, and the next id takes its part from a list."""
_parts_of: Final = re.compile("[0-9a-f]{16}").findall


class IdSource:
    """Makes ids; one per process, passed by constructor."""

    def __init__(self, clock: Clock, rng: Rng) -> None:
        self._now_ms = clock.now_ms
        self._rng = rng
        self._counter = rng.getrandbits(16)
        self._chances: list[str] = []
        """What is chance in the next ids, the last one first."""

    def new(self, prefix: str) -> str:
        """Return a new id: `prefix` followed by 32 hex digits."""
        return prefix + self.token(self._now_ms())

    def token(self, now_ms: int) -> str:
        """Return the 32 hex digits of a new id, for whoever knows the time, in milliseconds, already."""
        self._counter = counter = (self._counter + 1) & _COUNTER_MASK
        chances = self._chances or self._more()
        return f"{now_ms & _MS_MASK:012x}{counter:04x}{chances.pop()}"

    def _more(self) -> list[str]:
        chance = f"{self._rng.getrandbits(64 * _AT_ONCE):0{16 * _AT_ONCE}x}"
        self._chances = _parts_of(chance)
        return self._chances
