import asyncio
import random
from collections.abc import Sequence

import pytest

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.io.rights import rights_queue as waiting
from smg_mesh.io.rights.rights_queue import RightsQueue

SOON_S = 30.0


def empty() -> Share:
    return Share(Limit("k#requests/1000", "requests", 10, 1000))


async def begun(
    group: asyncio.TaskGroup, line: RightsQueue, share: Share, *costs: int
) -> Sequence["asyncio.Task[bool]"]:
    tasks = [group.create_task(line.wait(share, cost, SOON_S)) for cost in costs]
    await asyncio.sleep(0)
    return tasks


async def test_they_go_in_order_as_far_as_there_is_room() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        first, second, third = await begun(group, line, share, 2, 5, 1)
        share.left = 4
        line.look(share)
        assert await first
        # The second is too large, and nobody overtakes it.
        await asyncio.sleep(0)
        assert not second.done()
        assert not third.done()
        share.left = 6
        line.look(share)
        assert await second
        assert await third
        assert not line


async def test_what_he_was_called_for_is_there_when_he_goes_on() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        share.left = 1
        seen: list[tuple[bool, int, int]] = []

        async def one() -> None:
            seen.append((await line.wait(share, 3, SOON_S), share.left, share.spent))

        group.create_task(one())
        await asyncio.sleep(0)
        share.left += 4
        line.look(share)
        # Whoever comes in this turn finds what is left beyond it.
        assert (share.left, share.spent, share.wanted) == (2, 3, 0)
    assert seen == [(True, 5, 0)]


async def test_what_was_kept_for_him_goes_with_its_window() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        [called] = await begun(group, line, share, 3)
        share.left = 3
        line.look(share)
        share.window, share.left, share.spent = share.window + 1, 7, 0
        assert await called
        assert (share.left, share.spent) == (7, 0)


async def test_who_is_called_and_goes_away_leaves_it_to_others() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        [called] = await begun(group, line, share, 3)
        share.left = 3
        line.look(share)
        assert share.left == 0
        called.cancel()
        await asyncio.gather(called, return_exceptions=True)
        assert called.cancelled()
        assert (share.left, share.spent) == (3, 0)


async def test_who_is_called_in_the_turn_in_which_his_time_is_over_was_called() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        share.left = 1
        called = group.create_task(line.wait(share, 1, 0.02))
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        loop.call_later(0.001, line.look, share)
        # Both timers are due when the loop comes round: one calls him, the other cancels before he goes on.
        end_s = loop.time() + 0.03
        while loop.time() < end_s:
            pass
        assert await called
        assert not line


async def test_time_that_is_over_means_no() -> None:
    line, share = RightsQueue(), empty()
    assert not await line.wait(share, 1, 0.001)
    assert not line
    assert line.awaited() == []


async def test_who_gives_up_holds_up_nobody() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        first, second = await begun(group, line, share, 9, 1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        share.left = 1
        line.look(share)
        assert await second


async def test_at_most_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.TaskGroup() as group:
        monkeypatch.setattr(waiting, "WAITING_MAX", 2)
        line, share = RightsQueue(), empty()
        two = await begun(group, line, share, 1, 1)
        assert not await line.wait(share, 1, SOON_S)
        line.give_up(share.key)
        assert await asyncio.gather(*two) == [False, False]
        assert not line


async def test_a_crowd_that_comes_at_once_is_all_let_in_when_there_is_enough() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = RightsQueue(), empty()
        crowd = await begun(group, line, share, *[3] * 2_000)
        assert line.costs(share.key) == (3, 6_000)
        assert share.wanted == 6_000
        share.left = 6_000
        line.look(share)
        assert all(await asyncio.gather(*crowd))
        assert share.wanted == 0
        assert not line


@pytest.mark.parametrize("seed", range(30))
async def test_the_line_is_who_waits_in_order_and_what_they_need_together(seed: int) -> None:
    rng = random.Random(seed)
    line, share = RightsQueue(), empty()
    waits: list[tuple[asyncio.Task[bool], int]] = []
    async with asyncio.TaskGroup() as group:
        for _ in range(60):
            what = rng.random()
            if what < 0.5:
                cost = rng.randint(1, 9)
                waits.append((group.create_task(line.wait(share, cost, SOON_S)), cost))
            elif what < 0.75 and waits:
                task, _ = waits.pop(rng.randrange(len(waits)))
                task.cancel()
            else:
                share.left = left = rng.randint(0, 20)
                line.look(share)
                while waits and waits[0][1] <= left:
                    left -= waits.pop(0)[1]
            for _ in range(3):
                await asyncio.sleep(0)
            first = waits[0][1] if waits else 0
            assert line.costs(share.key) == (first, sum(cost for _, cost in waits))
            assert share.wanted == sum(cost for _, cost in waits)
            assert share.spent == 0
            assert bool(line) is bool(waits)
        for task, _ in waits:
            task.cancel()
    assert not line
