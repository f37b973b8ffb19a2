import asyncio
from contextlib import aclosing
from dataclasses import replace

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Delta, Fail
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.ports import HistoryOptions
from smg_storage.records import Status
from support.history.history_world import question
from support.history.run_world import (
    QUICK,
    after,
    all_of,
    final,
    foreground,
    run_world,
    status_of,
)
from support.http.raw_http import until

# ── Row, log, end ────────────────────────────────────────────────────────────


async def test_the_row_is_there_before_anybody_hears_of_it() -> None:
    async with run_world() as world:
        run = await world.begin(safety_identifier="user-7")
        row = await world.row(run)
        assert row is not None
        assert (row.status, row.background, row.owner) == (Status.QUEUED, True, "n1/0000000a")
        assert (row.lease_token, row.safety_identifier) == (1, "user-7")
        assert row.lease_until_us > row.created_us
        assert row.response == run.body()
        shown = msgspec.json.decode(run.body())
        assert (shown["status"], shown["background"], shown["id"]) == ("queued", True, run.id)
        assert [item["content"] for item in msgspec.json.decode(row.input)] == [
            [{"type": "input_text", "text": "hi"}]
        ]
        assert world.runs.find("acme", run.id) is run
        assert world.runs.find("other", run.id) is None
        world.feed.all_of("Hel", "lo")
        await run.ended()


async def test_it_is_made_with_nobody_there() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.all_of("Hel", "lo")
        await run.ended()
        assert await final(world, run) is Status.COMPLETED
        told = await world.whole(run)
        assert [one.type for one in told[:3]] == [
            "response.created",
            "response.queued",
            "response.in_progress",
        ]
        assert told[-1].type == "response.completed"
        row = await world.row(run)
        assert row is not None
        assert row.response == run.body()
        assert (row.background, row.expires_us > row.completed_us) == (True, True)
        await until(lambda: world.runs.count == 0)
        assert world.runs.find("acme", run.id) is None


async def test_whoever_follows_is_told_what_is_in_the_log_and_then_what_is_in_the_row() -> None:
    async with run_world() as world:
        run = await world.begin()
        followers = [run.follow(at) for at in (-1, -1, 2, 5)]
        async with asyncio.TaskGroup() as group:
            heard = [group.create_task(all_of(one)) for one in followers]
            world.feed.all_of("Hel", "lo")
        whole = await world.whole(run)
        assert [task.result() for task in heard] == [whole, whole, whole[3:], whole[6:]]


async def test_nothing_is_told_that_is_not_in_the_log() -> None:
    async with run_world() as world:
        run = await world.begin()
        release = asyncio.Event()
        world.store.will("append_events", after(release))
        async with aclosing(run.follow(-1)) as events, asyncio.TaskGroup() as group:
            first = group.create_task(anext(events))
            world.feed.begin()
            world.feed.say("Hel")
            await until(lambda: "append_events" in world.store.asked)
            await asyncio.sleep(0.02)
            assert not first.done()
            assert await world.log(run) == []
            release.set()
            told = await first
            assert (await world.log(run))[: len(told)] == told
        world.feed.finish()
        await run.ended()


async def test_the_end_is_told_when_the_row_is_final_and_not_before() -> None:
    async with run_world() as world:
        run = await world.begin()
        release = asyncio.Event()
        world.store.will("commit_turn", after(release))
        heard: list[NumberedEvent] = []

        async def follow() -> None:
            async for told in run.follow(-1):
                heard.extend(told)

        async with asyncio.TaskGroup() as group:
            group.create_task(follow())
            world.feed.all_of("Hel", "lo")
            await until(lambda: "commit_turn" in world.store.asked)
            await asyncio.sleep(0.02)
            # All but the last event are in the log by now; nobody is told more, and nobody is shown more.
            assert heard == await world.log(run)
            assert heard[-1].type == "response.output_item.done"
            assert status_of(run.body()) == "in_progress"
            assert not run._ended.is_set()
            release.set()
        assert heard == await world.whole(run)


async def test_a_conversation_is_appended_to_when_it_is_over() -> None:
    async with run_world() as world:
        made = await world.desks.conversations.create(world.access, (), b"{}")
        conversation = str(msgspec.json.decode(made)["id"])
        run = await world.begin(conversation=conversation)
        world.feed.all_of("Hello")
        await run.ended()
        page = await world.store.newest_items(
            world.access, conversation, items_max=9, bytes_max=9_999
        )
        assert page is not None
        assert [item.role for item in page.items] == ["assistant", "user"]


async def test_it_can_be_continued_when_it_is_over_and_not_before() -> None:
    async with run_world() as world:
        first = await world.begin()
        with pytest.raises(SmgError, match="still queued"):
            await world.begin(previous_response_id=first.id)
        world.feed.all_of("Hello")
        await first.ended()
        second = await world.begin(previous_response_id=first.id, input=[question("more")])
        world.feed.all_of("Yes")
        await second.ended()
        row = await world.row(second)
        assert row is not None
        assert (row.depth, row.previous_response_id) == (1, first.id)


async def test_what_it_failed_with_is_in_the_row_also_if_nothing_was_said() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.put(Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")))
        await run.ended()
        assert await final(world, run) is Status.FAILED
        row = await world.row(run)
        assert row is not None
        error = msgspec.json.decode(row.response)["error"]
        assert error == {"code": "server_error", "message": "the engine died"}
        whole = await world.whole(run)
        assert [one.type.removeprefix("response.") for one in whole] == [
            "created", "queued", "in_progress", "failed",
        ]  # fmt: skip


async def test_a_mistake_of_ours_ends_it_as_failed() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.put(Delta(0, 7, "of no block", 1))
        await run.ended()
        assert await final(world, run) is Status.FAILED


# ── How soon the log follows ─────────────────────────────────────────────────

LAZY = replace(QUICK, flush_s=60.0)
"""A log that does not follow by itself as long as a test takes."""


async def test_an_end_does_not_wait_for_the_log_to_follow_by_itself() -> None:
    async with run_world(pace=LAZY) as world:
        run = await world.begin()
        world.feed.all_of("Hello")
        await run.ended()
        assert await final(world, run) is Status.COMPLETED


async def test_the_log_follows_sooner_where_somebody_waits_for_it() -> None:
    async with run_world(pace=LAZY) as world:
        run = await world.begin()
        world.feed.begin()
        world.feed.say("Hel")
        await until(lambda: world.generations.runs[0].pulled == 2)
        await asyncio.sleep(0.02)
        assert world.runs.appends == 0
        async with aclosing(run.follow(-1)) as events:
            told = await anext(events)
        assert told[-1].type == "response.output_text.delta"
        run.cancel()
        await run.ended()


async def test_much_is_written_at_once_with_nobody_there() -> None:
    async with run_world(pace=LAZY) as world:
        run = await world.begin()
        world.feed.begin()
        for _ in range(30):
            world.feed.say("x" * 10_000)
        await until(lambda: world.runs.appends > 0)
        assert len(await world.log(run)) > 10
        run.cancel()
        await run.ended()


async def test_its_own_client_does_not_hurry_the_log() -> None:
    async with run_world(options=HistoryOptions(resume_grace_s=30.0), pace=LAZY) as world:
        run = await foreground(world)
        world.feed.begin()
        async with aclosing(run.attend()) as events:
            await anext(events)
            await asyncio.sleep(0.02)
            assert world.runs.appends == 0
        run.cancel()
        await run.ended()
