"""A response under a client's key is made once, however often it is asked for."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from msgspec import structs

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.dialects.responses.request.idempotency_key import IdempotencyKey, PriorResult
from smg_node.history.ports import HistoryOptions
from smg_node.history.turns.idempotency import MARGIN_S, HeldKey
from smg_node.history.turns.response_run import ResponseRun
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import thread_of
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access, Idempotency, KeyState, Status, Turn
from smg_storage.store import HistoryStore
from support.history.history_world import (
    ask_of,
    begin,
    block,
    context,
    counting,
    failing,
    failing_late,
    finish,
    history_world,
    no_store,
)
from support.history.keyed_responses import OTHER, SAME, held, keyed, made, now_ms, refusal, reserve
from support.http.http_node import FakeRun


async def test_what_was_made_is_found_under_its_key() -> None:
    world = history_world()
    run = await made(world)
    assert await reserve(world) == PriorResult(run.id)
    assert len(world.keeper.turns) == 1


async def test_the_key_of_another_request_is_a_conflict_before_and_after_its_end() -> None:
    world = history_world()
    run = await keyed(world)
    during = await refusal(world, OTHER)
    async for _ in run.told():
        pass
    after = await refusal(world, OTHER)
    for error in (during, after):
        assert (error.status, error.code) == (409, "idempotency_conflict")
        assert error.retry_after_s is None


async def test_while_it_is_made_the_same_request_is_to_come_again() -> None:
    world = history_world()
    run = await keyed(world)
    error = await refusal(world)
    assert (error.status, error.code) == (409, "idempotency_in_progress")
    assert error.retry_after_s
    async for _ in run.told():
        assert run.over or (await refusal(world)).code == "idempotency_in_progress"
    assert await reserve(world) == PriorResult(run.id)


async def test_of_many_who_ask_at_once_one_makes_it() -> None:
    world = history_world()
    asked = await asyncio.gather(*(reserve(world) for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(one, HeldKey) for one in asked) == 1
    assert {one.code for one in asked if isinstance(one, SmgError)} == {"idempotency_in_progress"}


async def test_keys_of_other_tenants_are_other_keys() -> None:
    world = history_world()
    await made(world)
    assert isinstance(await reserve(world, access=Access(tenant="other")), HeldKey)


async def test_a_response_is_made_under_the_id_and_in_the_thread_of_its_key() -> None:
    world = history_world()
    first = await world.answer(input="a")
    key = await held(world, previous_response_id=first)
    assert thread_of(key.response_id) == thread_of(first)
    run = await world.desks.responses.create(
        ask_of(input="b", previous_response_id=first), context(), world.access, held=key
    )
    assert run.id == key.response_id
    alone = await keyed(world, IdempotencyKey("l", b"d" * 16))
    assert {thread_of(item.id) for item in alone.hydrated.ask.items} == {thread_of(alone.id)}


# ── What broke ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("script", [failing, failing_late])
async def test_what_failed_gives_its_key_back(script: Any) -> None:
    world = history_world(script)
    first = await made(world)
    assert first.failure is not None
    world.generations.script = counting
    second = await made(world)
    assert second.failure is None
    assert second.id != first.id
    assert await reserve(world) == PriorResult(second.id)


async def test_who_was_left_by_his_client_gives_the_key_back() -> None:
    world = history_world()
    run = await keyed(world)
    told = run.told()
    await anext(told)
    await told.aclose()
    record = await world.keeper.store.get_response(world.access, run.id)
    assert record is not None
    assert record.status is Status.CANCELLED
    assert isinstance(await reserve(world), HeldKey)


async def cut_at_the_limit(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    yield [begin(), *block(0, "text", "so"), *finish("length")]


async def test_an_answer_that_was_too_long_is_the_answer() -> None:
    world = history_world(cut_at_the_limit)
    run = await made(world)
    assert json.loads(run.body())["status"] == "incomplete"
    assert await reserve(world) == PriorResult(run.id)


async def test_what_is_refused_before_it_begins_gives_its_key_back() -> None:
    world = history_world()
    for _ in range(2):
        with pytest.raises(SmgError) as found:
            await keyed(world, previous_response_id="resp_none")
        assert found.value.code == "previous_response_not_found"
    assert not world.generations.runs


async def test_what_could_not_be_kept_gives_its_key_back() -> None:
    world = history_world()
    world.keeper.refusal = StoreErrorKind.UNAVAILABLE
    run = await made(world)
    assert run.failure is not None
    assert run.failure.code == "store_unavailable"
    world.keeper.refusal = None
    assert isinstance(await reserve(world), HeldKey)


async def test_what_was_deleted_while_it_was_made_gives_its_key_back() -> None:
    world = history_world()
    run = await keyed(world)
    told = run.told()
    await anext(told)
    await world.desks.responses.delete(world.access, run.id)
    async for _ in told:
        pass
    assert isinstance(await reserve(world), HeldKey)


async def test_what_was_deleted_afterwards_leaves_its_key_without_an_answer() -> None:
    world = history_world()
    run = await made(world)
    await world.desks.responses.delete(world.access, run.id)
    error = await refusal(world)
    assert error.code == "idempotency_in_progress"
    assert "deleted" in error.message


async def test_the_key_of_what_another_node_ended_as_failed_is_taken_over() -> None:
    """A run that outlived its client has its row all the time; who ends it for a dead node knows no key."""
    world = history_world()
    key = await held(world)
    turn = replace_turn(await made(world, IdempotencyKey("other", b"d" * 16)), key.response_id)
    await world.keeper.store.commit_turn(world.access, turn)
    again = await reserve(world)
    assert isinstance(again, HeldKey)
    assert again.response_id != key.response_id


def replace_turn(run: ResponseRun, response_id: str) -> Turn:
    """Return what a failed response of that id leaves behind."""
    assert run._turn is not None
    row = structs.replace(
        run._turn.response, id=response_id, status=Status.FAILED, response=b'{"background":false}'
    )
    return Turn(response=row)


# ── For how long ─────────────────────────────────────────────────────────────


async def test_a_reservation_is_over_soon_after_its_request_has_to_be() -> None:
    world = history_world()
    now_us = now_ms(world) * 1_000
    late = structs.replace(context(), deadline_s=world.runs._clock.monotonic_s() + 100)
    found = await world.desks.responses.reserve(ask_of(input="hi"), SAME, late, world.access)
    assert isinstance(found, HeldKey)
    # Whoever held it has died; nobody gave it back.
    store, soon_us = world.keeper.store, now_us + round((100 + MARGIN_S - 1) * 1e6)
    wanted = Idempotency("k", b"d" * 16, 10**18)
    before = await store.reserve_key(world.access, wanted, "resp_x", now_us=soon_us)
    after = await store.reserve_key(world.access, wanted, "resp_x", now_us=soon_us + 2_000_000)
    assert (before.state, after.state) == (KeyState.SAME, KeyState.NEW)


async def test_an_answer_is_found_under_its_key_for_as_long_as_the_settings_say() -> None:
    options = HistoryOptions()
    world = history_world(options=options)
    options.keys_kept_s = 500
    run = await keyed(world)
    # What counts is what they say when it is kept.
    options.keys_kept_s = 1_000
    async for _ in run.told():
        pass
    (turn,) = world.keeper.turns
    assert turn.idempotency is not None
    kept_us = turn.idempotency.expires_us - now_ms(world) * 1_000
    assert 999_000_000 < kept_us <= 1_000_000_000


# ── Without a store ──────────────────────────────────────────────────────────


async def test_what_is_not_kept_needs_no_key() -> None:
    world = history_world()
    assert await reserve(world, store=False) is None
    assert await reserve(history_world(store=no_store())) is None


class Away:
    """A store that is away when keys are asked for."""

    def __init__(self, inner: HistoryStore) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        if name in ("reserve_key", "release_key"):
            return self._fail
        return getattr(self._inner, name)

    async def _fail(self, *_: object, **__: object) -> None:
        raise StoreError(StoreErrorKind.UNAVAILABLE, "away")


async def test_without_the_store_no_key_can_be_promised_and_none_is_needed() -> None:
    world = history_world(store=cast("HistoryStore", Away(MemoryStore(Bounds(), lambda: 1))))
    error = await refusal(world)
    assert (error.status, error.code) == (503, "store_unavailable")
    assert await reserve(world, store=False) is None


async def test_a_key_that_cannot_be_given_back_costs_nothing_but_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore(Bounds(), lambda: 1)
    key = HeldKey(
        SAME, Access(), "resp_1", "t", store=cast("HistoryStore", Away(store)), over_us=lambda: 1
    )
    await key.release()
    assert "resp_1" in caplog.text
