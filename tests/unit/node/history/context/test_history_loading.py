import json
from typing import Any

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.history.ports import STATE_ITEM, HistoryOptions
from smg_storage.ids import thread_of
from smg_storage.records import Access, Item
from support.history.history_world import (
    HistoryWorld,
    calling,
    counting,
    cut_short,
    failing_late,
    history_world,
    question,
)


async def refused(world: HistoryWorld, **body: Any) -> SmgError:
    with pytest.raises(SmgError) as found:
        await world.create(**body)
    return found.value


async def test_a_chain_and_a_conversation_of_the_same_items_give_the_same_prompt() -> None:
    world = history_world(calling)
    first = await world.answer(input="Weather in Paris?", instructions="Be brief")
    output = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
    second = await world.answer(input=[output], previous_response_id=first)
    await world.answer(input="Thanks", previous_response_id=second, instructions="Be kind")
    by_chain = world.prompt()

    conversation = await world.conversation()
    await world.answer(input="Weather in Paris?", conversation=conversation)
    await world.answer(input=[output], conversation={"id": conversation})
    await world.answer(input="Thanks", conversation=conversation, instructions="Be kind")
    assert world.prompt() == by_chain
    assert by_chain == [
        "system: Be kind",
        "user: Weather in Paris?",
        'assistant: weather({"city":"Paris"})',
        "tool: rain",
        "assistant: It rains.",
        "user: Thanks",
    ]


async def test_instructions_of_an_earlier_response_are_not_inherited() -> None:
    world = history_world()
    first = await world.answer(input="a", instructions="Be rude")
    await world.answer(input="b", previous_response_id=first)
    assert world.prompt() == ["user: a", "assistant: turns 2", "user: b"]


async def test_a_chain_can_be_forked_at_any_ancestor() -> None:
    world = history_world()
    ids = [await world.answer(input="0")]
    for number in range(1, 6):
        ids.append(await world.answer(input=str(number), previous_response_id=ids[-1]))
    await world.answer(input="fork", previous_response_id=ids[2])
    said = [line for line in world.prompt() if line.startswith("user")]
    assert said == ["user: 0", "user: 1", "user: 2", "user: fork"]


async def test_a_response_has_the_thread_and_the_depth_of_what_it_continues() -> None:
    world = history_world()
    first = await world.answer(input="a")
    second = await world.answer(input="b", previous_response_id=first)
    assert thread_of(first) == thread_of(second)
    record = await world.keeper.store.get_response(world.access, second)
    assert record is not None
    assert (record.depth, record.previous_response_id) == (1, first)
    conversation = await world.conversation()
    assert thread_of(await world.answer(input="c", conversation=conversation)) == thread_of(
        conversation
    )


@pytest.mark.parametrize("missing", ["resp_none", "nonsense\n", "x" * 65])
async def test_a_predecessor_that_is_not_there_is_named(missing: str) -> None:
    error = await refused(history_world(), input="a", previous_response_id=missing)
    assert (error.status, error.code) == (400, "previous_response_not_found")
    assert error.where == "previous_response_id"


async def test_a_deleted_ancestor_ends_the_chain_and_is_named() -> None:
    world = history_world()
    first = await world.answer(input="a")
    second = await world.answer(input="b", previous_response_id=first)
    await world.desks.responses.delete(world.access, first)
    error = await refused(world, input="c", previous_response_id=second)
    assert error.code == "previous_response_not_found"
    assert first in error.message


async def test_what_was_not_stored_is_no_predecessor() -> None:
    world = history_world()
    first = await world.answer(input="a", store=False)
    error = await refused(world, input="b", previous_response_id=first)
    assert error.code == "previous_response_not_found"


async def test_an_unknown_conversation_is_not_found() -> None:
    error = await refused(history_world(), input="a", conversation="conv_none")
    assert (error.status, error.code) == (404, "conversation_not_found")


async def test_another_tenants_history_is_not_there() -> None:
    world = history_world()
    first, conversation = await world.answer(input="a"), await world.conversation()
    world.access = Access(tenant="other")
    error = await refused(world, input="b", previous_response_id=first)
    unknown = await refused(world, input="b", previous_response_id="resp_" + "0" * 48)
    assert error.code == unknown.code
    assert error.message.replace(first, "X") == unknown.message.replace("resp_" + "0" * 48, "X")
    error = await refused(world, input="b", conversation=conversation)
    assert error.code == "conversation_not_found"


async def test_a_chain_longer_than_what_is_read_is_refused_unless_it_may_be_cut() -> None:
    world = history_world(options=HistoryOptions(items_max=6))
    last = ""
    for number in range(5):
        last = await world.answer(
            input=str(number), truncation="auto", previous_response_id=last or None
        )
    error = await refused(world, input="x", previous_response_id=last)
    assert (error.status, error.code) == (400, "history_too_long")
    run = await world.create(input="x", previous_response_id=last, truncation="auto")
    assert not run.complete
    assert [json.loads(item.document)["content"][0]["text"] for item in run.hydrated.items] == [
        "2", "turns 5", "3", "turns 7", "4", "turns 7", "x",
    ]  # fmt: skip


async def test_a_conversation_longer_than_what_is_read_is_refused_unless_it_may_be_cut() -> None:
    world = history_world(options=HistoryOptions(items_max=3))
    conversation = await world.conversation(*[question(str(number)) for number in range(5)])
    error = await refused(world, input="x", conversation=conversation)
    assert error.code == "history_too_long"
    await world.answer(input="x", conversation=conversation, truncation="auto")
    assert world.prompt() == ["user: 2", "user: 3", "user: 4", "user: x"]


async def test_a_cut_through_a_turn_leaves_the_rest_of_that_turn_out() -> None:
    world = history_world(calling, options=HistoryOptions(items_max=3))
    conversation = await world.conversation()
    await world.answer(input="Weather?", conversation=conversation)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
    run = await world.create(
        input=[output, question("And?")], conversation=conversation, truncation="auto"
    )
    assert run.complete
    await world.answer(input=[output], conversation=conversation)
    # What is read begins with the call's output now; its call is beyond the limit.
    run = await world.create(input="And?", conversation=conversation, truncation="auto")
    assert [item.type for item in run.hydrated.items] == ["message"]


async def test_truncation_leaves_out_the_oldest_groups_and_says_so() -> None:
    world = history_world(model_context=40)
    conversation = await world.conversation(
        {"role": "developer", "content": "be kind"},
        *[question(f"number {number} of many words") for number in range(12)],
    )
    run = await world.create(
        input="last", conversation=conversation, truncation="auto", max_output_tokens=10
    )
    async for _ in run.told():
        pass
    prompt = world.prompt()
    assert prompt[0] == "developer: be kind"
    assert prompt[1:] == [f"user: number {n} of many words" for n in (8, 9, 10, 11)] + [
        "user: last"
    ]
    assert (run.used, run.known) == (6, 14)
    assert sum(len(line.split()) for line in prompt) <= 30


async def test_what_is_too_long_without_any_history_is_refused_with_both_numbers() -> None:
    world = history_world(model_context=20)
    conversation = await world.conversation(question("a b c"))
    error = await refused(
        world, input="w " * 30, conversation=conversation, truncation="auto", max_output_tokens=5
    )
    assert (error.status, error.code) == (400, "context_length_exceeded")
    assert "31" in error.message
    assert "15" in error.message


async def test_an_output_without_its_call_is_refused() -> None:
    output = {"type": "function_call_output", "call_id": "call_x", "output": "1"}
    error = await refused(history_world(), input=[output])
    assert error.status == 400
    assert error.message == "no tool call found for call_id 'call_x'"


async def test_a_call_that_nobody_answers_is_refused() -> None:
    world = history_world(calling)
    first = await world.answer(input="Weather?")
    error = await refused(world, input="never mind", previous_response_id=first)
    assert error.status == 400
    assert "call_1" in error.message


async def test_a_call_that_was_cut_off_does_not_stand_in_the_way() -> None:
    world = history_world(cut_short)
    first = await world.answer(input="Weather?")
    world.generations.script = counting
    await world.answer(input="again", previous_response_id=first)
    assert world.prompt() == ["user: Weather?", "user: again"]


async def test_a_response_that_broke_can_be_continued_from_what_it_said() -> None:
    world = history_world(failing_late)
    run = await world.create(input="a")
    async for _ in run.told():
        pass
    world.generations.script = counting
    await world.answer(input="b", previous_response_id=run.id)
    assert world.prompt() == ["user: a", "assistant: so", "user: b"]


async def test_references_are_replaced_by_what_they_stand_for() -> None:
    world = history_world()
    first = await world.answer(input="hello")
    record = await world.keeper.store.get_response(world.access, first)
    assert record is not None
    said = msgspec.json.decode(record.input)[0]["id"]
    second = await world.answer(input=[{"type": "item_reference", "id": said}, question("b")])
    assert world.prompt() == ["user: hello", "user: b"]
    record = await world.keeper.store.get_response(world.access, second)
    assert record is not None
    assert [item["type"] for item in msgspec.json.decode(record.input)] == ["message", "message"]


async def test_an_unknown_reference_is_refused_at_its_place() -> None:
    world = history_world()
    rows = [question("a"), {"type": "item_reference", "id": "msg_none"}]
    error = await refused(world, input=rows)
    assert (error.status, error.code, error.where) == (400, "item_not_found", "input[1].id")
    await world.answer(input="mine")
    record = world.keeper.turns[-1].locations[0]
    error = await refused_by_other(world, record.item_id)
    assert error.code == "item_not_found"


async def test_opaque_state_is_no_item_that_can_be_referred_to() -> None:
    world = history_world()
    hidden = Item("state_1", STATE_ITEM, b'"AA=="', 1)
    await world.keeper.store.create_item(world.access, hidden)
    error = await refused(world, input=[question("a"), {"type": "item_reference", "id": hidden.id}])
    assert (error.status, error.code, error.where) == (400, "item_not_found", "input[1].id")


async def refused_by_other(world: HistoryWorld, item_id: str) -> SmgError:
    with pytest.raises(SmgError) as found:
        await world.create(
            Access(tenant="other"), input=[{"type": "item_reference", "id": item_id}]
        )
    return found.value


async def test_a_clients_own_id_is_kept_where_it_is_free_and_replaced_where_it_is_not() -> None:
    world = history_world()
    await world.answer(input=[{**question("a"), "id": "msg_mine"}])
    assert world.keeper.turns[-1].locations[0].item_id == "msg_mine"
    await world.answer(input=[{**question("b"), "id": "msg_mine"}])
    replaced = world.keeper.turns[-1].locations[0].item_id
    assert replaced != "msg_mine"
    assert replaced.startswith("msg_")


async def test_sealed_thoughts_come_back_as_thoughts_and_only_to_their_tenant() -> None:
    world = history_world(calling)
    run = await world.create(input="Weather?", store=False)
    async for _ in run.told():
        pass
    output = msgspec.json.decode(run.body())["output"]
    assert output[0]["type"] == "reasoning"
    bare = {"type": "reasoning", "summary": [], "encrypted_content": output[0]["encrypted_content"]}
    answer = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
    items = [question("Weather?"), bare, output[1], answer]
    await world.answer(input=items, store=False)
    assert world.prompt()[1] == 'assistant: <I must look.> weather({"city":"Paris"})'
    with pytest.raises(SmgError) as found:
        await world.create(Access(tenant="other"), input=items, store=False)
    assert found.value.code == "invalid_encrypted_content"
