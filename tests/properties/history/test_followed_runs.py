"""Whoever follows a response that outlives its request is told each event once and in order, whatever happens meanwhile."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.runs import event_log as run_log
from smg_node.history.runs.background_run import RegisteredRun
from smg_storage.records import Status
from support.history.run_world import QUICK, RunWorld, refused, run_world, unknown

PACE = replace(QUICK, flush_s=0.001, followed_flush_s=0.0, retry_s=0.0, retry_most_s=0.0005)
ENDS = ("finish", "cancel", "cut", "finish and cancel")


@pytest.fixture(autouse=True)
def little_room() -> Iterator[None]:
    """Let what is kept in memory be so little that followers have to read the log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_log, "KEPT_BYTES_MAX", 2_000)
        patch.setattr(run_log, "PIECE_BYTES", 1_200)
        patch.setattr(run_log, "PIECES_MAX", 2)
        yield


class Follower:
    """Reads when it is let, one batch each time."""

    def __init__(self, run: RegisteredRun, after: int) -> None:
        self.after = after
        self.heard: list[NumberedEvent] = []
        self.whole = False
        self._events = run.follow(after)
        self._let = asyncio.Semaphore(0)
        self._left = False

    def let(self, times: int) -> None:
        for _ in range(times):
            self._let.release()

    def leave(self) -> None:
        self._left = True
        self._let.release()

    async def read(self) -> None:
        try:
            while True:
                await self._let.acquire()
                if self._left:
                    return
                try:
                    self.heard.extend(await anext(self._events))
                except StopAsyncIteration:
                    self.whole = True
                    return
        finally:
            await self._events.aclose()


actions = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 6), st.sampled_from([1, 40, 900])),
        st.tuples(st.just("follow"), st.integers(-1, 30), st.integers(0, 3)),
        st.tuples(st.just("let"), st.integers(0, 5), st.integers(1, 4)),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(
            st.just("fail"),
            st.sampled_from(["append_events", "renew_run", "commit_turn"]),
            st.sampled_from(["undone", "unknown"]),
        ),
        st.tuples(st.just("wait"), st.integers(1, 12)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(actions, st.sampled_from(ENDS), st.integers(0, 6))
def test_any_interleaving_tells_each_follower_all_he_asked_for(
    steps: list[tuple[Any, ...]], end: str, pause: int
) -> None:
    asyncio.run(_play(steps, end, pause))


async def _play(steps: list[tuple[Any, ...]], end: str, pause: int) -> None:
    async with run_world(pace=PACE) as world:
        run = await world.begin()
        world.feed.begin()
        followers: list[Follower] = []
        async with asyncio.TaskGroup() as group:

            def follow(after: int) -> None:
                followers.append(Follower(run, after))
                group.create_task(followers[-1].read())

            for step in steps:
                await _step(world, step, followers, follow)
            follow(-1)
            await _end(world, run, end, pause)
            follow(0)
            for follower in followers:
                follower.let(1_000)
            await run.ended()
            follow(3)
            followers[-1].let(1_000)
        whole = await world.whole(run)
        row = await world.row(run)
        assert row is not None
        assert row.status in (Status.COMPLETED, Status.CANCELLED, Status.FAILED)
        for follower in followers:
            wanted = whole[follower.after + 1 :]
            assert follower.heard == wanted[: len(follower.heard)]
            assert not follower.whole or follower.heard == wanted
        assert [follower.whole for follower in followers[-3:]] == [True] * 3
        assert world.runs.held_bytes == 0


async def _step(
    world: RunWorld, step: tuple[Any, ...], followers: list[Follower], follow: Any
) -> None:
    match step:
        case ("say", int(count), int(length)):
            for _ in range(count):
                world.feed.say("x" * length)
        case ("follow", int(after), int(times)):
            follow(after)
            followers[-1].let(times)
        case ("let", int(place), int(times)) if followers:
            followers[place % len(followers)].let(times)
        case ("leave", int(place)) if followers:
            followers[place % len(followers)].leave()
        case ("fail", str(operation), str(how)):
            world.store.will(operation, refused() if how == "undone" else unknown())
        case ("wait", int(turns)):
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.sleep(0.0005)
        case _:
            pass


async def _end(world: RunWorld, run: RegisteredRun, end: str, pause: int) -> None:
    if end.startswith("finish"):
        world.feed.finish()
    for _ in range(pause):
        await asyncio.sleep(0)
    if end.endswith("cancel"):
        run.cancel()
    if end == "cut":
        world.runs.cut()
