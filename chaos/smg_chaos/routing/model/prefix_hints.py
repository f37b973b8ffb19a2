"""What a node tells the others of caches, a little later: a quarter of a second of it travels together, in order.

The first follower of an engine speaks for it to those that do not follow it; the index says what changes by its
own `watch`. Of engines that nobody can follow, every node tells where its own prompts went.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from smg_chaos.routing.model.cache_knowledge import Indexed

_ADD: Final = 1
_REMOVE: Final = 2
_CLEAR: Final = 3
_ASSUME: Final = 4


class Hints:
    """From one node to all others. `speaks` are the engines it speaks for; None: nobody can follow any."""

    def __init__(self, source: Indexed, speaks: Sequence[str] | None) -> None:
        self._speaks = frozenset(speaks or ())
        self._out: list[tuple[str, int, int]] = []
        if speaks is None:
            source.on_assumed = self._assumed
        else:
            source.index.watch(self._added, self._removed, self._cleared)

    def _assumed(self, worker: str, hashes: Sequence[int], now_s: float) -> None:
        self._out += [(worker, _ASSUME, one) for one in hashes]

    def _added(self, worker: str, one: int) -> None:
        if worker in self._speaks:
            self._out.append((worker, _ADD, one))

    def _removed(self, worker: str, one: int) -> None:
        if worker in self._speaks:
            self._out.append((worker, _REMOVE, one))

    def _cleared(self, worker: str, *, perhaps: bool) -> None:
        if worker in self._speaks:
            self._out.append((worker, _CLEAR, 0))

    def taken(self) -> Callable[[Indexed, float], None]:
        """Return what changed since the last time, as something another node can be told."""
        out, self._out = self._out, []
        said = [
            (worker, kind, list(dict.fromkeys(one for *_, one in group)))
            for (worker, kind), group in groupby(out, key=itemgetter(0, 1))
        ]

        def tell(other: Indexed, now_s: float) -> None:
            for worker, kind, hashes in said:
                if other.follows(worker):
                    continue
                if kind == _ADD:
                    other.index.tell(worker, hashes, now_s)
                elif kind == _ASSUME:
                    other.index.assume(worker, hashes, now_s)
                elif kind == _REMOVE:
                    other.index.untell(worker, hashes)
                else:
                    other.index.untell_all(worker)

        return tell
