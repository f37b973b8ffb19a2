"""Calls side by side: how many at a time, and how they end."""

import asyncio
from functools import partial

import pytest

from smg_node.pipeline.generation.parallel_calls import side_by_side


async def test_all_run_and_never_more_than_so_many_at_once() -> None:
    running, most, done = 0, 0, list[int]()

    async def call(number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (number % 3))
        running -= 1
        done.append(number)

    await side_by_side([partial(call, at) for at in range(20)], at_once=4)
    assert sorted(done) == list(range(20))
    assert most == 4


async def test_the_first_failure_ends_all_others_and_is_raised_as_it_is() -> None:
    ended: list[int] = []
    begun: list[int] = []
    why = ValueError("the first")
    why.__cause__ = KeyError("its cause")

    async def call(number: int) -> None:
        begun.append(number)
        try:
            await asyncio.sleep(0)
            if number == 1:
                raise why
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="the first") as raised:
        await side_by_side([partial(call, at) for at in range(9)], at_once=3)
    assert raised.value is why
    assert isinstance(why.__cause__, KeyError)
    assert sorted(ended) == begun == [0, 1, 2]


async def test_being_cancelled_ends_all_of_them_first() -> None:
    ended: list[int] = []

    async def call(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(number)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(side_by_side([partial(call, at) for at in range(5)], at_once=5))
        await asyncio.sleep(0.01)
        task.cancel()
    assert task.cancelled()
    assert sorted(ended) == list(range(5))
