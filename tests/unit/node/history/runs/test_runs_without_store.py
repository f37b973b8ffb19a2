import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from smg_node.core.errors import SmgError
from smg_node.history.ports import HistoryOptions
from smg_node.history.turns.turn_record import without_output
from smg_storage.errors import StoreErrorKind
from smg_storage.hooks import NamedHook, Payload, Reject, Replace
from smg_storage.records import Patch, Status, StoredResponse
from support.history.run_world import (
    QUICK,
    Act,
    all_of,
    final,
    refused,
    run_world,
    unknown,
)
from support.http.raw_http import until
from support.stores.storage_hooks import Witness

# ── The store is away ────────────────────────────────────────────────────────


async def test_who_cannot_be_written_down_is_refused() -> None:
    async with run_world() as world:
        world.store.will("store_response", refused())
        with pytest.raises(SmgError) as found:
            await world.begin()
        assert (found.value.status, found.value.code) == (503, "store_unavailable")
        assert world.runs.count == 0
        assert world.generations.runs[0].left == 1
        assert world.generations.runs[0].pulled == 0


@pytest.mark.parametrize("act", [refused(), unknown()], ids=["undone", "unknown"])
@pytest.mark.parametrize("operation", ["append_events", "renew_run", "commit_turn"])
@pytest.mark.parametrize("times", [1, 7])
async def test_what_the_store_fails_at_is_done_again_until_it_is_done_once(
    operation: str, act: Act, times: int
) -> None:
    async with run_world() as world:
        world.store.will(operation, *[act] * times)
        run = await world.begin()
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.begin()
            for number in range(20):
                world.feed.say(f"{number} ")
                await asyncio.sleep(0.004)
            world.feed.finish()
        assert not world.store.acts[operation]
        assert heard.result() == await world.whole(run)
        assert await final(world, run) is Status.COMPLETED


async def test_while_the_store_is_away_it_is_made_and_nothing_is_told() -> None:
    async with run_world() as world:
        run = await world.begin()
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.begin()
            await until(lambda: world.runs.lag_s() == 0.0 and world.runs.appends > 0)
            world.store.away = True
            said = len(await world.log(run))
            for _ in range(50):
                world.feed.say("word ")
            world.feed.finish()
            await until(lambda: world.generations.runs[0].finished)
            await asyncio.sleep(0.05)
            assert len(await world.log(run)) == said
            assert not heard.done()
            assert world.runs.lag_s() > 0
            assert world.runs.held_bytes > 0
            world.store.away = False
        assert heard.result() == await world.whole(run)
        assert await final(world, run) is Status.COMPLETED
        assert world.runs.held_bytes == 0


async def test_who_is_not_the_owner_any_more_stops_and_writes_nothing() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.begin()
        await until(lambda: world.runs.appends > 0)
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            later_us = 1 << 60
            lease = await world.store.inner.claim_run(
                run.access, run.id, "n2/b", now_us=later_us, until_us=later_us + 1
            )
            assert lease is not None
            await run.ended()
        assert (run.lost, run.outcome) == (True, "lost")
        told = heard.result()
        assert told == (await world.log(run))[: len(told)]
        row = await world.row(run)
        assert row is not None
        assert (row.status, row.owner) == (Status.QUEUED, "n2/b")
        assert world.generations.runs[0].closed.is_set()
        await until(lambda: world.runs.count == 0)


async def test_an_owner_who_was_away_too_long_finds_out_with_whatever_he_does_next() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.begin()
        await until(lambda: world.runs.appends > 0)
        before = await world.log(run)
        world.store.away = True
        world.feed.say("Hel")
        world.feed.finish()
        await until(lambda: world.generations.runs[0].finished)
        later_us = 1 << 60
        lease = await world.store.inner.claim_run(
            run.access, run.id, "n2/b", now_us=later_us, until_us=later_us + 1
        )
        assert lease is not None
        world.store.away = False
        await run.ended()
        assert run.lost
        assert await world.log(run) == before
        row = await world.row(run)
        assert row is not None
        assert row.status is Status.QUEUED
        assert not {"commit_turn", "patch_response"} & {*world.store.asked}


async def test_what_is_deleted_is_not_made_any_more_and_does_not_come_back() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.begin()
        await until(lambda: world.runs.appends > 0)
        await world.desks.responses.delete(world.access, run.id)
        assert world.runs.find("acme", run.id) is None
        await run.ended()
        assert run.lost
        assert await world.row(run) is None
        assert await world.log(run) == []
        assert world.generations.runs[0].closed.is_set()


async def test_what_is_deleted_by_another_node_is_not_made_any_more() -> None:
    async with run_world() as world:
        run = await world.begin()
        world.feed.begin()
        await world.store.inner.delete_response(run.access, run.id)
        await run.ended()
        assert run.lost
        assert await world.row(run) is None


# ── Ends that the store does not take ────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (StoreErrorKind.REJECTED, 0),
        (StoreErrorKind.TOO_LARGE, 0),
        (StoreErrorKind.BAD_REFERENCE, 1),
        (StoreErrorKind.CORRUPT, 1),
        (StoreErrorKind.CONFLICT, 1),
    ],
)
async def test_an_end_that_is_not_taken_has_failed_in_the_row_and_for_who_follows(
    kind: StoreErrorKind, shown: int
) -> None:
    async with run_world() as world:
        world.store.will("commit_turn", refused(kind))
        run = await world.begin()
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.all_of("Hello")
        assert await final(world, run) is Status.FAILED
        assert heard.result() == await world.whole(run)
        row = await world.row(run)
        assert row is not None
        shape = msgspec.json.decode(row.response)
        assert shape["error"]["code"] in ("server_error", "invalid_prompt")
        assert len(shape["output"]) == shown
        assert run.body() == row.response
        assert run.outcome == "failed"


@pytest.mark.parametrize("act", [refused(), unknown()], ids=["undone", "unknown"])
async def test_also_that_is_tried_until_it_is_done(act: Act) -> None:
    async with run_world() as world:
        world.store.will("commit_turn", refused(StoreErrorKind.CONFLICT))
        world.store.will("patch_response", *[act] * 5)
        run = await world.begin()
        world.feed.all_of("Hello")
        await run.ended()
        assert await final(world, run) is Status.FAILED
        assert not run.lost


@pytest.mark.parametrize("final_there", [True, False])
async def test_an_end_that_comes_after_another_owner_s_is_not_written(*, final_there: bool) -> None:
    async with run_world() as world:
        run = await world.begin()
        later_us = 1 << 60

        async def taken(commit: Callable[[], Awaitable[Any]]) -> Any:
            lease = await world.store.inner.claim_run(
                run.access, run.id, "n2/b", now_us=later_us, until_us=later_us + 1
            )
            assert lease is not None
            if final_there:
                failed = Patch(status=Status.FAILED, response=b"{}")
                await world.store.inner.patch_response(
                    run.access, run.id, failed, from_statuses=[Status.QUEUED], token=lease.token
                )
            return await commit()

        world.store.will("commit_turn", taken)
        world.feed.all_of("Hello")
        await run.ended()
        assert run.lost
        row = await world.row(run)
        assert row is not None
        assert row.status is (Status.FAILED if final_there else Status.QUEUED)
        assert row.owner == "n2/b"


@pytest.mark.parametrize("kind", [StoreErrorKind.TOO_LARGE, StoreErrorKind.REJECTED])
async def test_a_log_that_is_not_taken_ends_it_as_failed_at_what_was_taken(
    kind: StoreErrorKind,
) -> None:
    async with run_world() as world:
        run = await world.begin()
        await until(lambda: world.runs.appends == 1)
        world.store.will("append_events", refused(kind))
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.begin()
            world.feed.say("Hello")
        assert await final(world, run) is Status.FAILED
        whole = await world.whole(run)
        assert heard.result() == whole
        assert [one.type.removeprefix("response.") for one in whole] == [
            "created", "queued", "failed",
        ]  # fmt: skip
        assert world.runs.held_bytes == 0


async def test_who_cannot_keep_the_end_in_time_leaves_it_to_others() -> None:
    options = HistoryOptions(background_deadline_s=0.05)
    async with run_world(options=options, pace=replace(QUICK, end_s=0.05)) as world:
        run = await world.begin()
        world.store.will("commit_turn", *[refused()] * 10_000)
        world.feed.all_of("Hello")
        await run.ended()
        assert run.lost
        row = await world.row(run)
        assert row is not None
        assert row.status is Status.QUEUED


async def test_what_hooks_make_of_it_is_what_everybody_is_told() -> None:
    def shorter(operation: str, payload: Payload) -> Replace | None:
        if not isinstance(payload, StoredResponse) or not payload.status.is_final:
            return None
        return Replace(structs.replace(payload, response=without_output(payload.response)))

    witness = Witness(shorter)
    async with run_world(hooks=[NamedHook("shorter", witness)]) as world:
        run = await world.begin()
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.all_of("Hello")
        assert heard.result() == await world.whole(run)
        assert msgspec.json.decode(run.body())["output"] == []
    assert [seen for seen, _ in witness.after_saw].count("store_response") == 2


async def test_what_a_hook_rejects_is_not_begun_or_has_failed_with_nothing_of_it() -> None:
    said: list[Reject | None] = [Reject("not this"), None, Reject("not that")]
    witness = Witness(lambda operation, payload: said.pop(0))
    async with run_world(hooks=[NamedHook("no", witness)]) as world:
        with pytest.raises(SmgError) as found:
            await world.begin()
        assert (found.value.status, found.value.code) == (403, "storage_rejected")
        run = await world.begin()
        world.feed.all_of("Hello")
        await run.ended()
        assert await final(world, run) is Status.FAILED
        row = await world.row(run)
        assert row is not None
        assert b"Hello" not in row.response
