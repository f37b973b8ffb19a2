"""So much work in each round of the loop, and no more."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.pipeline.prompt.loop_budget import LoopBudget
from support.tools.example_counts import example_count


class Rounds:
    """Counts the rounds of the loop."""

    def __init__(self) -> None:
        self.number = 0
        self._goes_on = True

    def begin(self) -> None:
        self.number += 1
        if self._goes_on:
            asyncio.get_running_loop().call_soon(self.begin)

    def end(self) -> None:
        self._goes_on = False


@settings(max_examples=example_count(200), deadline=None)
@given(
    workers=st.lists(
        st.tuples(
            st.integers(0, 6),
            st.sampled_from([0.25, 0.5, 1.0, 1.5]),
            st.one_of(st.none(), st.integers(0, 12)),
        ),
        max_size=8,
    )
)
def test_a_round_has_no_more_than_its_work_in_order_and_who_leaves_takes_nobody_s(
    workers: list[tuple[int, float, int | None]],
) -> None:
    """`workers`: how many rounds from the start each comes, with how much, and after how many more it leaves, if it does."""

    async def story() -> tuple[list[tuple[int, int]], list[int], int]:
        turns, rounds = LoopBudget(), Rounds()
        worked: list[tuple[int, int]] = []
        asked: list[int] = []

        async def work(number: int, comes: int, size: float) -> None:
            for _ in range(comes):
                await asyncio.sleep(0)
            asked.append(number)
            await turns.turn(size)
            worked.append((rounds.number, number))

        rounds.begin()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(work(number, comes, size))
                for number, (comes, size, _) in enumerate(workers)
            ]
            for after in range(40):
                for task, (comes, _, leaves) in zip(tasks, workers, strict=True):
                    if leaves is not None and after == comes + leaves:
                        task.cancel()
                await asyncio.sleep(0)
        rounds.end()
        return worked, asked, len(turns)

    worked, asked, left = asyncio.run(story())
    numbers = [number for _, number in worked]
    for at in {at for at, _ in worked}:
        sizes = [workers[number][1] for when, number in worked if when == at]
        assert sum(sizes) <= 1 or len(sizes) == 1
    assert numbers == [number for number in asked if number in numbers]
    assert {number for number, (*_, leaves) in enumerate(workers) if leaves is None} <= set(numbers)
    assert not left


def test_others_are_heard_between_two_turns() -> None:
    """What arrives at a socket while many wait is there before the second of them has its turn."""

    async def story() -> list[str]:
        turns, said = LoopBudget(), []

        async def work(name: str) -> None:
            await turns.turn(5)
            said.append(name)

        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(work(name))
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_soon(said.append, "heard")
        return said

    said = asyncio.run(story())
    assert said.index("heard") < said.index("b")
