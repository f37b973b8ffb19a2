import asyncio

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.stored_replay import replayed
from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.event_following import attended
from smg_storage.records import EventBlob, Status
from support.history.remote_run import ID, Elsewhere, RunHere, body_of, broken, every

# ── Under way here ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", [None, 0, 4])
async def test_a_run_of_this_process_is_followed_itself(after: int | None) -> None:
    there = Elsewhere()
    run = RunHere(there.told[:3], there.told[3:])
    from_number = -1 if after is None else after
    events = await there.following(run=run).follow(there.access, ID, after)
    assert await every(events) == there.told[from_number + 1 :]
    assert (run.asked, run.letting_go) == ([from_number], [ID])


async def test_a_run_that_is_lost_to_another_owner_goes_on_from_the_store() -> None:
    there = await Elsewhere().whole(4)
    for cut in range(len(there.told)):
        run = RunHere(there.told[:cut])
        events = await there.following(run=run).follow(there.access, ID, None)
        assert await every(events) == there.told


async def test_a_run_that_is_lost_before_anything_was_logged_is_told_again_when_it_is_over() -> (
    None
):
    there = Elsewhere()
    await there.end()
    events = await there.following(run=RunHere()).follow(there.access, ID, None)
    assert await every(events) == replayed(there.response)


async def test_whoever_asks_beyond_the_end_of_a_run_gets_nothing() -> None:
    there = await Elsewhere().whole(4)
    last = there.told[-1].sequence
    run = RunHere(there.told)
    assert await every(await there.following(run=run).follow(there.access, ID, last)) == []


async def test_a_follower_that_leaves_lets_go_of_the_run() -> None:
    there = Elsewhere()
    run = RunHere(there.told[:3], there.told[3:])
    events = await there.following(run=run).follow(there.access, ID, None)
    await anext(events)
    assert run.letting_go == []
    await events.aclose()
    assert run.letting_go == [ID]


async def test_a_follower_that_leaves_while_it_waits_costs_nothing_more() -> None:
    there = Elsewhere()
    await there.begin()
    waiting = asyncio.Event()

    async def sleep(_wait_s: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    events = await there.following(sleep=sleep).follow(there.access, ID, None)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(every(events))
        await waiting.wait()
        task.cancel()
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_who_was_told_before_it_was_durable_is_not_told_what_another_owner_says() -> None:
    there = await Elsewhere().whole(4)
    assert await every(attended(RunHere(there.told))) == there.told
    told, error = await broken(attended(RunHere(there.told[:5])))
    assert told == there.told[:5]
    assert error.code == "stream_lost"


# ── The object ───────────────────────────────────────────────────────────────


async def test_a_snapshot_has_the_items_that_are_over() -> None:
    there = Elsewhere()
    await there.begin()
    following = there.following()
    record = there.row()
    assert await following.snapshot(there.access, record) == there.queued
    whole = body_of(there.response)
    over = 0
    for first in range(len(there.logged)):
        await there.append(first, first + 1)
        over += there.told[first].type == "response.output_item.done"
        shown = body_of(await following.snapshot(there.access, record))
        assert shown["output"] == whole["output"][:over]
        assert shown["status"] == ("queued" if first < 2 else "in_progress")
        queued = body_of(there.queued)
        assert {**shown, "output": [], "status": "queued"} == queued
    assert over == 3


async def test_a_snapshot_of_a_run_of_this_process_is_its_own() -> None:
    there = Elsewhere()
    following = there.following(run=RunHere(body=b'{"a":1}'))
    assert await following.snapshot(there.access, there.row()) == b'{"a":1}'


async def test_a_snapshot_of_what_is_over_is_what_is_kept() -> None:
    there = Elsewhere()
    final = there.row(Status.COMPLETED)
    assert await there.following().snapshot(there.access, final) == there.response


@pytest.mark.parametrize(
    "blob",
    [
        EventBlob(0, 1, b"no"),
        packed([NumberedEvent(1, "t", b'{"type":"t","sequence_number":1}')]),
        packed(
            [
                NumberedEvent(
                    0,
                    "response.output_item.done",
                    b'{"type":"response.output_item.done","sequence_number":0}',
                )
            ]
        ),
    ],
)
async def test_a_snapshot_out_of_a_damaged_log_is_none(blob: EventBlob) -> None:
    there = Elsewhere()
    await there.begin()
    await there.put(blob)
    with pytest.raises(SmgError) as found:
        await there.following().snapshot(there.access, there.row())
    assert found.value.kind is ErrorKind.INTERNAL
