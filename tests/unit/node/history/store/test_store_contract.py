"""What keeps history is a store like any other, as long as the one inside is there."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.history.store.resilient_store import ResilientStore
from smg_node.history.store.store_health import StoreHealth
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from support.history.spools import spool_at
from support.store_contract.maker import Clock, Opened, StoreMaker
from support.store_contract.suite import HistoryStoreContract


class KeepingMaker:
    """A keeping over memory."""

    expires_by_itself = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        clock = Clock()
        store = MemoryStore(Bounds(age_max_s=30 * 86_400), clock)
        keeping = ResilientStore(
            lambda: store,
            kind="memory",
            health=StoreHealth(now_s=time.monotonic, rng=random.Random(1), slow_s=1.0),
            spool=spool_at(self._folder),
            strict=False,
            now_s=time.monotonic,
            observe=lambda *_: None,
            wait_s=5.0,
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(keeping.run())
            await keeping.ping(timeout_s=5)
            yield Opened(keeping, keeping, clock)
            task.cancel()
        await keeping.close()


class TestKeeping(HistoryStoreContract):
    @pytest.fixture
    def maker(self, tmp_path: Path) -> StoreMaker:
        return KeepingMaker(tmp_path)
