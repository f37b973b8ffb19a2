"""What lies on another node is a store like any other: every operation is the same when it is asked for over the mesh."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from smg_node.history.peers.routed_store import RoutedStore
from smg_node.history.peers.thread_owners import ThreadOwners
from smg_storage.ids import holder_tag
from smg_storage.records import Lease, StoreFigures
from smg_storage.store import HistoryStore
from support.history.peer_histories import HeldNode, Net, held_node, memory
from support.store_contract.maker import Clock, Opened, StoreMaker
from support.store_contract.stage import Stage
from support.store_contract.suite import HistoryStoreContract


class KeysElsewhere(ThreadOwners):
    """Draws the other node for every key."""

    def home_of_key(self, tenant: str, key: str) -> str:
        return "" if self.name == "b" else "b"


class Asking(RoutedStore):
    """A node that has nothing; what a node does only for itself it has done by the other one too."""

    def __init__(self, node: HeldNode, other: HistoryStore) -> None:
        self.__dict__ |= node.holders.__dict__
        self.only = other

    async def orphan_runs(self, *, now_us: int, limit: int, timeout_s: float) -> Sequence[Lease]:
        return await self.only.orphan_runs(now_us=now_us, limit=limit, timeout_s=timeout_s)

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        return await self.only.purge(now_us=now_us, batch=batch, timeout_s=timeout_s)

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        return await self.only.figures(timeout_s=timeout_s)


class PairMaker:
    """Two nodes; all ids are of threads that `b` holds, and `a` is asked."""

    expires_by_itself = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Opened]:
        clock, net = Clock(), Net()
        a = held_node(net, "a", memory(clock), roster=KeysElsewhere)
        b = held_node(net, "b", memory(clock), roster=KeysElsewhere)
        yield Opened(Asking(a, b.own), b.holders, clock, holder=holder_tag("b"))
        kept = await a.own.figures(timeout_s=5)
        assert (kept.conversations, kept.items, kept.responses) == (0, 0, 0)


class TestThreadsOfAnotherNode(HistoryStoreContract):
    @pytest.fixture
    def maker(self) -> StoreMaker:
        return PairMaker()

    async def test_a_conversation_of_any_id_is_kept(self, stage: Stage) -> None:
        await super().test_a_conversation_of_any_id_is_kept(stage)
        for nobodys in ("conv_client-1.x:y", "A", "a", "x" * 64):
            # Such an id tells no node: it is where it was made, and nowhere else.
            assert await stage.other.get_conversation(stage.access, nobodys) is None
            assert await stage.store.delete_conversation(stage.access, nobodys)
