"""Stores under processes that adopt: one that may be away, and one whose process dies."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.store_wrapper import Call, StoreWrapper
from support.history.orphan_world import OrphanWorld


class Death(BaseException):
    """The end of a process: nothing is caught any more, and nothing cleaned up."""


class Dying(StoreWrapper):
    """A store under a process that dies, before or after it did what it was asked the n-th time."""

    def __init__(self, world: OrphanWorld, at: int, *, after: bool) -> None:
        super().__init__(world.store)
        self.left = at
        self._after = after

    async def _through(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        self.left -= 1
        if self.left == 0 and self._after:
            await run()
        if self.left <= 0:
            raise Death
        return await run()


class Away(StoreWrapper):
    """A store that may be away, and remembers what it was asked."""

    def __init__(self, world: OrphanWorld) -> None:
        super().__init__(world.store)
        self.away: frozenset[str] = frozenset()
        self.asked: list[str] = []
        self.looked_until: list[int] = []
        self.busy = 0
        self.busiest = 0

    async def _through(self, call: Call, run: Callable[[], Awaitable[Any]]) -> Any:
        self.asked.append(call.operation)
        if call.operation in self.away:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "it is away")
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        try:
            return await run()
        finally:
            self.busy -= 1

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Any:
        self.looked_until.append(now_us)
        return await super().orphan_runs(now_us=now_us, limit=limit, timeout_s=timeout_s)
