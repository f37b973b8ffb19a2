"""Large histories are brought to mind in slices, and whoever else waits for the loop gets it in between."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from smg_node.core.cooperative_steps import ITEM_WEIGHT, Steps, whole
from smg_node.core.errors import SmgError
from smg_node.history.context.paced_steps import SLICE_WEIGHT, paced
from smg_node.history.ports import HistoryOptions
from smg_storage.records import PageAsk
from support.history.history_world import HistoryWorld, history_world, question

T = TypeVar("T")


class Others:
    """Somebody else on the same loop, who counts how often it is their turn."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


@asynccontextmanager
async def others() -> AsyncIterator[Others]:
    seen = Others()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(seen.run())
        await asyncio.sleep(0)
        yield seen
        task.cancel()


async def turns_during(work: Awaitable[T]) -> tuple[T, int]:
    async with others() as seen:
        before = seen.turns
        result = await work
        return result, seen.turns - before


def counted(*weights: int) -> Steps[int]:
    yield from weights
    return sum(weights)


async def test_work_of_less_than_a_slice_is_done_at_once() -> None:
    assert await turns_during(paced(counted())) == (0, 0)
    assert await turns_during(paced(counted(SLICE_WEIGHT - 1))) == (SLICE_WEIGHT - 1, 0)


async def test_the_others_have_a_turn_after_every_slice() -> None:
    quarter = SLICE_WEIGHT // 4
    _, turns = await turns_during(paced(counted(*[quarter] * 40)))
    assert turns == 10
    _, turns = await turns_during(paced(counted(*[10 * SLICE_WEIGHT] * 3)))
    assert turns == 3


async def test_what_fails_in_the_middle_fails() -> None:
    def failing() -> Steps[None]:
        yield SLICE_WEIGHT
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await paced(failing())
    with pytest.raises(ValueError, match="no"):
        whole(failing())


async def test_who_gives_up_in_the_middle_is_heard() -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(paced(counted(*[SLICE_WEIGHT] * 1_000_000)))
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()


OPTIONS = HistoryOptions(items_max=100_000, bytes_max=64 << 20)


async def long_chain(world: HistoryWorld, rounds: int, size: int) -> tuple[str, int]:
    """Return the last of a chain of responses, and how much all of it weighs at least."""
    last, weight = "", 0
    for number in range(rounds):
        text = str(number) + "x" * size
        last = await world.answer(input=[question(text)], previous_response_id=last or None)
        weight += len(text) + 2 * ITEM_WEIGHT
    return last, weight


async def test_a_long_chain_is_not_read_in_one_go() -> None:
    world = history_world(options=OPTIONS)
    last, weight = await long_chain(world, 60, 40_000)
    run, turns = await turns_during(world.create(input="and?", previous_response_id=last))
    assert run.known == 121
    # Each item is looked at twice at least: to know what it is, and to make a turn of it.
    assert turns >= 2 * weight // (SLICE_WEIGHT + 50_000)


async def test_a_long_conversation_is_not_read_in_one_go() -> None:
    world = history_world(options=OPTIONS)
    rows = [question(str(number) + "y" * 40_000) for number in range(60)]
    conversation = await world.conversation(*rows)
    run, turns = await turns_during(world.create(input="and?", conversation=conversation))
    assert run.known == 61
    assert turns >= 2 * 60 * 40_000 // (SLICE_WEIGHT + 50_000)


async def test_calls_thoughts_and_what_is_left_out_are_looked_at_in_slices_too() -> None:
    world = history_world(options=OPTIONS, model_context=100_000)
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "z" * 40_000}
    conversation = await world.conversation(*[question("q"), call, output] * 6)
    quiet, turns = await turns_during(world.create(input="and?", conversation=conversation))
    cut, more = await turns_during(
        world.create(input="and?", conversation=conversation, truncation="auto")
    )
    assert quiet.known == cut.known == 19
    assert turns >= 3
    assert more > turns


async def test_a_short_history_is_read_in_one_go() -> None:
    world = history_world()
    last, _ = await long_chain(world, 5, 100)
    _, turns = await turns_during(world.create(input="and?", previous_response_id=last))
    assert turns == 0


async def test_a_long_list_of_input_items_is_shown_in_slices() -> None:
    world = history_world(options=OPTIONS)
    rows = [question(str(number) + "y" * 40_000) for number in range(60)]
    made = await world.answer(input=rows)
    shown = world.desks.responses.input_items(world.access, made, PageAsk(limit=1))
    listed, turns = await turns_during(shown)
    assert len(listed[0]) == 1
    assert turns >= 60 * 40_000 // (SLICE_WEIGHT + 50_000)


async def test_a_call_without_its_output_is_found_however_long_the_history_is() -> None:
    world = history_world(options=OPTIONS)
    call = {"type": "function_call", "call_id": "late", "name": "f", "arguments": "{}"}
    rows = [question("y" * 40_000)] * 12 + [call]
    with pytest.raises(SmgError, match="late"):
        await world.create(input=rows)
