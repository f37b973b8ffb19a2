"""Prefix hints from a node to the others: its cache knowledge, a quarter of a second in one
message, in order.

The first follower of an engine forwards its events to the nodes that do not follow it; the index
reports changes by its own `watch`. For engines that publish no events, every node sends the
placements of its own prompts.
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
    """Stream from one node to all others. `speaks` are the engines whose events it forwards; None:
    no engine has events.
    """

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
        """Return the changes since the last call, as a message for another node."""
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
