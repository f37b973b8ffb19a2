from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from support.store_contract.maker import Clock, Opened, StoreMaker
from support.store_contract.suite import HistoryStoreContract, ScatteredStoreContract


class MemoryMaker:
    """Fresh memory, with nobody else in it; what is kept in it lasts longer than any case takes."""

    expires_by_itself = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        clock = Clock()
        store = MemoryStore(Bounds(age_max_s=30 * 86_400), clock)
        await store.start()
        yield Opened(store, store, clock)
        await store.close()


class TestMemoryStore(HistoryStoreContract):
    @pytest.fixture
    def maker(self) -> StoreMaker:
        return MemoryMaker()


class TestMemoryStoreWithScatteredIds(ScatteredStoreContract):
    @pytest.fixture
    def maker(self) -> StoreMaker:
        return MemoryMaker()
