"""What waits on one node's disk is never denied by another one."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from smg_node.history import keeping as keeping_module
from smg_node.history.health import StoreHealth
from smg_node.history.keeping import Keeping
from smg_node.history.peers import UNWRITTEN
from smg_node.history.unwritten import NO, YES, Asked, Unwritten, answered
from smg_storage.around import AroundStore, Call
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.records import Access, PageAsk
from smg_storage.store import HistoryStore
from support.held_pair import Net, memory
from support.raw_http import until
from support.spools import ACCESS, response_id, spool_at, turn
from support.store_contract.maker import Clock

T = TypeVar("T")
RIVAL = Access(tenant="rival")
CHAIN = {"items_max": 10, "bytes_max": 1_000}


class Gate(AroundStore):
    """A way to a store that may be closed."""

    closed = False

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        if self.closed:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "it is away")
        return await run()


@dataclass
class Two:
    """Nodes a and b before one store; a's way to it may be closed."""

    net: Net
    gate: Gate
    store: MemoryStore
    a: Unwritten
    b: Unwritten


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping_module, "UNWRITTEN_S", 0.02)


def keeping_of(store: HistoryStore, folder: Path) -> Keeping:
    return Keeping(
        lambda: store,
        kind="postgresql",
        health=StoreHealth(now_s=time.monotonic, rng=random.Random(1), slow_s=1.0),
        spool=spool_at(folder),
        strict=False,
        now_s=time.monotonic,
        observe=lambda *_: None,
        wait_s=5.0,
    )


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[Two]:
    net, store = Net(), memory(Clock())
    gate = Gate(store)
    ways: dict[str, HistoryStore] = {"a": gate, "b": store}
    made: dict[str, tuple[Keeping, Unwritten]] = {}
    async with asyncio.TaskGroup() as group:
        tasks = []
        for name, way in ways.items():
            keeping, peers = keeping_of(way, folder / name), net.peers(name)
            keeping.tell_spooling(lambda some, peers=peers: peers.say_spooling(on=some))  # type: ignore[misc]  # bound now
            peers.answer(UNWRITTEN, lambda asked, _, keeping=keeping: answered(keeping, asked))  # type: ignore[misc]  # bound now
            tasks.append(group.create_task(keeping.run()))
            await keeping.ping(timeout_s=5)
            made[name] = keeping, Unwritten(keeping, peers, now_s=lambda: 1e9 * time.monotonic())
        yield Two(net, gate, store, made["a"][1], made["b"][1])
        for task in tasks:
            task.cancel()
    for keeping, _ in made.values():
        await keeping.close()


async def test_nobody_is_asked_while_nothing_waits(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await world.a.commit(ACCESS, turn())
        assert await world.b.get_response(ACCESS, response_id(1, 1)) == turn().response
        assert await world.b.get_response(ACCESS, response_id(2, 1)) is None
        assert world.net.asked == []
        assert not world.net.spooling.get("a")


async def test_what_waits_elsewhere_is_not_denied(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        world.gate.closed = True
        assert (await world.a.commit(ACCESS, turn(1, 1))).spooled
        assert world.net.spooling["a"]
        for asked in (
            world.b.get_response_chain(ACCESS, response_id(1, 1), **CHAIN),
            world.b.find_items(ACCESS, [response_id(2, 1), response_id(1, 1)]),
            world.b.list_identifier_responses(ACCESS, "p", PageAsk()),
        ):
            with pytest.raises(StoreError, match="disk of a"):
                await asked
        assert await world.b.get_response(ACCESS, response_id(2, 1)) is None
        assert await world.b.get_response(RIVAL, response_id(1, 1)) is None
        world.gate.closed = False
        found = None
        while found is None:
            try:
                found = await world.b.get_response(ACCESS, response_id(1, 1))
                assert found is not None, "it was denied"
            except StoreError:
                await asyncio.sleep(0.01)
        await until(lambda: not world.net.spooling["a"])
        world.net.asked.clear()
        assert await world.b.get_response(ACCESS, response_id(3, 1)) is None
        assert world.net.asked == []


async def test_a_moment_is_waited_for_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping_module, "UNWRITTEN_S", 60.0)
    async with two(tmp_path) as world:
        world.gate.closed = True
        await world.a.commit(ACCESS, turn(1, 1))
        world.gate.closed = False
        patient = msgspec.structs.replace(ACCESS, timeout_s=60.0)
        assert await world.b.get_response(patient, response_id(1, 1)) == turn(1, 1).response


@pytest.mark.parametrize("state", ["dead", "left"])
async def test_what_is_not_there_may_be_with_who_is_gone(tmp_path: Path, state: str) -> None:
    async with two(tmp_path) as world:
        await world.b.commit(ACCESS, turn(2, 1))
        world.gate.closed = True
        await world.a.commit(ACCESS, turn(1, 1))
        world.net.states["a"] = state
        with pytest.raises(StoreError, match="disk of a"):
            await world.b.get_response(ACCESS, response_id(1, 1))
        with pytest.raises(StoreError, match="disk of a"):
            await world.b.get_response_chain(ACCESS, response_id(1, 1), **CHAIN)
        assert await world.b.get_response(ACCESS, response_id(2, 1)) == turn(2, 1).response
        assert await world.b.find_items(ACCESS, ["msg_own"]) == {}
        assert await world.b.get_conversation(ACCESS, "conv_1") is None


async def test_who_does_not_answer_may_have_it(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        await world.b.commit(ACCESS, turn(2, 1))
        world.net.spooling["a"] = True
        world.net.faults += ["unreachable", "unreachable"]
        assert await world.b.get_response(ACCESS, response_id(2, 1)) is not None
        with pytest.raises(StoreError, match="disk of a"):
            await world.b.get_response(ACCESS, response_id(1, 1))


async def test_a_question_that_is_none_has_no_answer(tmp_path: Path) -> None:
    async with two(tmp_path) as world:
        world.gate.closed = True
        await world.a.commit(ACCESS, turn(1, 1))
        keeping = world.a._keeping
        assert await answered(keeping, b"\xc1") == b""
        wrong = msgspec.msgpack.encode(Asked("acme", [], of_all=True))
        assert await answered(keeping, wrong) == YES
        assert await answered(keeping, msgspec.msgpack.encode(Asked("acme", ["x"]))) == NO
