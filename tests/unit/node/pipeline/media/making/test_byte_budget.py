"""The memory that pictures under way may take: taken, refused, given back, whatever the order."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.pipeline.media.making.byte_budget import ByteBudget
from support.http.raw_http import until


def test_a_request_that_would_never_fit_is_too_large_and_says_which_setting_that_is() -> None:
    budget = ByteBudget(100)
    budget.take(60)
    with pytest.raises(SmgError) as caught:
        budget.take(41, already=60)
    assert caught.value.kind is ErrorKind.TOO_LARGE
    assert caught.value.status == 413
    assert "101" in caught.value.message
    assert "media.inflight_bytes" in caught.value.message
    assert budget.taken == 60


def test_a_request_that_others_leave_no_room_for_is_told_when_to_try_again() -> None:
    budget = ByteBudget(100)
    budget.take(60)
    with pytest.raises(SmgError) as caught:
        budget.take(41)
    assert caught.value.status == 429
    assert caught.value.retry_after_s == 1.0
    budget.give(60)
    budget.take(41)
    assert budget.taken == 41


def test_what_has_begun_may_take_more_than_there_is_and_others_wait_for_it() -> None:
    budget = ByteBudget(100)
    budget.take(90)
    budget.add(50)
    with pytest.raises(SmgError):
        budget.take(1)
    budget.give(140)
    budget.take(100)


@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 3)), max_size=60))
def test_what_is_taken_is_never_more_than_allowed_and_all_of_it_comes_back(
    steps: list[tuple[int, int]],
) -> None:
    budget, held = ByteBudget(100), [0, 0, 0, 0]
    for size, who in steps:
        if budget.taken + size <= 100:
            budget.take(size, held[who])
            held[who] += size
        else:
            with pytest.raises(SmgError):
                budget.take(size, held[who])
            budget.give(held[who])
            held[who] = 0
        assert budget.taken == sum(held) <= 100
    for size in held:
        budget.give(size)
    assert budget.taken == 0


async def test_who_waits_goes_before_who_comes_later_and_in_order() -> None:
    budget = ByteBudget(100)
    budget.take(90)
    order: list[str] = []

    async def wait(name: str, size: int) -> None:
        await budget.take_in_line(size, 0, 10.0)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(wait("large", 60))
        group.create_task(wait("small", 10))
        await until(lambda: budget.waiting == 2)
        with pytest.raises(SmgError) as caught:
            budget.take(10)
        assert caught.value.status == 429, "there is room, but others wait for it"
        budget.take(0)
        budget.give(49)
        await asyncio.sleep(0)
        assert budget.waiting == 2, "the first one needs more"
        budget.give(11)
    assert order == ["large", "small"]
    assert budget.taken == 30 + 60 + 10


async def test_who_waits_for_too_long_is_told_what_others_are_told_at_once() -> None:
    budget = ByteBudget(100)
    budget.take(90)
    with pytest.raises(SmgError) as caught:
        await budget.take_in_line(20, 0, 0.01)
    assert (caught.value.status, caught.value.code) == (429, "media_busy")
    with pytest.raises(SmgError) as caught:
        await budget.take_in_line(20, 0, 0.0)
    assert caught.value.status == 429
    with pytest.raises(SmgError) as caught:
        await budget.take_in_line(41, 60, 10.0)
    assert caught.value.status == 413, "waiting would not help"
    assert (budget.waiting, budget.taken) == (0, 90)


async def test_who_leaves_the_line_lets_the_next_one_go() -> None:
    budget = ByteBudget(100)
    budget.take(90)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(budget.take_in_line(60, 0, 10.0))
        await until(lambda: budget.waiting == 1)
        second = group.create_task(budget.take_in_line(10, 0, 10.0))
        await until(lambda: budget.waiting == 2)
        first.cancel()
        await second
    assert budget.taken == 100


async def test_what_is_given_to_one_who_leaves_in_that_moment_comes_back() -> None:
    budget = ByteBudget(100)
    budget.take(90)
    async with asyncio.TaskGroup() as group:
        waits = group.create_task(budget.take_in_line(60, 0, 10.0))
        await until(lambda: budget.waiting == 1)
        budget.give(90)
        assert budget.taken == 60
        waits.cancel()
    assert (budget.waiting, budget.taken) == (0, 0)


async def test_where_all_that_is_taken_belongs_to_who_waits_the_first_one_goes_on() -> None:
    budget = ByteBudget(100)
    budget.take(50)
    budget.take(50)
    began: list[int] = []

    async def goes_on(number: int) -> None:
        await budget.take_in_line(30, 50, 10.0)
        began.append(number)
        if number == 0:
            assert budget.taken == 130
        budget.give(80)

    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(goes_on(number))
    assert began == [0, 1]
    assert budget.taken == 0


async def test_more_room_lets_who_waits_go_on() -> None:
    budget = ByteBudget(100)
    budget.take(100)
    async with asyncio.TaskGroup() as group:
        group.create_task(budget.take_in_line(50, 0, 10.0))
        await until(lambda: budget.waiting == 1)
        budget.most = 200
    assert budget.taken == 150


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(0, 9), st.booleans()), max_size=30))
async def test_whoever_waits_gets_its_turn_or_leaves_and_all_comes_back(
    steps: list[tuple[int, int, bool]],
) -> None:
    budget = ByteBudget(100)

    async def one(size: int, rounds: int) -> None:
        await budget.take_in_line(size, 0, 10.0)
        try:
            assert budget.taken <= 100
            for _ in range(rounds):
                await asyncio.sleep(0)
        finally:
            budget.give(size)

    async with asyncio.TaskGroup() as group:
        for size, rounds, leaves in steps:
            task = group.create_task(one(size, rounds))
            await asyncio.sleep(0)
            if leaves:
                task.cancel()
    assert (budget.waiting, budget.taken) == (0, 0)
