"""A store with things around it is a store: every operation comes through as it was asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_storage.hooks import HookedStore, NamedHook
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.store_wrapper import StoreWrapper
from support.store_contract.maker import Clock, Opened, StoreMaker
from support.store_contract.suite import HistoryStoreContract
from support.stores.storage_hooks import Witness


class WrappedMaker:
    """Memory, with a store around it that does nothing and one whose hook only looks."""

    expires_by_itself = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        clock = Clock()
        memory = MemoryStore(Bounds(age_max_s=30 * 86_400), clock)
        store = HookedStore(StoreWrapper(memory), [NamedHook("witness", Witness())])
        await store.start()
        yield Opened(store, store, clock)
        await store.close()


class TestHookedStore(HistoryStoreContract):
    @pytest.fixture
    def maker(self) -> StoreMaker:
        return WrappedMaker()
