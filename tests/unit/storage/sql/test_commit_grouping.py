import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Committed, Status, StoredResponse, Turn
from smg_storage.sql.commit_grouping import GROUP_BYTES_MAX, WAITING_MAX, Grouping, Outcome
from support.tools.example_counts import example_count


def turn(name: str, size: int = 2) -> Turn:
    return Turn(
        response=StoredResponse(
            id=name,
            status=Status.COMPLETED,
            model="m",
            created_us=1,
            input=b"x" * size,
            response=b"{}",
        )
    )


class Disk:
    """Writes groups one after the other, each as soon as it is let."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.kept: list[str] = []
        self.begun = 0
        self.under_way = 0
        self.under_way_max = 0
        self.gate = asyncio.Semaphore(0)
        self.bad: dict[str, StoreError] = {}

    async def write(self, turns: Sequence[tuple[str, Turn]]) -> Sequence[Outcome]:
        names = [each.response.id for _, each in turns]
        self.groups.append(names)
        self.begun += 1
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        try:
            await self.gate.acquire()
        finally:
            self.under_way -= 1
        for name in names:
            if name in self.bad:
                raise self.bad[name]
        fresh = [name not in self.kept for name in names]
        self.kept += [name for name, new in zip(names, fresh, strict=True) if new]
        return [Committed(again=not new) for new in fresh]

    def let(self, count: int = 1) -> None:
        for _ in range(count):
            self.gate.release()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def refused(name: str, kind: StoreErrorKind = StoreErrorKind.CONFLICT) -> dict[str, StoreError]:
    return {name: StoreError(kind, name)}


async def test_a_turn_alone_waits_for_nobody() -> None:
    disk = Disk()
    disk.let()
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    assert await grouping.commit("-", turn("a")) == Committed()
    assert disk.groups == [["a"]]


async def test_what_is_ready_in_one_wake_up_is_one_group() -> None:
    disk = Disk()
    disk.let()
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    await asyncio.gather(*(grouping.commit("-", turn(name)) for name in "abc"))
    assert disk.groups == [["a", "b", "c"]]


async def test_what_comes_during_a_commit_is_the_next_group() -> None:
    disk = Disk()
    grouping = Grouping(disk.write, turns_max=3, lanes=1)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(grouping.commit("-", turn("a")))
        await settle()
        for name in "bcdef":
            tasks.create_task(grouping.commit("-", turn(name)))
        await settle()
        assert disk.groups == [["a"]]
        disk.let(3)
    assert disk.groups == [["a"], ["b", "c", "d"], ["e", "f"]]
    assert disk.under_way_max == 1


async def test_two_groups_may_be_under_way_where_there_are_two_lanes() -> None:
    disk = Disk()
    grouping = Grouping(disk.write, turns_max=64, lanes=2)
    async with asyncio.TaskGroup() as tasks:
        for name in "abc":
            tasks.create_task(grouping.commit("-", turn(name)))
            await settle()
        assert disk.groups == [["a"], ["b"]]
        disk.let(3)
    assert disk.groups == [["a"], ["b"], ["c"]]
    assert disk.under_way_max == 2


async def test_a_group_is_not_too_large() -> None:
    disk = Disk()
    disk.let(2)
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    half = GROUP_BYTES_MAX // 2
    await asyncio.gather(*(grouping.commit("-", turn(name, half)) for name in "ab"))
    assert disk.groups == [["a"], ["b"]]


async def test_one_that_cannot_be_written_fails_alone() -> None:
    disk = Disk()
    disk.bad = refused("b")
    disk.let(4)
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    answers = await asyncio.gather(
        *(grouping.commit("-", turn(name)) for name in "abc"), return_exceptions=True
    )
    assert answers == [Committed(), disk.bad["b"], Committed()]
    assert disk.groups == [["a", "b", "c"], ["a"], ["b"], ["c"]]


async def test_a_store_that_is_away_is_not_asked_once_for_each() -> None:
    disk = Disk()
    disk.bad = refused("a", StoreErrorKind.UNAVAILABLE)
    disk.let(4)
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    answers = await asyncio.gather(
        *(grouping.commit("-", turn(name)) for name in "abc"), return_exceptions=True
    )
    assert answers == [disk.bad["a"]] * 3
    assert disk.groups == [["a", "b", "c"]]


async def test_who_is_left_behind_by_a_cancelled_leader_is_written_by_the_next() -> None:
    disk = Disk()
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(grouping.commit("-", turn(name))) for name in "abc"]
        await settle()
        assert disk.groups == [["a", "b", "c"]]
        made[0].cancel()
        await settle()
        assert disk.groups == [["a", "b", "c"], ["b", "c"]]
        disk.let()
    assert disk.kept == ["b", "c"]
    disk.let()
    assert await grouping.commit("-", turn("d")) == Committed()


@pytest.mark.parametrize("wake_ups", range(12))
async def test_whenever_one_is_cancelled_the_next_is_written(wake_ups: int) -> None:
    disk = Disk()
    grouping = Grouping(disk.write, turns_max=1, lanes=1)
    made = [asyncio.gather(grouping.commit("-", turn(name))) for name in "abc"]
    await settle()
    disk.let(3)
    # While it waits, when it has been called and not run yet, while it writes, and after all that.
    for _ in range(wake_ups):
        await asyncio.sleep(0)
    made[1].cancel()
    answers = await asyncio.wait_for(asyncio.gather(*made, return_exceptions=True), 5)
    for answer in (answers[0], answers[2]):
        assert not isinstance(answer, BaseException)
        assert list(answer) == [Committed()]


async def test_a_line_that_is_too_long_is_refused() -> None:
    disk = Disk()
    grouping = Grouping(disk.write, turns_max=64, lanes=1)
    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(grouping.commit("-", turn("first")))]
        await settle()
        made += [
            tasks.create_task(grouping.commit("-", turn(f"{number}")))
            for number in range(WAITING_MAX)
        ]
        await settle()
        with pytest.raises(StoreError) as told:
            await grouping.commit("-", turn("late"))
        assert told.value.kind is StoreErrorKind.UNAVAILABLE
        for each in made:
            each.cancel()


@settings(deadline=None, max_examples=example_count(150))
@example(steps=[("come", 1), ("write", 1), ("wait", 2), ("leave", 0)], lanes=1, bad=set())
@example(steps=[("come", 2), ("write", 1), ("wait", 2), ("leave", 1)], lanes=1, bad=set())
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("come"), st.integers(0, 9)),
            st.tuples(st.just("leave"), st.integers(0, 30)),
            st.tuples(st.just("write"), st.integers(1, 3)),
            st.tuples(st.just("wait"), st.integers(1, 4)),
        ),
        max_size=40,
    ),
    lanes=st.integers(1, 3),
    bad=st.sets(st.integers(0, 30), max_size=4),
)
def test_whoever_stays_is_answered_once_whoever_else_leaves(
    steps: list[tuple[str, int]], lanes: int, bad: set[int]
) -> None:
    async def play() -> None:
        disk = Disk()
        for number in bad:
            disk.bad |= refused(f"{number}")
        grouping = Grouping(disk.write, turns_max=4, lanes=lanes)
        made: list[asyncio.Future[tuple[Committed]]] = []
        left: set[int] = set()
        for what, count in steps:
            if what == "come":
                for _ in range(count % 4):
                    name = f"{len(made)}"
                    made.append(asyncio.gather(grouping.commit("-", turn(name))))
            elif what == "leave" and count < len(made) and made[count].cancel():
                # One that has its answer, and only has not said so yet, cannot leave any more.
                left.add(count)
            elif what == "write":
                disk.let(count)
            elif what == "wait":
                for _ in range(count):
                    await asyncio.sleep(0)
        disk.let(200)
        answers = await asyncio.wait_for(asyncio.gather(*made, return_exceptions=True), 5)
        kinds = [
            asyncio.CancelledError if n in left else StoreError if n in bad else list
            for n in range(len(made))
        ]
        assert [type(answer) for answer in answers] == kinds
        assert set(disk.kept) >= {f"{n}" for n, kind in enumerate(kinds) if kind is list}
        assert len(disk.kept) == len(set(disk.kept))
        assert disk.under_way_max <= lanes
        # Nobody leads who is gone: the next is written at once.
        assert await asyncio.wait_for(grouping.commit("-", turn("last")), 5) == Committed()

    asyncio.run(play())
