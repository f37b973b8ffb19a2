"""Run lease: renews the lease on one background run, and fences its writes with the lease's token.

A store outage costs nothing but time: the lease may expire meanwhile, and is still ours when the
store is back, unless another node has claimed it. The store decides by the token, with every write.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from smg_node.core.ports import Clock
from smg_node.history.runs.store_retry import StoreRetry
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, Lease
from smg_storage.store import HistoryStore

LEASE_S: Final = 15.0
RENEW_S: Final = 5.0
"""Two renewals may fail before others take the lease for over."""


class Lost(Exception):  # noqa: N818 (no failure: it is somebody else's now)
    """The run is not ours any more: another node has its lease, or it was deleted."""


class RunLease:
    """Keeps a lease. `wanted_over` is called when a client wants the response cancelled."""

    def __init__(
        self,
        store: HistoryStore,
        access: Access,
        lease: Lease,
        *,
        clock: Clock,
        insisting: StoreRetry,
        wanted_over: Callable[[], None],
        lease_s: float = LEASE_S,
        renew_s: float = RENEW_S,
    ) -> None:
        """Take a lease that was taken just now, for `lease_s`."""
        self.lease = lease
        self.settled = False
        """Whether the response is becoming final: then a refusal may just say that it is."""
        self._store: Final = store
        self._access: Final = access
        self._clock: Final = clock
        self._insisting: Final = insisting
        self._wanted_over: Final = wanted_over
        self._lease_s: Final = lease_s
        self._renew_s: Final = renew_s
        self._until_s = clock.monotonic_s() + lease_s

    @property
    def is_ours(self) -> bool:
        """Whether no other node can have the lease; if not, only the store knows."""
        return self._clock.monotonic_s() < self._until_s

    async def keep(self) -> None:
        """Renew it until cancelled; Lost when it is not ours any more."""
        while True:
            await asyncio.sleep(self._renew_s)
            try:
                await self._insisting.on(self._renew)
            except StoreError as error:
                # What else it may be was counted and logged where it happened; the next time will show.
                if error.kind is StoreErrorKind.CONFLICT:
                    if self.settled:
                        return
                    raise Lost from error

    async def guarded(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write under the lease, retrying while the store is unavailable; Lost if it is refused
        because of the lease.
        """
        try:
            await self._insisting.on(write)
        except StoreError as error:
            if error.kind is StoreErrorKind.CONFLICT:
                raise Lost from error
            raise

    async def _renew(self) -> None:
        asked_s = self._clock.monotonic_s()
        until_us = self._clock.now_ms() * 1_000 + round(self._lease_s * 1_000_000)
        self.lease = await self._store.renew_run(self._access, self.lease, until_us=until_us)
        self._until_s = asked_s + self._lease_s
        if self.lease.cancel_requested:
            self._wanted_over()
