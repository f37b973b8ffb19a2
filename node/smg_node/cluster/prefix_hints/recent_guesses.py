"""Recent guesses already published by this node, so that each is repeated only now and then."""

from collections.abc import Sequence
from typing import Final, TypeAlias

AGAIN_S: Final = 60.0
"""A guess is told again after one to two times as long; it is believed for three times as long."""
GUESSES_MAX: Final = 50_000
"""Remembered, twice; where there are more, they are told again sooner."""

_Guesses: TypeAlias = dict[tuple[str, int], None]


class Guesses:
    """Two generations of (worker, hash): when the younger is old or full, the older is forgotten."""

    def __init__(self, now_s: float) -> None:
        self._old: _Guesses = {}
        self._new: _Guesses = {}
        self._turned_s = now_s

    def fresh(self, worker: str, hashes: Sequence[int], now_s: float) -> list[int]:
        """Return those not published lately, and note that they are published now."""
        if now_s - self._turned_s >= AGAIN_S or len(self._new) >= GUESSES_MAX:
            self._old, self._new, self._turned_s = self._new, {}, now_s
        old, new = self._old, self._new
        found = [one for one in hashes if (worker, one) not in new and (worker, one) not in old]
        new.update(dict.fromkeys((worker, one) for one in found[:GUESSES_MAX]))
        return found
