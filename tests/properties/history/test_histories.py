"""What goes into a history comes out of it, whichever way it went in."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.list_bodies import page_of
from support.answers.responses import item_rows, items_from
from support.history.history_world import (
    HistoryWorld,
    ask_of,
    begin,
    block,
    finish,
    history_world,
    question,
)
from support.http.http_node import FakeRun

CALLS = ("_call", "_call_output")


def bare(document: bytes) -> Any:
    """Return what a document says, without its id."""
    values = msgspec.json.decode(document)
    assert list(values)[:2] == ["id", "type"]
    del values["id"]
    return values


@settings(deadline=None)
@given(st.lists(item_rows(), min_size=1, max_size=20))
def test_items_of_every_type_come_back_from_a_conversation_as_they_went_in(
    rows: list[dict[str, Any]],
) -> None:
    async def there_and_back() -> None:
        world = history_world()
        desk, items = world.desks.conversations, items_from(rows)
        conversation = await world.conversation()
        added = await desk.add_items(world.access, conversation, items)
        listed, more = await desk.list_items(
            world.access, conversation, page_of({"order": "asc", "limit": "100"})
        )
        assert list(added) == list(listed)
        assert not more
        named = [msgspec.json.decode(document)["id"] for document in listed]
        assert len({*named}) == len(named)
        for item, document, item_id in zip(items, listed, named, strict=True):
            assert bare(document) == {k: v for k, v in item.values().items() if k != "id"}
            assert item_id == item.id or not item.id or named.count(item.id)
            assert await desk.get_item(world.access, conversation, item_id) == document

    asyncio.run(there_and_back())


@settings(deadline=None)
@given(st.lists(item_rows(), min_size=1, max_size=12))
def test_items_of_every_type_come_back_from_a_response_as_they_went_in(
    rows: list[dict[str, Any]],
) -> None:
    # Calls need their outputs and thoughts their keys; both are other tests' business.
    kept = [row for row in rows if not row["type"].endswith(CALLS) and row["type"] not in SEALED]

    async def there_and_back() -> None:
        world = history_world()
        made = await world.answer(input=[*kept, question("?")])
        listed, _ = await world.desks.responses.input_items(
            world.access, made, page_of({"order": "asc", "limit": "100"})
        )
        for item, document in zip(items_from(kept), listed, strict=False):
            assert bare(document) == {k: v for k, v in item.values().items() if k != "id"}
            item_id = msgspec.json.decode(document)["id"]
            referred = await world.create(input=[{"type": "item_reference", "id": item_id}])
            assert referred.hydrated.ask.items[0].document == document

    asyncio.run(there_and_back())


SEALED = ("compaction", "reasoning")

Said = tuple[str, bool, bool]
"""What the user says; whether the model thinks first, and whether it calls a function before it answers."""


async def answering(run: FakeRun, said: Said, number: int) -> AsyncIterator[Sequence[Event]]:
    _, thinks, calls = said
    yield [begin()]
    if thinks:
        yield block(0, "reasoning", f"thought {number}")
    last = int(thinks)
    if calls:
        yield block(last, "call", "{}", name="f", call_id=f"call_{number}")
        yield finish("tool_calls")
        return
    yield [*block(last, "text", f"answer {number}"), *finish()]


async def prompts_of(world: HistoryWorld, session: Sequence[Said], *, by_chain: bool) -> list[Any]:
    """Have a conversation; return every prompt that came of it."""
    conversation = "" if by_chain else await world.conversation()
    last = ""
    for number, said in enumerate(session):
        world.generations.script = partial(answering, said=said, number=number)
        asked: list[Any] = [question(said[0])]
        if number and session[number - 1][2]:
            call_id = f"call_{number - 1}"
            asked.insert(0, {"type": "function_call_output", "call_id": call_id, "output": said[0]})
        last = await world.answer(
            input=asked,
            previous_response_id=last if by_chain and last else None,
            conversation=conversation or None,
            reasoning={"context": "all_turns"},
        )
    return [world.prompt(number) for number in range(len(session))]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.text("ab ", max_size=5), st.booleans(), st.booleans()), min_size=1, max_size=6
    )
)
def test_a_chain_and_a_conversation_of_the_same_turns_give_the_same_prompts(
    session: list[Said],
) -> None:
    async def both() -> None:
        by_chain = await prompts_of(history_world(), session, by_chain=True)
        by_conversation = await prompts_of(history_world(), session, by_chain=False)
        assert by_chain == by_conversation
        assert len(by_chain[-1]) >= len(session)

    asyncio.run(both())


def test_the_sessions_above_are_read_as_they_are_meant() -> None:
    session: list[Said] = [("a", True, True), ("b", False, False)]
    prompts = asyncio.run(prompts_of(history_world(), session, by_chain=True))
    assert prompts[1] == ["user: a", "assistant: <thought 0> f({})", "tool: b", "user: b"]
    assert ask_of(input=[question("a")]).items[0].role == "user"
