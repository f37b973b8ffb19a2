from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, Event
from smg_node.core.generation.request import ChatPrompt
from smg_node.dialects.responses.events.list_bodies import page_of
from smg_node.history.ports import HistoryOptions
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, Status, StoredResponse
from smg_storage.store import HistoryStore
from support.history.history_world import (
    CountingStore,
    HistoryWorld,
    ask_of,
    block,
    calling,
    context,
    failing,
    finish,
    history_world,
    no_store,
    question,
)
from support.http.http_node import FakeRun

HOUR_US = 3_600_000_000


def ids(documents: Any) -> list[str]:
    return [msgspec.json.decode(document)["id"] for document in documents]


def texts(documents: Any) -> list[str]:
    return [msgspec.json.decode(one)["content"][0]["text"] for one in documents]


async def refusal(waiting: Any) -> SmgError:
    with pytest.raises(SmgError) as found:
        await waiting
    return found.value


# ── Responses ────────────────────────────────────────────────────────────────


async def test_a_stored_response_is_shown_as_it_was_answered() -> None:
    world = history_world()
    run = await world.create(input="hi")
    async for _ in run.told():
        pass
    assert await world.desks.responses.retrieve(world.access, run.id) == run.body()


@pytest.mark.parametrize("response_id", ["resp_none", "no id\n", "x" * 65, ""])
async def test_a_response_that_is_not_there_is_not_found(response_id: str) -> None:
    world = history_world()
    desk = world.desks.responses
    for waiting in (
        desk.retrieve(world.access, response_id),
        desk.cancel(world.access, response_id),
        desk.delete(world.access, response_id),
        desk.input_items(world.access, response_id, page_of({})),
    ):
        error = await refusal(waiting)
        assert (error.status, error.code) == (404, "not_found")


async def test_a_deleted_response_is_gone_and_cannot_be_deleted_again() -> None:
    world = history_world()
    made = await world.answer(input="hi")
    other = await refusal(world.desks.responses.delete(Access(tenant="other"), made))
    assert other.status == 404
    await world.desks.responses.delete(world.access, made)
    assert (await refusal(world.desks.responses.retrieve(world.access, made))).status == 404
    assert (await refusal(world.desks.responses.delete(world.access, made))).status == 404


async def test_input_items_are_its_own_newest_first_and_in_pages() -> None:
    world = history_world()
    first = await world.answer(input="before")
    made = await world.answer(
        input=[question(str(number)) for number in range(5)], previous_response_id=first
    )
    desk, access = world.desks.responses, world.access
    page, more = await desk.input_items(access, made, page_of({"limit": "2"}))
    assert (texts(page), more) == (["4", "3"], True)
    page, more = await desk.input_items(
        access, made, page_of({"limit": "3", "after": ids(page)[-1]})
    )
    assert (texts(page), more) == (["2", "1", "0"], False)
    page, more = await desk.input_items(access, made, page_of({"order": "asc"}))
    assert (texts(page), more) == (["0", "1", "2", "3", "4"], False)
    error = await refusal(desk.input_items(access, made, page_of({"after": "msg_none"})))
    assert (error.status, error.where) == (400, "after")


async def test_a_response_of_the_background_that_is_over_is_shown_instead_of_cancelled() -> None:
    world = history_world()
    shown = b'{"background":true}'
    record = StoredResponse("resp_b", Status.COMPLETED, "m", 1, b"[]", shown, background=True)
    await world.keeper.store.store_response(world.access, record)
    assert await world.desks.responses.cancel(world.access, "resp_b") == shown
    made = await world.answer(input="hi")
    error = await refusal(world.desks.responses.cancel(world.access, made))
    assert error.status == 400


async def test_tokens_are_counted_with_the_history_and_nothing_is_generated() -> None:
    world = history_world()
    first = await world.answer(input="one two")
    ask = ask_of(input="three", previous_response_id=first, instructions="be kind")
    count = await world.desks.responses.count(ask, context(), world.access, None)
    # system: be kind, user: one two, assistant: turns 1, user: three
    assert count == 3 + 3 + 3 + 2
    assert len(world.generations.runs) == 1


async def test_a_compaction_can_be_carried_on_in_place_of_the_history() -> None:
    world = history_world()
    first = await world.answer(input="a", instructions="x")
    ask = ask_of(input="b", previous_response_id=first)
    summary = await world.desks.responses.compact(ask, context(), world.access)
    body = msgspec.json.decode(await summary.body())
    assert body["object"] == "response.compaction"
    assert [item["type"] for item in body["output"]] == ["message", "message", "compaction"]
    assert texts(msgspec.json.encode(item) for item in body["output"][:2]) == ["a", "b"]
    assert body["usage"]["output_tokens"] == 2
    asked = world.generations.runs[-1].request
    assert isinstance(asked.prompts[0], ChatPrompt)
    assert asked.prompts[0].turns[-1].role == "user"
    assert asked.sampling.max_tokens is not None
    assert len(world.keeper.turns) == 1
    await world.answer(input=[*body["output"], question("c")])
    assert world.prompt() == ["user: a", "user: b", "developer: turns 4", "user: c"]


async def test_a_compaction_that_fails_says_why() -> None:
    world = history_world(failing)
    summary = await world.desks.responses.compact(ask_of(input="b"), context(), world.access)
    assert (await refusal(summary.body())).message == "the engine died"


async def test_a_store_that_is_away_is_told_before_anything_is_sent_anywhere() -> None:
    world = history_world()
    first = await world.answer(input="a")

    async def away(*_: object, **__: object) -> None:
        raise StoreError(StoreErrorKind.UNAVAILABLE, "postgres://secret")

    world.keeper.store.get_response_chain = away  # type: ignore[method-assign, assignment]  # as if it were down
    error = await refusal(world.create(input="b", previous_response_id=first))
    assert (error.status, error.code, error.retry_after_s) == (503, "store_unavailable", 2.0)
    assert "secret" not in error.message
    assert len(world.generations.runs) == 1
    await world.answer(input="c")


async def test_where_nothing_can_be_kept_only_what_is_not_to_be_stored_is_answered() -> None:
    world = history_world()
    world.keeper.full = True
    error = await refusal(world.create(input="a"))
    assert (error.status, error.code) == (503, "store_unavailable")
    assert not world.generations.runs
    await world.answer(input="a", store=False)


async def test_a_turn_reads_its_store_once_and_writes_it_once_however_long_its_history_is() -> None:
    world = history_world()
    store = CountingStore(world.keeper.store)
    world = history_world(store=cast("HistoryStore", store))
    last = await world.answer(input="0")
    for number in range(1, 200):
        last = await world.answer(input=str(number), previous_response_id=last)
    assert len(world.prompt()) == 2 * 199 + 1
    conversation = await world.conversation(*[question(str(number)) for number in range(200)])
    store.asked.clear()
    await world.answer(input="by chain", previous_response_id=last)
    assert store.asked == ["get_response_chain", "commit_turn"]
    store.asked.clear()
    await world.answer(input="by conversation", conversation=conversation)
    assert store.asked == ["newest_items", "commit_turn"]
    store.asked.clear()
    await world.answer(input="new")
    assert store.asked == ["commit_turn"]
    store.asked.clear()
    await world.answer(input="quiet", store=False)
    assert store.asked == []


async def test_a_damaged_record_is_an_error_of_ours_for_that_response_only() -> None:
    world = history_world()
    for name, record in {
        "resp_1": StoredResponse("resp_1", Status.COMPLETED, "m", 1, b"{}", b"{}"),
        "resp_2": StoredResponse("resp_2", Status.COMPLETED, "m", 1, b"[]", b'{"output":[1]}'),
    }.items():
        await world.keeper.store.store_response(world.access, record)
        error = await refusal(world.create(input="b", previous_response_id=name))
        assert (error.status, error.code) == (500, "internal_error")


async def test_what_is_still_made_cannot_be_continued() -> None:
    world = history_world()
    record = StoredResponse("resp_q", Status.IN_PROGRESS, "m", 1, b"[]", b"{}", background=True)
    await world.keeper.store.store_response(world.access, record)
    error = await refusal(world.create(input="b", previous_response_id="resp_q"))
    assert (error.status, error.where) == (400, "previous_response_id")


# ── Conversations ────────────────────────────────────────────────────────────


async def items_of(world: HistoryWorld, conversation: str, **query: str) -> list[str]:
    listed, _ = await world.desks.conversations.list_items(
        world.access, conversation, page_of({"order": "asc", "limit": "100", **query})
    )
    return texts(listed)


async def test_a_conversation_has_its_items_in_order_and_its_metadata() -> None:
    world = history_world()
    desk = world.desks.conversations
    read = ask_of(input=[question("a"), question("b")]).items
    made = msgspec.json.decode(await desk.create(world.access, read, b'{"k":"v"}'))
    assert made["object"] == "conversation"
    assert made["metadata"] == {"k": "v"}
    assert await items_of(world, made["id"]) == ["a", "b"]
    assert msgspec.json.decode(await desk.retrieve(world.access, made["id"])) == made
    changed = msgspec.json.decode(await desk.update(world.access, made["id"], b"{}"))
    assert changed == {**made, "metadata": {}}


async def test_items_are_listed_in_pages_that_stay_where_they_are() -> None:
    world = history_world()
    desk, access = world.desks.conversations, world.access
    conversation = await world.conversation(*[question(str(number)) for number in range(7)])
    page, more = await desk.list_items(access, conversation, page_of({"limit": "3"}))
    assert (texts(page), more) == (["6", "5", "4"], True)
    await desk.add_items(access, conversation, ask_of(input="new").items)
    await desk.delete_item(access, conversation, ids(page)[0])
    page, more = await desk.list_items(
        access, conversation, page_of({"limit": "3", "after": ids(page)[-1]})
    )
    assert (texts(page), more) == (["3", "2", "1"], True)
    error = await refusal(desk.list_items(access, conversation, page_of({"after": "msg_none"})))
    assert (error.status, error.where) == (400, "after")


async def test_an_item_that_is_linked_already_is_not_linked_twice() -> None:
    world = history_world()
    desk, access = world.desks.conversations, world.access
    conversation = await world.conversation(question("a"))
    [first], _ = await desk.list_items(access, conversation, page_of({}))
    same = ask_of(input=[msgspec.json.decode(first), question("b")]).items
    added = await desk.add_items(access, conversation, same)
    assert added[0] == first
    assert await items_of(world, conversation) == ["a", "b"]
    other = ask_of(input=[{**msgspec.json.decode(first), "content": "else"}]).items
    added = await desk.add_items(access, conversation, other)
    assert ids(added) != ids([first])
    assert await items_of(world, conversation) == ["a", "b", "else"]


async def test_one_item_is_shown_only_in_its_own_conversation() -> None:
    world = history_world()
    desk, access = world.desks.conversations, world.access
    one, two = await world.conversation(question("a")), await world.conversation()
    [document], _ = await desk.list_items(access, one, page_of({}))
    [item_id] = ids([document])
    assert await desk.get_item(access, one, item_id) == document
    error = await refusal(desk.get_item(access, two, item_id))
    assert (error.status, error.code) == (404, "not_found")
    assert (await refusal(desk.delete_item(access, two, item_id))).status == 404
    error = await refusal(desk.get_item(access, "conv_none", item_id))
    assert (error.status, error.code) == (404, "conversation_not_found")
    left = msgspec.json.decode(await desk.delete_item(access, one, item_id))
    assert left["id"] == one
    assert (await refusal(desk.get_item(access, one, item_id))).status == 404


async def test_a_deleted_conversation_takes_no_response_with_it() -> None:
    world = history_world(calling)
    conversation = await world.conversation()
    made = await world.answer(input="Weather?", conversation=conversation)
    await world.desks.conversations.delete(world.access, conversation)
    assert await world.desks.responses.retrieve(world.access, made)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
    await world.answer(input=[output], previous_response_id=made)
    error = await refusal(world.create(input="x", conversation=conversation))
    assert error.code == "conversation_not_found"


@pytest.mark.parametrize("conversation", ["conv_none", "no id\n", ""])
async def test_a_conversation_that_is_not_there_is_not_found(conversation: str) -> None:
    world = history_world()
    desk, access = world.desks.conversations, world.access
    for waiting in (
        desk.retrieve(access, conversation),
        desk.update(access, conversation, b"{}"),
        desk.delete(access, conversation),
        desk.list_items(access, conversation, page_of({})),
        desk.add_items(access, conversation, ask_of(input="a").items),
        desk.get_item(access, conversation, "msg_a"),
        desk.delete_item(access, conversation, "msg_a"),
    ):
        error = await refusal(waiting)
        assert (error.status, error.code) == (404, "conversation_not_found")


async def test_another_tenants_conversation_is_not_there() -> None:
    world = history_world()
    conversation = await world.conversation(question("a"))
    world.access = Access(tenant="other")
    error = await refusal(world.desks.conversations.retrieve(world.access, conversation))
    assert error.code == "conversation_not_found"


async def test_a_full_conversation_takes_no_more() -> None:
    world = history_world(options=HistoryOptions(conversation_items_max=3))
    conversation = await world.conversation(question("a"), question("b"))
    items = ask_of(input=[question("c"), question("d")]).items
    error = await refusal(world.desks.conversations.add_items(world.access, conversation, items))
    assert (error.status, error.code) == (400, "conversation_too_long")
    await world.desks.conversations.add_items(world.access, conversation, items[:1])
    error = await refusal(world.create(input="x", conversation=conversation))
    assert error.code == "conversation_too_long"


async def test_a_conversation_is_over_when_its_days_are() -> None:
    options = HistoryOptions(conversations_kept_s=60)
    world = history_world(options=options)
    conversation = await world.conversation()

    async def kept_us() -> int:
        record = await world.keeper.store.get_conversation(world.access, conversation)
        assert record is not None
        return record.expires_us - record.created_us

    # In whole hours, so that its end is not moved with every turn.
    assert 60_000_000 <= await kept_us() < 60_000_000 + HOUR_US
    # What is appended counts from then on, by whatever the settings say then.
    options.conversations_kept_s = 7_260
    await world.answer(input="a", conversation=conversation)
    after_turn = await kept_us()
    assert 7_260_000_000 <= after_turn < 7_260_000_000 + HOUR_US
    options.conversations_kept_s = 2 * 7_260
    await world.desks.conversations.add_items(
        world.access, conversation, ask_of(input=[question("b")]).items
    )
    assert await kept_us() > after_turn


async def test_without_a_store_no_conversation_can_begin() -> None:
    error = await refusal(history_world(store=no_store()).conversation())
    assert (error.status, error.code) == (403, "storage_rejected")


async def test_the_depth_of_chains_is_told_and_of_nothing_else() -> None:
    depths: list[int] = []
    world = history_world(chain_depth=depths.append)
    last = await world.answer(input="a")
    for _ in range(3):
        last = await world.answer(input="b", previous_response_id=last)
    await world.answer(input="c", conversation=await world.conversation(question("d")))
    assert depths == [1, 2, 3]


async def test_every_response_is_told_with_the_request_that_it_answers() -> None:
    named: list[tuple[str, str]] = []
    world = history_world(named=lambda *said: named.append(said))
    first = await world.answer(input="a")
    second = await world.answer(input="b", previous_response_id=first)
    unstored = await world.create(input="c", store=False)
    assert named == [(one, "req_1") for one in (first, second, unstored.id)]
    named.clear()
    ask = ask_of(input="a", previous_response_id=second)
    summary = await world.desks.responses.compact(ask, context(), world.access)
    body = msgspec.json.decode(await summary.body())
    assert named == [(body["id"], "req_1")]


async def test_what_a_models_makers_recommend_is_in_the_answer_and_in_the_store() -> None:
    async def recommended(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        first = Begin("1", "m", 1, 3, temperature=0.6, top_p=0.9)
        yield [first, *block(0, "text", "hi"), *finish()]

    world = history_world(recommended)
    run = await world.create(input="hi", top_p=0.5)
    told = [one async for batch in run.told() for one in batch]
    shown = [msgspec.json.decode(one.data).get("response") for one in told]
    numbers = {(body["temperature"], body["top_p"]) for body in shown if body is not None}
    assert numbers == {(0.6, 0.5)}
    kept = msgspec.json.decode(await world.desks.responses.retrieve(world.access, run.id))
    assert (kept["temperature"], kept["top_p"]) == (0.6, 0.5)
