"""The loop that takes hints to peers: what it survives, and what it counts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest

from smg_mesh.config import StateOptions
from smg_mesh.crdt.hints.hint_messages import HintError
from smg_mesh.io.counters import Counters
from smg_mesh.io.shared_state.hint_transport import (
    CALLS_MAX,
    REST_S,
    Hints,
    NotDeliveredError,
)
from support.state.hint_world import DictStore

NOTHING = msgspec.msgpack.encode([])


class Post:
    """Takes letters to other `Hints` by name, or does what a test says."""

    def __init__(self, me: str) -> None:
        self.me = me
        self.peers: dict[str, Hints] = {}
        self.silent = False
        self.under_way = 0
        self.most = 0
        self.gate: asyncio.Event | None = None

    async def take_hints(self, name: str, letter: bytes, *, deadline_s: float) -> bytes:
        assert deadline_s > 0
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.gate is not None:
                await self.gate.wait()
            await asyncio.sleep(0)
            if self.silent or name not in self.peers:
                raise NotDeliveredError(name)
            return await self.peers[name].answer(letter, self.me)
        finally:
            self.under_way -= 1


class Side:
    """One node's hints."""

    def __init__(
        self, name: str, store: DictStore | None = None, *, digest_ms: int = 5_000
    ) -> None:
        self.name = name
        self.store = store or DictStore()
        self.own: dict[str, list[int]] = {}
        self.counters = Counters()
        self.now_ms = 1_000
        self.hints = Hints(
            StateOptions(hint_digest_ms=digest_ms), now_ms=self._time, counters=self.counters
        )
        self.hints.connect(
            self.store, contents=lambda subject: self.own.get(subject, ()), wanted=lambda *_: True
        )
        self.post = Post(name)
        self.hints.deliver_by(self.post)

    def _time(self) -> int:
        self.now_ms += 50
        return self.now_ms

    def add(self, subject: str, *hashes: int) -> None:
        for block_hash in hashes:
            self.own.setdefault(subject, []).append(block_hash)
            self.hints.add(subject, block_hash)


def met(*sides: Side) -> None:
    for number, side in enumerate(sides):
        side.hints.begin(number + 1)
        side.post.peers = {other.name: other.hints for other in sides if other is not side}
        living = {other.name: at + 1 for at, other in enumerate(sides) if other is not side}
        side.hints.set_peers(living)


@asynccontextmanager
async def running(*sides: Side) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(side.hints.run()) for side in sides]
        yield
        for task in tasks:
            task.cancel()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 (what is waited for sets no events)
            await asyncio.sleep(0.01)


async def test_what_one_has_the_other_holds_and_nothing_is_missing_then() -> None:
    a, b = Side("a"), Side("b")
    a.add("w1", 1, 2)
    met(a, b)
    assert b.hints.missing() == ["a"]
    async with running(a, b):
        await until(lambda: b.store.of("a") == {"w1": {1, 2}})
        await until(lambda: not a.hints.missing() and not b.hints.missing())
        a.hints.mention("w2", [9])
        await until(lambda: b.store.mentioned == [("a", "w2", (9,))])
    assert a.counters.get("hint_call", "sent") > 0
    assert b.counters.get("hint_call", "served") > 0
    told, heard = a.hints.figures(), b.hints.figures()
    assert (told["told"], heard["heard"], heard["fetched"], heard["refused"]) == (1, 1, 1, 0)
    assert told["sent_bytes"] > 0


async def test_at_rest_nothing_wakes_it_and_a_change_does() -> None:
    a, b = Side("a", digest_ms=100), Side("b", digest_ms=100)
    a.add("w1", 1)
    met(a, b)
    async with running(a, b), asyncio.timeout(60):
        await until(lambda: b.store.of("a") == {"w1": {1}})
        looks = (-1, -1)
        while looks != (a.now_ms, b.now_ms):
            looks = (a.now_ms, b.now_ms)
            await asyncio.sleep(3 * REST_S)
        a.add("w1", 2)
        await until(lambda: b.store.of("a") == {"w1": {1, 2}})
        b.hints.look_again()
        await until(lambda: b.hints.missing() == [])


async def test_alone_it_rests_until_a_peer_comes() -> None:
    a, b = Side("a"), Side("b")
    met(a, b)
    a.hints.set_peers({})
    a.hints.mention("w1", [1])
    async with running(a):
        await asyncio.sleep(0)
        a.hints.set_peers({"b": 2})
        a.hints.mention("w1", [2])
        await until(lambda: b.store.mentioned == [("a", "w1", (2,))])


async def test_a_peer_that_cannot_be_reached_is_not_waited_for() -> None:
    a, b = Side("a"), Side("b")
    met(a, b)
    b.post.silent = True
    assert b.hints.missing() == ["a"]
    async with running(b):
        await until(lambda: b.hints.missing() == [])
    assert b.counters.get("hint_call", "failed") >= 1


async def test_only_so_many_calls_are_under_way_at_a_time() -> None:
    sides = [Side(f"n{number}") for number in range(CALLS_MAX + 4)]
    met(*sides)
    post = sides[0].post
    post.gate = asyncio.Event()
    async with running(sides[0]):
        await until(lambda: post.under_way == CALLS_MAX)
        await asyncio.sleep(0.3)
        assert post.most == CALLS_MAX
        post.gate.set()
        await until(lambda: sides[0].counters.get("hint_call", "sent") >= len(sides) - 1)


async def test_a_mistake_about_hints_is_counted_and_ends_nothing() -> None:
    class Faulty(DictStore):
        def add(self, owner: str, subject: str, hashes: Sequence[int]) -> None:
            raise ZeroDivisionError

    a, b = Side("a"), Side("b", Faulty())
    met(a, b)
    async with running(a, b):
        await until(lambda: not b.hints.missing())
        a.add("w1", 1)
        await until(lambda: b.counters.get("hint_fault") > 0)
        a.hints.mention("w1", [2])
        await until(lambda: b.store.mentioned == [("a", "w1", (2,))])


async def test_without_an_index_nothing_is_said_or_heard() -> None:
    hints = Hints(StateOptions(), now_ms=lambda: 0, counters=Counters())
    hints.deliver_by(Post("a"))
    hints.begin(1)
    hints.set_peers({"b": 1})
    hints.add("w", 1)
    hints.remove("w", 1)
    hints.clear("w")
    hints.mention("w", [1])
    hints.keep_quiet(quiet=True)
    hints.forget("w")
    hints.look_again()
    await hints.run()
    assert hints.missing() == ()
    assert hints.figures() == {}
    with pytest.raises(HintError):
        await hints.answer(NOTHING, "b")


async def test_a_node_alone_has_nobody_to_call() -> None:
    hints = Hints(StateOptions(), now_ms=lambda: 0, counters=Counters())
    hints.connect(DictStore(), contents=lambda _: (), wanted=lambda *_: True)
    hints.begin(1)
    await hints.run()


async def test_a_stranger_is_refused() -> None:
    a = Side("a")
    a.hints.begin(1)
    with pytest.raises(HintError):
        await a.hints.answer(NOTHING, "x")


async def test_what_is_gone_or_wanted_no_more_is_dropped_and_comes_back_when_it_is_wanted() -> None:
    a, b = Side("a"), Side("b")
    a.add("w1", 1)
    met(a, b)
    async with running(a, b):
        await until(lambda: b.store.of("a") == {"w1": {1}})
        b.hints.forget("w1")
        assert b.store.of("a") == {}
        b.hints.look_again()
        await until(lambda: b.store.of("a") == {"w1": {1}})
        a.hints.keep_quiet(quiet=True)
        await until(lambda: b.store.of("a") == {})
        b.hints.set_peers({})
    assert b.hints.missing() == []


async def test_who_was_met_and_is_not_yet_known_as_living_is_missing() -> None:
    a = Side("a")
    a.hints.begin(1)
    assert a.hints.missing() == []
    a.hints.met("b")
    assert a.hints.missing() == ["b"]
    a.hints.set_peers({"c": 1})
    assert a.hints.missing() == ["c"]
    assert a.hints.silent_s() == {}
