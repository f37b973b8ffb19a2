"""A long chain, gone on with from any of its responses; and what others pay for asking after it."""

from collections.abc import Awaitable, Callable
from random import Random

import pytest

from smg_node.core.errors import SmgError
from smg_storage.ids import new_id, thread_of
from smg_storage.records import Access
from support.history.history_world import CountingStore, HistoryWorld, history_world, question

HOPS = 200


async def chain(world: HistoryWorld, hops: int) -> list[str]:
    made = [await world.answer(input="0")]
    for number in range(1, hops):
        made.append(await world.answer(input=str(number), previous_response_id=made[-1]))
    return made


async def test_a_chain_of_two_hundred_is_forked_at_any_ancestor_with_one_read() -> None:
    world = history_world()
    made = await chain(world, HOPS)
    whole = world.prompt()
    counted = CountingStore(world.keeper.store)
    world.keeper.store = counted
    for number, ancestor in enumerate(made):
        counted.asked.clear()
        run = await world.create(input="fork", previous_response_id=ancestor)
        assert counted.asked == ["get_response_chain"]
        turns = [(item.role, item.document) for item in run.hydrated.items]
        assert len(turns) == 2 * number + 3
        assert [role for role, _ in turns] == ["user", "assistant"] * (number + 1) + ["user"]
        assert run.hydrated.depth == number + 1
        assert run.hydrated.thread == thread_of(made[0])
        if number == HOPS - 2:
            async for _ in run.told():
                pass
            assert world.prompt() == [*whole[:-1], "user: fork"]


async def test_both_ends_of_a_fork_have_their_own_history() -> None:
    world = history_world()
    first, second = await chain(world, 2)
    for word in ("left", "right"):
        await world.answer(input=word, previous_response_id=first)
        assert world.prompt() == ["user: 0", "assistant: turns 1", f"user: {word}"]
    await world.answer(input="on", previous_response_id=second)
    assert world.prompt()[2:] == ["user: 1", "assistant: turns 3", "user: on"]


# ── Others ───────────────────────────────────────────────────────────────────

Ask = Callable[[HistoryWorld, Access, str, str, str], Awaitable[object]]
ASKS: dict[str, Ask] = {
    "retrieve": lambda w, a, r, v, i: w.desks.responses.retrieve(a, r),
    "delete": lambda w, a, r, v, i: w.desks.responses.delete(a, r),
    "cancel": lambda w, a, r, v, i: w.desks.responses.cancel(a, r),
    "continue": lambda w, a, r, v, i: w.create(a, input="x", previous_response_id=r),
    "join": lambda w, a, r, v, i: w.create(a, input="x", conversation=v),
    "refer": lambda w, a, r, v, i: w.create(a, input=[{"type": "item_reference", "id": i}]),
    "show": lambda w, a, r, v, i: w.desks.conversations.retrieve(a, v),
    "item": lambda w, a, r, v, i: w.desks.conversations.get_item(a, v, i),
    "drop": lambda w, a, r, v, i: w.desks.conversations.delete_item(a, v, i),
    "forget": lambda w, a, r, v, i: w.desks.conversations.delete(a, v),
}


@pytest.mark.parametrize("name", ASKS)
async def test_what_is_another_tenants_costs_the_same_reads_as_what_never_was(name: str) -> None:
    world = history_world()
    room = await world.conversation(question("mine"))
    made = await world.answer(input="mine", conversation=room)
    item = world.keeper.turns[-1].links[0]
    counted = CountingStore(world.keeper.store)
    world = history_world(store=counted)
    never = tuple(
        new_id(one.partition("_")[0], thread_of(one), now_ms=1, chance=Random(1))
        for one in (made, room, item)
    )
    told = []
    for ids in ((made, room, item), never):
        counted.asked.clear()
        with pytest.raises(SmgError) as found:
            await ASKS[name](world, Access(tenant="other"), *ids)
        text = found.value.message
        for number, one in enumerate(ids):
            text = text.replace(one, f"<{number}>")
        told.append((found.value.kind, found.value.code, text, [*counted.asked]))
    assert told[0] == told[1]
    assert await world.desks.responses.retrieve(Access(tenant="acme"), made)
