import asyncio
from collections.abc import Sequence

import pytest

from smg_mesh.escrow.share import Share
from smg_mesh.escrow.words import Limit
from smg_mesh.io import waiting
from smg_mesh.io.waiting import Waiting

SOON_S = 30.0


def empty() -> Share:
    return Share(Limit("k#requests/1000", "requests", 10, 1000))


async def begun(
    group: asyncio.TaskGroup, line: Waiting, share: Share, *costs: int
) -> Sequence["asyncio.Task[bool]"]:
    tasks = [group.create_task(line.wait(share, cost, SOON_S)) for cost in costs]
    await asyncio.sleep(0)
    return tasks


async def test_they_go_in_order_as_far_as_there_is_room() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = Waiting(), empty()
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


async def test_time_that_is_over_means_no() -> None:
    line, share = Waiting(), empty()
    assert not await line.wait(share, 1, 0.001)
    assert not line
    assert line.awaited() == []


async def test_who_gives_up_holds_up_nobody() -> None:
    async with asyncio.TaskGroup() as group:
        line, share = Waiting(), empty()
        first, second = await begun(group, line, share, 9, 1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        share.left = 1
        line.look(share)
        assert await second


async def test_at_most_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asyncio.TaskGroup() as group:
        monkeypatch.setattr(waiting, "WAITING_MAX", 2)
        line, share = Waiting(), empty()
        two = await begun(group, line, share, 1, 1)
        assert not await line.wait(share, 1, SOON_S)
        line.give_up(share.key)
        assert await asyncio.gather(*two) == [False, False]
        assert not line
