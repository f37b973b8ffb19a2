import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.history.store import retention_sweeper as module
from smg_node.history.store.retention_sweeper import BATCH, Sweeper, drawn
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import StoreFigures
from support.http.raw_http import until


class DirtyStore(MemoryStore):
    """A store with so many rows that are over."""

    def __init__(self, over: int, *, shared: bool = False) -> None:
        super().__init__(Bounds(), lambda: 0)
        self.over = over
        self.batches: list[int] = []
        self.counted = 0
        self.away = False
        self._is_shared = shared

    @property
    def shared(self) -> bool:
        return self._is_shared

    async def purge(self, *, now_us: int, batch: int, timeout_s: float) -> int:
        if self.away:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "it is away")
        gone = min(self.over, batch)
        self.over -= gone
        self.batches.append(gone)
        return gone

    async def figures(self, *, timeout_s: float) -> StoreFigures:
        self.counted += 1
        return StoreFigures(responses=self.over)


def sweeper_of(store: DirtyStore, *living: str, name: str = "a", now_s: float = 1.0) -> Sweeper:
    return Sweeper(
        store,
        name,
        living=lambda: living,
        now_us=lambda: 1,
        now_s=lambda: now_s,
        every_s=lambda: 0.01,
    )


async def test_all_that_is_over_goes_in_batches() -> None:
    store = DirtyStore(2 * BATCH + 3)
    sweeper = sweeper_of(store, "a")
    await sweeper.sweep()
    assert store.batches == [BATCH, BATCH, 3]
    assert sweeper.purged == 2 * BATCH + 3
    assert sweeper.figures.responses == 0


async def test_nine_tenths_of_the_time_nothing_is_done() -> None:
    times = iter([0.0, 0.01, *[1.0] * 99])
    store = DirtyStore(BATCH)
    sweeper = Sweeper(
        store,
        "a",
        living=lambda: ["a"],
        now_us=lambda: 1,
        now_s=lambda: next(times),
        every_s=lambda: 0.01,
    )
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await sweeper.sweep()
    assert loop.time() - began_s >= 0.08


async def test_rows_are_counted_now_and_then_only() -> None:
    store = DirtyStore(0)
    sweeper = sweeper_of(store, "a")
    for _ in range(5):
        await sweeper.sweep()
    assert store.counted == 1


async def test_who_was_to_sweep_once_a_day_hears_that_it_is_to_do_so_more_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "NAP_S", 0.01)
    store, every_s = DirtyStore(3), [86_400.0]
    sweeper = Sweeper(
        store,
        "a",
        living=lambda: ["a"],
        now_us=lambda: 1,
        now_s=lambda: 1.0,
        every_s=lambda: every_s[0],
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sweeper.run())
        await asyncio.sleep(0.03)
        assert store.batches == []
        every_s[0] = 0.02
        await until(lambda: sweeper.purged == 3)
        task.cancel()


async def test_a_store_that_is_away_is_swept_the_next_time() -> None:
    store = DirtyStore(3)
    store.away = True
    sweeper = sweeper_of(store, "a")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sweeper.run())
        await asyncio.sleep(0.03)
        store.away = False
        await until(lambda: sweeper.purged == 3)
        task.cancel()


async def test_one_node_sweeps_a_store_that_all_share() -> None:
    names = ("a", "b", "c")
    sweeping = [
        name for name in names if sweeper_of(DirtyStore(1, shared=True), *names, name=name).mine
    ]
    assert len(sweeping) == 1
    rest = [name for name in names if name not in sweeping]
    again = [name for name in rest if sweeper_of(DirtyStore(1, shared=True), *rest, name=name).mine]
    assert len(again) == 1


async def test_each_node_sweeps_what_is_its_own() -> None:
    names = ("a", "b", "c")
    assert all(sweeper_of(DirtyStore(1), *names, name=name).mine for name in names)


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=8, unique=True))
def test_all_agree_who_sweeps(names: list[str]) -> None:
    assert len({drawn(names, name) for name in names}) == 1
    assert drawn(names[::-1], names[0]) == drawn(names, names[0])
