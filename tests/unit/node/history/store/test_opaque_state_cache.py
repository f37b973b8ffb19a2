"""A cache keeps each tenant's rows for their time, in any store, and loses them where the store fails."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from smg_node.history.store.opaque_state_cache import (
    CLOSED_REST_S,
    REST_S,
    SWEEP_S,
    OpaqueStateCache,
)
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.open import open_store
from smg_storage.options import Bounds, StoreOptions
from smg_storage.records import NO_TENANT, Access, Item
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import Call, StoreWrapper
from smg_storage.url import parse_store_url
from support.history.history_world import PlainVault

DAY_S = 86_400
KEY, OTHER = "0" * 40, "1" * 40
ROW = b'[["reasoning",0,[["google","signature","AA==",""]],"hm"]]'


class World:
    """A clock, and the shelves of two processes over what `make` opens."""

    def __init__(self, make: Callable[[Callable[[], int]], HistoryStore]) -> None:
        self.s = 1_000.0
        self.opened = 0
        self.counted: list[tuple[str, str]] = []
        self._make = make

    def now_us(self) -> int:
        return 1_760_000_000_000_000 + round(self.s * 1_000_000)

    def open(self) -> HistoryStore:
        self.opened += 1
        return self._make(self.now_us)

    def cache(self, key: bytes = b"k", *, call_s: float = 60.0, **more: Any) -> OpaqueStateCache:
        return OpaqueStateCache(
            self.open,
            PlainVault(key),
            now_us=self.now_us,
            now_s=lambda: self.s,
            kept_s=DAY_S,
            call_s=call_s,
            observe=lambda operation, outcome, _s: self.counted.append((operation, outcome)),
            **more,
        )


@asynccontextmanager
async def cache_of(world: World, **more: Any) -> AsyncIterator[OpaqueStateCache]:
    cache = world.cache(**more)
    try:
        yield cache
    finally:
        await cache.close()


class Shared(StoreWrapper):
    """A store that outlives who closes it, and may fail."""

    def __init__(self, inner: HistoryStore) -> None:
        super().__init__(inner)
        self.failure: Exception | None = None
        self.calls: list[str] = []

    async def _through(self, call: Call, run: Callable[[], Any]) -> Any:
        self.calls.append(call.operation)
        if self.failure is not None:
            raise self.failure
        return await run()

    async def close(self) -> None:
        return


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """Return a world in which all shelves have one store."""
    if request.param == "sqlite":
        url = parse_store_url(f"sqlite:///{tmp_path}/history.db")
        return World(lambda now_us: open_store(url, options=StoreOptions(), now_us=now_us))
    kept: list[Shared] = []

    def make(now_us: Callable[[], int]) -> HistoryStore:
        if not kept:
            kept.append(Shared(MemoryStore(Bounds(), now_us)))
        return kept[0]

    return World(make)


@pytest.fixture
def failing() -> tuple[World, Shared]:
    world = World(lambda now_us: store)
    store = Shared(MemoryStore(Bounds(), world.now_us))
    return world, store


async def test_a_row_is_found_by_its_key(world: World) -> None:
    async with cache_of(world) as cache:
        assert await cache.find("acme", [KEY]) == {}
        await cache.keep("acme", KEY, ROW)
        assert await cache.find("acme", [OTHER, KEY]) == {KEY: ROW}
        assert world.opened == 1


async def test_another_process_finds_it(world: World) -> None:
    async with cache_of(world) as cache, cache_of(world) as other:
        await cache.keep("", KEY, ROW)
        assert await other.find("", [KEY]) == {KEY: ROW}
    async with cache_of(world) as later:
        assert await later.find("", [KEY]) == {KEY: ROW}


async def test_no_tenant_sees_a_row_of_another_one(world: World) -> None:
    async with cache_of(world) as cache:
        await cache.keep("acme", KEY, ROW)
        for tenant in ("", "other", "acm", "acme2"):
            assert await cache.find(tenant, [KEY]) == {}
        await cache.keep("other", KEY, b"[]")
        assert await cache.find("acme", [KEY]) == {KEY: ROW}
        assert await cache.find("other", [KEY]) == {KEY: b"[]"}


async def test_the_first_row_of_a_key_stays_until_it_is_over(world: World) -> None:
    async with cache_of(world) as cache:
        await cache.keep("", KEY, ROW)
        await cache.keep("", KEY, b"[]")
        await cache.keep("", KEY, ROW)
        assert await cache.find("", [KEY]) == {KEY: ROW}
        assert world.counted[:2] == [("keep_state", "ok"), ("keep_state", "conflict")]
        world.s += DAY_S + 1
        assert await cache.find("", [KEY]) == {}
        await cache.keep("", KEY, b"[]")
        assert await cache.find("", [KEY]) == {KEY: b"[]"}


async def test_a_row_that_another_key_sealed_is_not_there(world: World) -> None:
    async with cache_of(world) as cache, cache_of(world, key=b"q") as stranger:
        await cache.keep("", KEY, ROW)
        assert await stranger.find("", [KEY]) == {}


async def test_what_is_over_is_swept(failing: tuple[World, Shared]) -> None:
    world, store = failing
    async with cache_of(world) as cache:
        await cache.keep("", KEY, ROW)
        world.s += SWEEP_S - 1
        await cache.keep("", OTHER, ROW)
        assert "purge" not in store.calls
        world.s += DAY_S
        await cache.keep("", OTHER, ROW)
        assert "purge" in store.calls
        assert (await store.figures(timeout_s=1)).items == 1


async def test_a_store_that_fails_is_left_alone_for_a_while(failing: tuple[World, Shared]) -> None:
    world, store = failing
    async with cache_of(world) as cache:
        await cache.keep("", KEY, ROW)
        store.failure = StoreError(StoreErrorKind.UNAVAILABLE, "away")
        assert await cache.find("", [KEY]) == {}
        calls = len(store.calls)
        store.failure = None
        await cache.keep("", OTHER, ROW)
        assert await cache.find("", [KEY]) == {}
        assert len(store.calls) == calls
        world.s += REST_S
        assert await cache.find("", [KEY, OTHER]) == {KEY: ROW}
    assert world.counted == [
        ("keep_state", "ok"),
        ("find_state", "unavailable"),
        ("keep_state", "away"),
        ("find_state", "away"),
        ("find_state", "ok"),
    ]


@pytest.mark.parametrize("failure", [TimeoutError(), OSError("no"), KeyError("what")])
async def test_no_failure_is_a_callers(failing: tuple[World, Shared], failure: Exception) -> None:
    world, store = failing
    store.failure = failure
    async with cache_of(world) as cache:
        await cache.keep("", KEY, ROW)
        assert await cache.find("", [KEY]) == {}


async def test_a_store_that_hangs_is_waited_for_a_moment(
    failing: tuple[World, Shared], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, store = failing

    async def hang(access: Access, ids: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(store, "find_items", hang)
    async with cache_of(world, call_s=0.01) as cache:
        assert await cache.find("", [KEY]) == {}


async def test_a_store_that_cannot_be_opened_is_tried_again_later() -> None:
    stores: list[HistoryStore] = []

    def make(now_us: Callable[[], int]) -> HistoryStore:
        if not stores:
            raise ValueError("there is no such store")
        return stores[0]

    world = World(make)
    async with cache_of(world) as cache:
        await cache.keep("", KEY, ROW)
        assert await cache.find("", [KEY]) == {}
        assert world.opened == 1
        stores.append(MemoryStore(Bounds(), world.now_us))
        world.s += REST_S
        await cache.keep("", KEY, ROW)
        assert world.opened == 1
        world.s += CLOSED_REST_S - REST_S
        await cache.keep("", KEY, ROW)
        assert await cache.find("", [KEY]) == {KEY: ROW}


async def test_many_who_come_first_open_one_store(world: World) -> None:
    async with cache_of(world) as cache:
        await asyncio.gather(*(cache.keep("", f"{n:040x}", ROW) for n in range(20)))
        assert world.opened == 1
        assert len(await cache.find("", [f"{n:040x}" for n in range(20)])) == 20


async def test_many_who_wait_for_a_store_that_cannot_be_opened_wait_once() -> None:
    def closed(now_us: Callable[[], int]) -> HistoryStore:
        raise StoreError(StoreErrorKind.UNAVAILABLE, "it is not there")

    world = World(closed)
    async with cache_of(world) as cache:
        found = await asyncio.gather(*(cache.find("t", [KEY]) for _ in range(5)))
        assert found == [{}] * 5
        assert world.opened == 1
        assert world.counted.count(("find_state", "away")) == 4


async def test_a_full_cache_takes_nothing_until_the_oldest_hour_is_over(
    failing: tuple[World, Shared],
) -> None:
    world, store = failing
    async with cache_of(world, bytes_max=200) as cache:
        for number in range(4):
            await cache.keep("", f"{number:040x}", ROW)
        assert store.calls.count("create_item") == 2
        world.s += 23 * 3_600
        await cache.keep("", KEY, ROW)
        assert store.calls.count("create_item") == 2
        world.s += 3_600
        await cache.keep("", OTHER, ROW)
        assert store.calls.count("create_item") == 3


async def test_an_item_that_is_none_of_the_shelfs_is_left_out(
    failing: tuple[World, Shared],
) -> None:
    world, store = failing
    foreign = [b"{}", b'"no base64!"', b'"' + base64.b64encode(b"\xff\xfe") + b'"']
    async with cache_of(world) as cache:
        for number, document in enumerate(foreign):
            item = Item(f"state_{number:040x}", "message", document, world.now_us())
            await store.create_item(Access(NO_TENANT), item)
        assert await cache.find("", [f"{n:040x}" for n in range(len(foreign))]) == {}


async def test_a_closed_cache_opens_nothing(world: World) -> None:
    cache = world.cache()
    await cache.close()
    await cache.keep("", KEY, ROW)
    assert await cache.find("", [KEY]) == {}
    assert world.opened == 0
