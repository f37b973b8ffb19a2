"""The loop of prefix sharing: in what turns it takes hints in, and when it rests."""

import asyncio
from itertools import pairwise

import pytest

from smg_node.cluster.prefix_hints.prefix_sharing import TICK_S
from support.fleet.prefix_hint_world import SharingWorld


async def test_its_loop_takes_in_much_by_and_by_and_lets_others_have_their_turns() -> None:
    world = SharingWorld("a", "b", "c", "d")
    world.run(1)
    node = world["d"]
    node.sharing.replace("a", "w1", range(40_000))
    turns: list[float] = []
    async with asyncio.TaskGroup() as group:
        running = group.create_task(node.sharing.run())
        async with asyncio.timeout(20):
            while node.knows("w1", 39_999) == 0.0:
                turns.append(node.sharing.waiting)
                await asyncio.sleep(0)
            node.sharing.add("a", "w1", [77_777])
            assert node.knows("w1", 77_777) == 1.0
        running.cancel()
    assert len(turns) > 10
    assert all(before >= after for before, after in pairwise(turns))


async def test_without_workers_its_loop_rests_and_one_that_comes_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SharingWorld("a", "b", workers=())
    world.run(1)
    node = world["a"]
    looks: list[bool] = []
    monkeypatch.setattr(node.door, "keep_quiet", lambda *, quiet: looks.append(quiet))
    async with asyncio.TaskGroup() as group, asyncio.timeout(60):
        running = group.create_task(node.sharing.run())
        before = -1
        while before != len(looks):
            before = len(looks)
            await asyncio.sleep(3 * TICK_S)
        node.fleet.change("w1")
        while len(looks) < before + 2:  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.01)
        running.cancel()


async def test_a_worker_that_comes_while_its_loop_takes_hints_in_ends_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = SharingWorld("a", "b", workers=())
    world.run(1)
    node = world["a"]
    looks: list[bool] = []
    slices = iter((False, True, True))

    def work() -> bool:
        more = next(slices, False)
        if more:
            # Before the loop waits again.
            asyncio.get_running_loop().call_soon(node.fleet.change, "w1")
        return more

    async with asyncio.TaskGroup() as group, asyncio.timeout(20):
        running = group.create_task(node.sharing.run())
        await asyncio.sleep(0)
        monkeypatch.setattr(node.sharing._queue, "work", work)
        monkeypatch.setattr(node.door, "keep_quiet", lambda *, quiet: looks.append(quiet))
        next(slices)
        node.sharing._work.set()
        while not looks:  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.01)
        running.cancel()
