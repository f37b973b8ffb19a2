import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Fail
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.ports import HistoryOptions
from smg_storage.records import Status
from support.history.history_world import ask_of, begin
from support.history.run_world import (
    QUICK,
    RunWorld,
    after,
    all_of,
    final,
    foreground,
    run_world,
    status_of,
)
from support.http.raw_http import until

# ── Stopped ──────────────────────────────────────────────────────────────────


async def test_what_is_cancelled_keeps_what_was_finished_and_says_so() -> None:
    async with run_world() as world:
        run = await world.begin()
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.begin()
            world.feed.say("Hel")
            await until(lambda: world.generations.runs[0].pulled == 2)
            run.cancel()
            run.cancel()
            await run.ended()
        assert await final(world, run) is Status.CANCELLED
        row = await world.row(run)
        assert row is not None
        item = msgspec.json.decode(row.response)["output"][0]
        assert (item["status"], item["content"][0]["text"]) == ("incomplete", "Hel")
        assert heard.result() == await world.whole(run)
        assert heard.result()[-1].type == "response.incomplete"
        assert world.generations.runs[0].closed.is_set()


async def test_a_wish_to_cancel_that_another_node_wrote_down_is_seen() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.begin()
        await world.store.inner.request_cancel(run.access, run.id)
        await run.ended()
        assert await final(world, run) is Status.CANCELLED


async def test_cancelling_at_any_moment_gives_one_end_that_everybody_is_told() -> None:
    """The store lets go at each operation in turn, and somebody cancels right then."""
    ends = set()
    for moment in range(14):
        async with run_world() as world:
            left = [moment]

            def seen(operation: str, left: list[int] = left, world: RunWorld = world) -> None:
                left[0] -= 1
                if left[0] == 0:
                    for one in world.runs._runs.values():
                        one.cancel()

            run = await world.begin()
            world.store.seen = seen
            if moment == 0:
                run.cancel()
            follower = run.follow(-1)
            async with asyncio.TaskGroup() as group:
                heard = group.create_task(all_of(follower))
                world.feed.begin()
                for _ in range(5):
                    world.feed.say("x")
                    await asyncio.sleep(0.004)
                world.feed.finish()
            status = await final(world, run)
            ends.add(status)
            assert heard.result() == await world.whole(run)
            assert run.outcome == status.value
            await until(lambda world=world: world.runs.count == 0)  # type: ignore[misc]  # bound now
            assert world.generations.runs[0].left == 1
    assert ends == {Status.CANCELLED, Status.COMPLETED}


async def test_one_that_takes_too_long_has_failed_and_says_so() -> None:
    async with run_world(options=HistoryOptions(background_deadline_s=0.1)) as world:
        run = await world.begin()
        world.feed.begin()
        await run.ended()
        assert await final(world, run) is Status.FAILED
        row = await world.row(run)
        assert row is not None
        error = msgspec.json.decode(row.response)["error"]
        assert error["code"] == "server_error"
        assert "not finished in the time" in error["message"]


# ── The client of a foreground response ──────────────────────────────────────


async def test_a_client_that_follows_at_another_node_is_not_away() -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=0.2)) as world:
        run = await foreground(world)
        world.feed.begin()
        for _ in range(10):
            await asyncio.sleep(0.05)
            run.followed_elsewhere()
        row = await world.row(run)
        assert row is not None
        assert row.status is Status.IN_PROGRESS
        await run.ended()
        assert await final(world, run) is Status.CANCELLED


async def test_its_own_client_is_told_at_once_and_the_end_when_it_is_kept() -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=30.0)) as world:
        run = await foreground(world)
        row = await world.row(run)
        assert row is not None
        assert (row.status, status_of(row.response)) == (Status.IN_PROGRESS, "in_progress")
        release = asyncio.Event()
        world.store.will("append_events", after(release))
        heard: list[NumberedEvent] = []

        async def attend() -> None:
            async for told in run.attend():
                heard.extend(told)

        async with asyncio.TaskGroup() as group:
            group.create_task(attend())
            world.feed.all_of("Hel", "lo")
            await until(lambda: bool(heard) and heard[-1].type == "response.output_item.done")
            assert await world.log(run) == []
            release.set()
        assert heard == await world.whole(run)
        assert msgspec.json.decode(run.body())["background"] is False


async def test_it_goes_on_without_its_client_for_a_while() -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=0.15)) as world:
        run = await foreground(world)
        world.feed.begin()
        async with aclosing(run.attend()) as events:
            await anext(events)
        world.feed.say("Hel")
        await run.ended()
        assert await final(world, run) is Status.CANCELLED
        assert b"Hel" in run.body()


async def test_whoever_comes_back_in_time_is_told_the_rest() -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=0.2)) as world:
        run = await foreground(world)
        world.feed.begin()
        async with aclosing(run.attend()) as events:
            first = await anext(events)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(run.follow(first[-1].sequence)))
            await asyncio.sleep(0.4)
            world.feed.say("Hel")
            world.feed.finish()
        assert [*first, *heard.result()] == await world.whole(run)
        assert await final(world, run) is Status.COMPLETED


async def test_one_that_fails_before_anything_is_said_leaves_nothing() -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=30.0)) as world:
        run = await foreground(world)
        world.feed.put(Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")))
        told = await all_of(run.attend())
        assert [one.type.removeprefix("response.") for one in told] == [
            "created", "in_progress", "failed",
        ]  # fmt: skip
        assert run.made.failure is not None
        assert await world.row(run) is None
        assert await world.log(run) == []


@pytest.mark.parametrize("said", [False, True])
async def test_that_it_failed_is_told_however_long_it_takes_to_leave_nothing(*, said: bool) -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=30.0)) as world:
        run = await foreground(world)

        async def slow(delete: Callable[[], Awaitable[Any]]) -> Any:
            deleted = await delete()
            await asyncio.sleep(0.1)
            return deleted

        world.store.will("delete_response", slow)
        if said:
            world.feed.put(begin())
        world.feed.put(Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")))
        told = await all_of(run.attend())
        assert told[-1].type == "response.failed"
        assert not run.lost
        assert await world.row(run) is None


async def test_its_client_is_told_nothing_more_once_others_may_own_it() -> None:
    options = HistoryOptions(resume_grace_s=30.0)
    async with run_world(options=options, pace=replace(QUICK, lease_s=0.1)) as world:
        run = await foreground(world)
        heard: list[NumberedEvent] = []

        async def attend() -> None:
            async for told in run.attend():
                heard.extend(told)

        async with asyncio.TaskGroup() as group:
            group.create_task(attend())
            world.feed.begin()
            await until(lambda: bool(heard))
            world.store.away = True
            await asyncio.sleep(0.15)
            count = len(heard)
            world.feed.say("Hel")
            await asyncio.sleep(0.02)
            assert len(heard) == count
            world.store.away = False
            world.feed.finish()
        assert heard == await world.whole(run)


async def test_without_grace_a_stream_is_not_registered() -> None:
    async with run_world() as world:
        desk = world.desks.responses
        assert not desk.registers(ask_of(input="hi", stream=True), world.access)
        world.options.resume_grace_s = 5.0
        assert desk.registers(ask_of(input="hi", stream=True), world.access)
        assert not desk.registers(ask_of(input="hi", stream=True, store=False), world.access)
        assert not desk.registers(ask_of(input="hi"), world.access)
        world.options.background_tenant_max = 0
        assert not desk.registers(ask_of(input="hi", stream=True), world.access)
