import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import BlockStart, Delta, Event
from smg_node.history.ports import HistoryOptions
from smg_node.history.runs import event_log as run_log
from smg_node.history.runs import run_registry as background
from smg_node.history.runs.unsaved_bytes import UnsavedBytes
from smg_node.system_clock import SystemClock
from smg_node.telemetry.traces import request_scope as scope
from smg_storage.records import Access, Status
from support.history.fake_runs import FakeRun
from support.history.history_world import ask_of, begin, context, history_world, no_store
from support.history.run_world import (
    QUICK,
    RunWorld,
    after,
    all_of,
    refused,
    run_world,
    still_world,
)
from support.http.raw_http import until

SMALL = HistoryOptions(background_node_max=3, background_tenant_max=2)


async def test_there_are_so_many_of_a_tenant_and_so_many_on_a_node() -> None:
    async with run_world(options=replace(SMALL)) as world:
        first = await world.begin()
        await world.begin()
        with pytest.raises(SmgError) as found:
            await world.begin()
        assert (found.value.status, found.value.code) == (429, "background_limit")
        assert found.value.retry_after_s is not None
        await world.begin(Access(tenant="other"))
        with pytest.raises(SmgError):
            await world.begin(Access(tenant="third"))
        assert world.store.asked.count("store_response") == 3
        first.cancel()
        await first.ended()
        await until(lambda: world.runs.count == 2)
        await world.begin()


async def test_those_that_are_about_to_begin_count_and_give_back_what_they_took() -> None:
    async with run_world(options=replace(SMALL)) as world:
        release = asyncio.Event()
        world.store.will("store_response", after(release), after(release))
        async with asyncio.TaskGroup() as group:
            two = [group.create_task(world.begin()) for _ in range(2)]
            await until(lambda: world.store.asked.count("store_response") == 2)
            with pytest.raises(SmgError):
                await world.begin()
            two[0].cancel()
            release.set()
        assert world.runs.count == 1
        assert [run.left for run in world.generations.runs[:2]].count(1) == 1


async def test_limits_may_be_changed_meanwhile() -> None:
    async with run_world(options=replace(SMALL)) as world:
        await world.begin()
        world.options.background_node_max = 1
        with pytest.raises(SmgError):
            await world.begin()
        world.options.background_node_max = 2
        await world.begin()


async def test_who_comes_before_the_node_is_up_waits_and_then_is_told() -> None:
    world = still_world()
    async with asyncio.TaskGroup() as group:
        beginning = group.create_task(world.begin())
        await asyncio.sleep(0.01)
        assert not beginning.done()
        assert world.store.asked == []
        carrying = group.create_task(world.runs.run())
        run = await beginning
        run.cancel()
        await run.ended()
        carrying.cancel()


async def test_a_node_that_ends_ends_them_and_says_why() -> None:
    async with run_world() as world:
        run = await world.begin()
        follower = run.follow(-1)
        async with asyncio.TaskGroup() as group:
            heard = group.create_task(all_of(follower))
            world.feed.begin()
            world.feed.say("Hel")
            await until(lambda: world.generations.runs[0].pulled == 2)
            world.runs.cut()
        with pytest.raises(SmgError) as found:
            await world.begin()
        assert (found.value.status, found.value.code) == (503, "draining")
    row = await world.row(run)
    assert row is not None
    assert row.status is Status.FAILED
    shape = msgspec.json.decode(row.response)
    assert shape["error"]["code"] == "server_error"
    assert "shut down" in shape["error"]["message"]
    assert shape["output"][0]["content"][0]["text"] == "Hel"
    assert heard.result() == await world.whole(run)


async def test_a_node_may_end_at_any_moment_and_every_row_tells_the_truth() -> None:
    """It ends at each operation of the store in turn; whatever was begun is final then, or was never heard of."""
    ends = set()
    for moment in range(1, 13):
        carried: list[asyncio.Task[None]] = []
        world = still_world()
        left = [moment]

        def seen(
            operation: str,
            left: list[int] = left,
            carried: list[asyncio.Task[None]] = carried,
        ) -> None:
            left[0] -= 1
            if left[0] == 0:
                carried[0].cancel()

        world.store.seen = seen
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            carried.append(group.create_task(world.runs.run()))
            run = await world.begin()
            heard = group.create_task(all_of(run.follow(-1)))
            world.feed.begin()
            for _ in range(3):
                world.feed.say("x")
                await asyncio.sleep(0.004)
            world.feed.finish()
            await run.ended()
            carried[0].cancel()
        row = await world.row(run)
        assert row is not None
        ends.add(row.status.value)
        assert heard.result() == await world.whole(run)
        assert world.runs.count == 0
        assert world.generations.runs[0].left == 1
    assert ends == {"failed", "completed"}


@pytest.mark.parametrize("deleted", [True, False])
async def test_what_is_written_down_when_the_node_ends_is_never_heard_of(*, deleted: bool) -> None:
    async with run_world() as world:
        release = asyncio.Event()
        world.store.will("store_response", after(release))
        if not deleted:
            world.store.will("delete_response", refused())
        async with asyncio.TaskGroup() as group:
            beginning = group.create_task(_refusal(world))
            await until(lambda: "store_response" in world.store.asked)
            world.runs.cut()
            release.set()
        assert beginning.result() == "draining"
        assert world.generations.runs[0].left == 1
        assert world.generations.runs[0].pulled == 0
        left = await world.store.inner.orphan_runs(now_us=1 << 60, limit=9, timeout_s=1)
        # Where it cannot be deleted, others find an orphan, and end it.
        assert len(left) == (0 if deleted else 1)
        assert world.runs.count == 0


async def _refusal(world: RunWorld) -> str:
    with pytest.raises(SmgError) as found:
        await world.begin()
    return found.value.code


async def test_a_node_that_ends_without_its_store_ends_all_the_same() -> None:
    async with run_world(pace=replace(QUICK, shut_s=0.05)) as world:
        run = await world.begin()
        world.feed.begin()
        await until(lambda: world.runs.appends > 0)
        world.store.away = True
    assert run.lost
    assert world.generations.runs[0].closed.is_set()
    row = await world.row(run)
    assert row is not None
    assert row.status is Status.QUEUED


async def test_what_is_counted_adds_up() -> None:
    async with run_world() as world:
        done, gone, given_up = [await world.begin() for _ in range(3)]
        assert (world.runs.begun, world.runs.count) == ({"background": 3, "resumable": 0}, 3)
        given_up.cancel()
        await given_up.ended()
        await world.desks.responses.delete(world.access, gone.id)
        await gone.ended()
        world.feed.all_of("Hello")
        await done.ended()
        await until(lambda: world.runs.count == 0)
        assert world.runs.ended == {"cancelled": 1, "lost": 1, "completed": 1}
        assert world.runs.appends > 1
        assert (world.runs.held_bytes, world.runs.lag_s()) == (0, 0.0)


async def test_its_end_is_logged_with_whose_request_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []
    async with run_world() as world:
        scope.enter(("req_77", scope.NO_TRACE))
        run = await world.begin(Access(tenant="acme", request_id="req_77"))
        scope.enter(("req_78", scope.NO_TRACE))
        world.store.seen = lambda operation: seen.append(scope.current().request_id)
        with caplog.at_level(logging.INFO):
            world.feed.all_of("Hello")
            await run.ended()
            await until(lambda: world.runs.count == 0)
    fields = [getattr(record, "fields", {}) for record in caplog.records]
    told = [one for one in fields if one.get("event") == "response_ended"]
    assert [(one["response"], one["request_id"], one["status"]) for one in told] == [
        (run.id, "req_77", "completed")
    ]
    assert set(seen) == {"req_77"}


# ── Let in ───────────────────────────────────────────────────────────────────


async def test_who_is_not_let_in_is_told_so_and_nothing_is_written() -> None:
    async with run_world() as world:
        made = world.generations

        async def refuse() -> None:
            raise SmgError(ErrorKind.RATE_LIMITED, "too many", retry_after_s=1.0)

        start = made.start

        def refusing(*asked: object) -> object:
            run = start(*asked)  # type: ignore[arg-type]  # as it was called
            run.enter = refuse  # type: ignore[method-assign]  # nobody is let in today
            return run

        made.start = refusing  # type: ignore[method-assign, assignment]  # see above
        with pytest.raises(SmgError) as found:
            await world.begin()
        assert found.value.status == 429
        assert world.store.asked == []
        assert world.runs.count == 0
        assert made.runs[0].left == 1


async def test_a_background_response_has_its_own_time() -> None:
    async with run_world(options=HistoryOptions(background_deadline_s=100.0)) as world:
        run = await world.begin()
        context = world.generations.runs[0].context
        now_s = SystemClock().monotonic_s()
        assert now_s + 90 < context.deadline_s < now_s + 110
        assert world.generations.runs[0].entered == 1
        assert run.made.generation is world.generations.runs[0]


async def test_where_nothing_is_kept_nothing_is_made_in_the_background() -> None:
    world = history_world(store=no_store())
    ask = ask_of(input="hi", background=True)
    assert world.desks.responses.registers(ask, world.access)
    with pytest.raises(SmgError) as found:
        await world.desks.responses.register(ask, context(), world.access)
    assert (found.value.status, found.value.where) == (400, "background")


# ── Many, and much ───────────────────────────────────────────────────────────


async def test_however_many_there_are_only_so_many_write_into_their_logs_at_a_time() -> None:
    options = HistoryOptions(background_tenant_max=2_000)
    now, most = 0, 0
    async with run_world(options=options) as world:

        async def counted(run: object) -> object:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1
            return await run()  # type: ignore[operator]  # what the store would do

        world.store.will("append_events", *[counted] * 5_000)
        runs = [await world.begin() for _ in range(300)]
        for run in runs:
            run.cancel()
        for run in runs:
            await run.ended()
        await until(lambda: world.runs.count == 0)
        assert world.runs.ended == {"cancelled": 300}
    assert 1 < most <= 16


async def test_a_generation_waits_when_the_store_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_log, "NEW_BYTES_MAX", 20_000)
    async with run_world() as world:
        run = await world.begin()
        world.store.will("append_events", *[refused()] * 60)
        world.feed.begin()
        for _ in range(400):
            world.feed.put(Delta(0, 0, "word " * 10, 1))
        await until(lambda: world.runs.held_bytes > 20_000)
        await asyncio.sleep(0.02)
        assert world.generations.runs[0].pulled < 200
        assert world.runs.held_bytes < 22_000
        await until(lambda: world.generations.runs[0].pulled == 401)
        run.cancel()
        await run.ended()
        assert len(await world.log(run)) > 400


async def test_all_generations_wait_when_all_of_them_together_have_said_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "UnsavedBytes", lambda: UnsavedBytes(20_000))

    async def talkative(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), BlockStart(0, 0, "text")]
        for _ in range(100):
            yield [Delta(0, 0, "word " * 10, 1)]
        await asyncio.Event().wait()

    async with run_world() as world:
        world.generations.script = talkative
        world.store.will("append_events", *[refused()] * 100)
        runs = [await world.begin() for _ in range(3)]
        await until(lambda: world.runs.held_bytes >= 20_000)
        await asyncio.sleep(0.02)
        assert world.runs.held_bytes < 26_000
        assert sum(run.pulled for run in world.generations.runs) < 120
        await until(lambda: sum(run.pulled for run in world.generations.runs) == 303)
        for run in runs:
            run.cancel()
            await run.ended()
        assert world.runs.held_bytes == 0


async def test_who_waits_for_them_to_be_over_hears_of_each() -> None:
    async with run_world() as world:
        heard: list[int] = []
        world.runs.changed = lambda: heard.append(world.runs.count)
        runs = [await world.begin() for _ in range(2)]
        for run in runs:
            run.cancel()
            await run.ended()
        await until(lambda: world.runs.count == 0)
        assert heard == [1, 0]
