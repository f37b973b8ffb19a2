import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import BlockStart, Delta, Event
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.ports import Kept
from smg_node.history.turns.response_run import ResponseRun
from smg_storage.errors import StoreErrorKind
from smg_storage.records import Access, Side, Status, StoredResponse, Turn
from support.history.history_world import (
    HistoryWorld,
    begin,
    block,
    calling,
    cut_short,
    failing,
    failing_late,
    history_world,
    no_store,
    question,
)
from support.http.http_node import FakeRun
from support.http.raw_http import until


async def every(run: ResponseRun) -> list[NumberedEvent]:
    return [one async for told in run.told() for one in told]


async def stored(world: HistoryWorld, run: ResponseRun) -> StoredResponse | None:
    return await world.keeper.store.get_response(world.access, run.id)


async def stuck(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Think, begin to speak, and never go on."""
    yield [begin(), *block(0, "reasoning", "hm"), BlockStart(0, 1, "text")]
    yield [Delta(0, 1, "Hel", 1)]
    await asyncio.Event().wait()


async def test_it_is_kept_before_its_last_event_is_told() -> None:
    world = history_world()
    run = await world.create(input="hi")
    async for told in run.told():
        if told[-1].type == "response.completed":
            kept = await stored(world, run)
            assert kept is not None
            assert kept.status is Status.COMPLETED
            assert kept.response == run.body()
            assert run.over
        else:
            assert not world.keeper.turns
            assert not run.over


async def test_what_is_kept_has_input_output_and_where_each_item_is() -> None:
    world = history_world(calling)
    run = await world.create(input="Weather?", safety_identifier="user-7", metadata={"a": "b"})
    told = await every(run)
    kept = await stored(world, run)
    assert kept is not None
    assert (kept.model, kept.safety_identifier, kept.depth) == ("m", "user-7", 0)
    assert kept.completed_us > kept.created_us
    assert kept.expires_us == kept.completed_us + 30 * 86_400_000_000
    body = msgspec.json.decode(kept.response)
    assert body == msgspec.json.decode(told[-1].data)["response"]
    assert [item["type"] for item in body["output"]] == ["reasoning", "function_call"]
    for side, items in (
        (Side.INPUT, msgspec.json.decode(kept.input)),
        (Side.OUTPUT, body["output"]),
    ):
        for place, item in enumerate(items):
            found = await world.keeper.store.get_item(world.access, item["id"])
            assert found is not None, (side, place)
            assert msgspec.json.decode(found.document) == item


async def test_numbers_have_no_gaps_and_the_last_event_is_the_only_one_of_its_kind() -> None:
    told = await every(await history_world(calling).create(input="Weather?"))
    assert [one.sequence for one in told] == list(range(len(told)))
    assert [one.type for one in told[:2]] == ["response.created", "response.in_progress"]
    ends = {"response.completed", "response.incomplete", "response.failed"}
    assert [one.type in ends for one in told].count(True) == 1
    assert told[-1].type == "response.completed"


async def test_listeners_hear_every_event_once() -> None:
    run = await history_world().create(input="hi")
    heard: list[NumberedEvent] = []
    run.listeners.append(heard.extend)
    assert await every(run) == heard


async def test_nothing_is_kept_that_was_not_to_be_stored() -> None:
    world = history_world()
    conversation = await world.conversation(question("before"))
    run = await world.create(input="hi", store=False, conversation=conversation)
    told = await every(run)
    assert msgspec.json.decode(told[-1].data)["response"]["store"] is False
    assert world.prompt() == ["user: before", "user: hi"]
    assert not world.keeper.turns
    page = await world.keeper.store.newest_items(
        world.access, conversation, items_max=9, bytes_max=9_999
    )
    assert page is not None
    assert len(page.items) == 1


async def test_without_a_store_the_answer_says_that_it_was_not_stored() -> None:
    world = history_world(store=no_store())
    run = await world.create(input="hi", store=True)
    await every(run)
    assert msgspec.json.decode(run.body())["store"] is False
    assert not world.keeper.turns


async def test_an_answer_cut_short_is_kept_as_incomplete_and_appended() -> None:
    world = history_world(cut_short)
    conversation = await world.conversation()
    run = await world.create(input="Weather?", conversation=conversation)
    told = await every(run)
    assert told[-1].type == "response.incomplete"
    kept = await stored(world, run)
    assert kept is not None
    assert kept.status is Status.INCOMPLETE
    assert len(world.keeper.turns[0].links) == 2


async def test_what_failed_before_anything_was_said_leaves_nothing() -> None:
    world = history_world(failing)
    run = await world.create(input="hi")
    told = await every(run)
    assert [one.type for one in told] == [
        "response.created",
        "response.in_progress",
        "response.failed",
    ]
    assert run.failure is not None
    assert run.failure.message == "the engine died"
    assert not world.keeper.turns


async def test_what_failed_later_is_kept_with_what_it_said_but_not_appended() -> None:
    world = history_world(failing_late)
    conversation = await world.conversation()
    run = await world.create(input="hi", conversation=conversation)
    told = await every(run)
    assert told[-1].type == "response.failed"
    kept = await stored(world, run)
    assert kept is not None
    assert kept.status is Status.FAILED
    statuses = [item.get("status") for item in msgspec.json.decode(kept.response)["output"]]
    assert statuses == ["completed", "incomplete"]
    assert world.keeper.turns[0].links == ()


async def test_when_the_client_leaves_what_was_finished_is_kept_as_cancelled() -> None:
    world = history_world(stuck)
    run = await world.create(input="hi")
    async with aclosing(run.told()) as batches:
        async for told in batches:
            if told[-1].type == "response.output_text.delta":
                break
    kept = await stored(world, run)
    assert kept is not None
    assert kept.status is Status.CANCELLED
    output = msgspec.json.decode(kept.response)["output"]
    assert [item.get("status") for item in output] == ["completed", "incomplete"]
    assert output[1]["content"][0]["text"] == "Hel"
    assert world.generations.runs[0].closed.is_set()


async def test_a_reader_that_is_cancelled_counts_as_gone() -> None:
    world = history_world(stuck)
    run = await world.create(input="hi")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(every(run))
        await until(lambda: world.generations.runs[0].pulled == 2)
        task.cancel()
    kept = await stored(world, run)
    assert kept is not None
    assert kept.status is Status.CANCELLED
    assert world.desks.responses._live == {}


async def test_a_client_that_leaves_before_it_heard_anything_leaves_nothing() -> None:
    async def silent(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await asyncio.Event().wait()
        yield ()

    world = history_world(silent)
    run = await world.create(input="hi")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(every(run))
        await world.generations.started.wait()
        await asyncio.sleep(0)
        task.cancel()
    assert not world.keeper.turns


async def test_a_node_that_shuts_down_says_so_in_what_is_kept() -> None:
    world = history_world(stuck)
    run = await world.create(input="hi")
    run.why_cut = lambda: SmgError(ErrorKind.OVERLOADED, "the node shut down")
    async with aclosing(run.told()) as batches:
        async for told in batches:
            if told[-1].type == "response.output_text.delta":
                break
    kept = await stored(world, run)
    assert kept is not None
    assert kept.status is Status.FAILED
    assert run.last_words[-1].type == "response.failed"


async def test_a_commit_that_its_client_interrupts_is_done_all_the_same() -> None:
    world = history_world()
    entered = asyncio.Event()
    commit = world.keeper.commit
    times: list[Turn] = []

    async def slow(access: Access, turn: Turn) -> Kept:
        times.append(turn)
        entered.set()
        if len(times) == 1:
            await asyncio.Event().wait()
        return await commit(access, turn)

    world.keeper.commit = slow  # type: ignore[method-assign]  # the store takes its time
    run = await world.create(input="hi")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(every(run))
        await entered.wait()
        task.cancel()
    assert times[0] == times[1]
    kept = await stored(world, run)
    assert kept is not None
    assert kept.status is Status.COMPLETED


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (StoreErrorKind.UNAVAILABLE, 503, "store_unavailable"),
        (StoreErrorKind.CONFLICT, 409, "conflict"),
        (StoreErrorKind.TOO_LARGE, 413, "request_too_large"),
        (StoreErrorKind.REJECTED, 403, "storage_rejected"),
        (StoreErrorKind.CORRUPT, 500, "internal_error"),
        (StoreErrorKind.BAD_REFERENCE, 404, "not_found"),
    ],
)
async def test_what_cannot_be_kept_is_never_told_as_complete(
    kind: StoreErrorKind, status: int, code: str
) -> None:
    world = history_world()
    world.keeper.refusal = kind
    run = await world.create(input="hi")
    told = await every(run)
    assert run.failure is not None
    assert (run.failure.status, run.failure.code) == (status, code)
    assert told[-1].type == "response.failed"
    assert [one.sequence for one in told] == list(range(len(told)))
    response = msgspec.json.decode(told[-1].data)["response"]
    assert response["status"] == "failed"
    assert response["error"]["code"] in ("server_error", "invalid_prompt")
    assert response["completed_at"] is None
    assert msgspec.json.decode(run.body()) == response
    assert await stored(world, run) is None


async def test_a_turn_that_waits_on_disk_is_complete_and_says_so() -> None:
    world = history_world()
    world.keeper.spools = True
    run = await world.create(input="hi")
    told = await every(run)
    assert told[-1].type == "response.completed"
    assert run.spooled


async def test_while_it_is_made_it_can_be_looked_at_and_not_cancelled() -> None:
    world = history_world(stuck)
    desk = world.desks.responses
    run = await world.create(input="hi")
    async with aclosing(run.told()) as batches:
        async for told in batches:
            if told[-1].type == "response.output_text.delta":
                break
        shown = msgspec.json.decode(await desk.retrieve(world.access, run.id))
        assert (shown["status"], shown["output"][1]["content"][0]["text"]) == ("in_progress", "Hel")
        with pytest.raises(SmgError) as found:
            await desk.retrieve(Access(tenant="other"), run.id)
        assert found.value.status == 404
        with pytest.raises(SmgError) as found:
            await desk.cancel(world.access, run.id)
        assert found.value.status == 400
    assert await stored(world, run) is not None


async def test_what_is_deleted_while_it_is_made_does_not_come_back() -> None:
    world = history_world()
    run = await world.create(input="hi")
    async for told in run.told():
        if told[0].type == "response.created":
            await world.desks.responses.delete(world.access, run.id)
    assert run.failure is None
    assert not world.keeper.turns
    with pytest.raises(SmgError):
        await world.desks.responses.retrieve(world.access, run.id)


async def test_what_is_deleted_while_it_is_committed_does_not_come_back() -> None:
    world = history_world()
    run = await world.create(input="hi")
    commit = world.keeper.commit

    async def deleted_meanwhile(access: Access, turn: Turn) -> Kept:
        await world.desks.responses.delete(world.access, run.id)
        return await commit(access, turn)

    world.keeper.commit = deleted_meanwhile  # type: ignore[method-assign]  # somebody else is quicker
    await every(run)
    assert await stored(world, run) is None


async def test_two_at_once_on_one_conversation_are_both_kept_and_never_mixed() -> None:
    world = history_world(calling)
    conversation = await world.conversation()

    async def one(number: int) -> str:
        run = await world.create(
            input=[question(str(number)), question("more")], conversation=conversation
        )
        async for _ in run.told():
            await asyncio.sleep(0)
        return run.id

    ids = await asyncio.gather(*[one(number) for number in range(8)])
    page = await world.keeper.store.newest_items(
        world.access, conversation, items_max=99, bytes_max=99_999
    )
    assert page is not None
    owners = [item.response_id for item in reversed(page.items)]
    assert len(owners) == 8 * 4
    assert sorted({*owners}) == sorted(ids)
    assert all(len({*owners[at : at + 4]}) == 1 for at in range(0, 32, 4))
    positions = list(reversed(page.positions))
    assert positions == list(range(positions[0], positions[0] + 32))
