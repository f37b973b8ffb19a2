"""A client's key on a response that outlives its request: written with its first row, or with its end."""

from pathlib import Path

import pytest

from smg_node.dialects.responses.request.idempotency_key import PriorResult
from smg_node.history.ports import HistoryOptions
from smg_node.history.turns.idempotency import HeldKey
from smg_storage.open import open_store
from smg_storage.options import StoreOptions
from smg_storage.records import Status, StoredResponse, Turn
from smg_storage.url import parse_store_url
from support.history.history_world import ask_of, context, failing_late, history_world
from support.history.keyed_responses import held, refusal, reserve, running


@pytest.mark.parametrize("status", [Status.QUEUED, Status.IN_PROGRESS, Status.FAILED])
async def test_what_is_made_in_the_background_is_the_answer_whatever_it_is(status: Status) -> None:
    world = history_world()
    key = await held(world)
    row = StoredResponse(
        id=key.response_id,
        status=status,
        model="m",
        created_us=1,
        input=b"[]",
        response=b'{"background":true}',
        background=True,
        lease_token=1,
    )
    await world.keeper.store.commit_turn(world.access, Turn(response=row, idempotency=key.kept()))
    assert await reserve(world) == PriorResult(key.response_id)


async def test_what_goes_on_without_its_client_is_not_shown_before_its_end() -> None:
    world = history_world()
    key = await held(world)
    row = StoredResponse(
        id=key.response_id,
        status=Status.IN_PROGRESS,
        model="m",
        created_us=1,
        input=b"[]",
        response=b'{"background":false}',
        background=True,
        lease_token=1,
    )
    await world.keeper.store.store_response(world.access, row)
    assert (await refusal(world)).code == "idempotency_in_progress"


async def test_a_row_that_makes_no_sense_was_not_asked_for_in_the_background() -> None:
    world = history_world()
    key = await held(world)
    row = StoredResponse(
        key.response_id, Status.QUEUED, "m", 1, b"[]", b"nonsense", background=True
    )
    await world.keeper.store.store_response(world.access, row)
    assert (await refusal(world)).code == "idempotency_in_progress"


async def test_a_background_response_has_its_key_with_its_first_row() -> None:
    world = history_world()
    async with running(world):
        key = await held(world, background=True)
        run = await world.desks.responses.register(
            ask_of(input="hi", background=True), context(), world.access, held=key
        )
        assert run.id == key.response_id
        assert await reserve(world, background=True) == PriorResult(run.id)
        await run.ended()
        assert await reserve(world, background=True) == PriorResult(run.id)


async def test_a_background_response_that_failed_is_still_the_answer() -> None:
    world = history_world(failing_late)
    async with running(world):
        key = await held(world, background=True)
        run = await world.desks.responses.register(
            ask_of(input="hi", background=True), context(), world.access, held=key
        )
        await run.ended()
        assert await reserve(world, background=True) == PriorResult(run.id)


async def test_a_resumable_response_is_the_answer_once_it_is_complete() -> None:
    world = history_world(options=HistoryOptions(resume_grace_s=30))
    async with running(world):
        key = await held(world, stream=True)
        run = await world.desks.responses.register(
            ask_of(input="hi", stream=True), context(), world.access, held=key
        )
        async for _ in run.attend():
            pass
        await run.ended()
        assert await reserve(world, stream=True) == PriorResult(run.id)


async def test_a_resumable_response_that_failed_gives_its_key_back() -> None:
    world = history_world(failing_late, options=HistoryOptions(resume_grace_s=30))
    async with running(world):
        key = await held(world, stream=True)
        run = await world.desks.responses.register(
            ask_of(input="hi", stream=True), context(), world.access, held=key
        )
        async for _ in run.attend():
            pass
        await run.ended()
        assert isinstance(await reserve(world, stream=True), HeldKey)


async def test_key_and_first_row_are_one_in_a_database_too(tmp_path: Path) -> None:
    url = parse_store_url(f"sqlite:///{tmp_path}/history.db")
    store = open_store(url, options=StoreOptions(auto_migrate=True), now_us=lambda: 1)
    await store.start()
    world = history_world(store=store)
    async with running(world):
        key = await held(world, background=True)
        run = await world.desks.responses.register(
            ask_of(input="hi", background=True), context(), world.access, held=key
        )
        assert await reserve(world, background=True) == PriorResult(run.id)
        await run.ended()
        assert run.outcome == "completed"
        assert await reserve(world, background=True) == PriorResult(run.id)
    await store.close()
