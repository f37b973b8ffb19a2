"""The event log wakes whoever waits for it, and lets runs wait while too much is not in the store."""

import asyncio
from collections.abc import Sequence

import pytest

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs.event_log import RunLog
from smg_node.history.runs.event_log_reader import LogReader
from smg_node.history.runs.unsaved_bytes import UnsavedBytes
from smg_storage.records import EventBlob


def event(number: int, kind: str = "step.delta") -> NumberedEvent:
    return NumberedEvent(number, kind, b"{}")


class Logged:
    """A log whose writes wait until they are let through."""

    def __init__(self, *, bytes_max: int = 1 << 20, flush_s: float = 0.0) -> None:
        self.blobs: list[EventBlob] = []
        self.may_write = asyncio.Event()
        self.ours = True
        self.seen: list[str] = []
        self.held = UnsavedBytes(bytes_max)
        self.log = RunLog(
            self._write,
            self._read,
            held=self.held,
            now_s=lambda: 0.0,
            is_ours=lambda: self.ours,
            on_refused=self._refused,
            flush_s=flush_s,
            followed_flush_s=flush_s,
        )

    async def _write(self, blobs: Sequence[EventBlob]) -> None:
        await self.may_write.wait()
        self.blobs.extend(blobs)

    def _read(self, after: int) -> LogReader:
        raise AssertionError(f"nobody is behind: {after}")

    def _refused(self, failure: SmgError) -> None:
        raise AssertionError(failure)

    async def hear(self, after: int = -1, *, at_once: bool = True) -> list[int]:
        heard = []
        async for told in self.log.follow(
            after,
            at_once=at_once,
            came=lambda: self.seen.append("came"),
            left=lambda: self.seen.append("left"),
        ):
            heard += [one.sequence for one in told]
        return heard


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("sizes", [(1,) * 6, (2, 1, 3), (6,)])
async def test_followers_of_any_kind_get_every_event_once(sizes: tuple[int, ...]) -> None:
    logged = Logged()
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(logged.log.keep())
        direct = group.create_task(logged.hear())
        durable = group.create_task(logged.hear(at_once=False))
        late = group.create_task(logged.hear(2))
        number = 0
        for size in sizes:
            logged.log.say([event(number + at) for at in range(size)])
            number += size
            await turns()
        assert logged.log.next == 0
        logged.may_write.set()
        await logged.log.written()
        logged.log.finish(event(logged.log.next, "interaction.completed"))
        assert await direct == await durable == list(range(7))
        assert await late == [3, 4, 5, 6]
        keeping.cancel()
    assert sorted(logged.seen) == ["came"] * 3 + ["left"] * 3


async def test_a_follower_that_went_away_while_it_waited_keeps_nothing_from_the_others() -> None:
    logged = Logged()
    async with asyncio.TaskGroup() as group:
        gone, there = [group.create_task(logged.hear()) for _ in range(2)]
        await turns()
        gone.cancel()
        await turns()
        assert logged.seen == ["came", "came", "left"]
        logged.log.say([event(0)])
        logged.log.finish(event(1, "interaction.completed"), unwritten=True)
        assert await there == [0, 1]


async def test_what_another_node_may_own_is_told_once_it_is_durable() -> None:
    logged = Logged()
    logged.ours = False
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(logged.log.keep())
        follower = logged.log.follow(-1, at_once=True)
        first = group.create_task(anext(follower))
        logged.log.say([event(0)])
        await turns(9)
        assert not first.done()
        logged.may_write.set()
        assert [one.sequence for one in await first] == [0]
        keeping.cancel()
        await follower.aclose()


async def test_room_is_waited_for_only_where_there_is_none() -> None:
    logged = Logged(bytes_max=300)
    assert logged.log.has_room
    logged.log.say([event(0)])
    assert logged.log.has_room
    logged.log.say([event(1)])
    assert not logged.log.has_room
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(logged.log.keep())
        waiting = group.create_task(logged.log.room())
        await turns()
        assert not waiting.done()
        logged.may_write.set()
        await waiting
        assert logged.log.has_room
        keeping.cancel()


# ── Of all runs together ─────────────────────────────────────────────────────


async def test_there_is_room_as_long_as_less_is_held_than_may_be() -> None:
    held = UnsavedBytes(100)
    held.add(99)
    assert held.has_room
    await held.room()
    held.add(1)
    assert not held.has_room
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(held.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        held.remove(1)
    assert held.bytes == 99


async def test_what_was_never_held_cannot_be_given_back() -> None:
    with pytest.raises(AssertionError):
        UnsavedBytes(100).remove(1)


async def test_who_waits_for_what_was_said_so_far_does_not_wait_for_what_comes_later() -> None:
    logged = Logged(flush_s=1e9)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        keeping = group.create_task(logged.log.keep())
        assert await logged.log.kept()
        logged.log.say([event(0), event(1)])
        await turns()
        assert not logged.blobs
        waiting = group.create_task(logged.log.kept())
        await turns()
        logged.log.say([event(2)])
        logged.may_write.set()
        assert await waiting
        await turns()
        assert [(blob.first, blob.last) for blob in logged.blobs] == [(0, 1)]
        lost = group.create_task(logged.log.kept())
        logged.may_write.clear()
        await turns()
        logged.log.finish(None)
        assert not await lost
        keeping.cancel()
