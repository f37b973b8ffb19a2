"""Retention sweeper: deletes expired rows on one node of all, for at most a tenth of the time.

The node is chosen by rendezvous hashing over the living members: all agree without a message, and
another one takes over when it dies. Two sweepers at once for a while do no harm.
"""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

from smg_storage.errors import StoreError
from smg_storage.records import StoreFigures
from smg_storage.store import HistoryStore

BATCH: Final = 500
TIMEOUT_S: Final = 30.0
FIGURES_EVERY_S: Final = 600.0
"""Counting is dear where there is much."""
NAP_S: Final = 60.0
"""Within so long it hears that it is to sweep more often."""
REST: Final = 9.0
"""So many times as long as a batch took nothing is done: a tenth of the time is work."""


class Sweeper:
    """Sweeps `store` while this node is the one chosen; `every_s` returns the interval, read each
    time anew.
    """

    def __init__(
        self,
        store: HistoryStore,
        name: str,
        *,
        living: Callable[[], Sequence[str]],
        now_us: Callable[[], int],
        now_s: Callable[[], float],
        every_s: Callable[[], float],
    ) -> None:
        self.purged = 0
        """Rows that were removed."""
        self.figures = StoreFigures()
        """About how much there was when it last swept."""
        self._store: Final = store
        self._name: Final = name
        self._living: Final = living
        self._now_us: Final = now_us
        self._now_s: Final = now_s
        self._every_s: Final = every_s
        self._figures_s = float("-inf")

    @property
    def mine(self) -> bool:
        """Whether this node is the one that sweeps."""
        return not self._store.shared or drawn(self._living(), self._name) == self._name

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await self._rest()
            if self.mine:
                await self.sweep()

    async def sweep(self) -> None:
        """Delete all that has expired; a store that is unavailable is left for the next time."""
        try:
            while await self._batch() >= BATCH:
                continue
            if self._now_s() >= self._figures_s:
                self._figures_s = self._now_s() + FIGURES_EVERY_S
                self.figures = await self._store.figures(timeout_s=TIMEOUT_S)
        except StoreError:
            # It is counted and logged where it happened.
            return

    async def _rest(self) -> None:
        """Sleep until it is time; the interval may change meanwhile."""
        slept_s = 0.0
        while (left_s := self._every_s() - slept_s) > 0:
            nap_s = min(left_s, NAP_S)
            await asyncio.sleep(nap_s)
            slept_s += nap_s

    async def _batch(self) -> int:
        began_s = self._now_s()
        gone = await self._store.purge(now_us=self._now_us(), batch=BATCH, timeout_s=TIMEOUT_S)
        self.purged += gone
        if gone >= BATCH:
            await asyncio.sleep(REST * (self._now_s() - began_s))
        return gone


def drawn(living: Sequence[str], name: str) -> str:
    """Return which of the living nodes sweeps; `name` counts as living in any case."""
    return max({*living, name}, key=_draw)


def _draw(name: str) -> tuple[bytes, str]:
    return blake2b(name.encode(), digest_size=8, person=b"smg sweeper").digest(), name
