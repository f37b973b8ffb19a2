"""Divergence watch: detects a peer's damaged copy of a document: both saw the
same, but hold different things.

That alone is nothing: deletions move no vector, and the exchange at hand brings them. But if it is so again
and again, with the same contents each time, something is lost that no exchange will ever bring.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

TIMES_MAX: Final = 4
"""Several exchanges at once may have begun before the first of them ended."""
PEERS_MAX: Final = 16

Oddity: TypeAlias = tuple[bytes, bytes, Mapping[int, int]]
"""Both digests, and the vector that both have."""


class DivergenceWatch:
    """Divergences seen with each peer of late, and how often in a row."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, Oddity]] = {}

    def again(self, peer: str, oddity: Oddity) -> bool:
        """Take note of it; return whether it was so too often."""
        times, before = self._seen.pop(peer, (0, None))
        times = times + 1 if oddity == before else 1
        if times >= TIMES_MAX:
            return True
        self._seen[peer] = (times, oddity)
        while len(self._seen) > PEERS_MAX:
            del self._seen[next(iter(self._seen))]
        return False

    def clear(self) -> None:
        """Forget everything: the document is another one."""
        self._seen.clear()
