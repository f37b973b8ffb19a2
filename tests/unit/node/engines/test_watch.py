"""Timers of streams, on a clock that only moves when told."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from smg_node.engines.watch import Limit, Watch


class FakeLoop:
    """The two things a watch asks of a loop."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None], FakeTimer]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> "FakeTimer":
        timer = FakeTimer()
        self.timers.append((when, call, timer))
        return timer

    def advance(self, to: float) -> None:
        while due := [one for one in self.timers if one[0] <= to]:
            first = min(due, key=lambda one: one[0])
            self.timers.remove(first)
            self.now = max(self.now, first[0])
            if not first[2].cancelled:
                first[1]()
        self.now = to


class FakeTimer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


def watched(
    *, deadline_s: float = 1000.0, first_event_s: float | None = 60.0, stall_s: float | None = 30.0
) -> tuple[FakeLoop, Watch, list[float]]:
    loop, bites = FakeLoop(), list[float]()
    watch = Watch(
        cast(asyncio.AbstractEventLoop, loop),
        lambda: bites.append(loop.now - 100.0),
        deadline_s=deadline_s,
        first_event_s=first_event_s,
        stall_s=stall_s,
    )
    return loop, watch, bites


def test_silence_before_the_first_message_has_its_own_limit() -> None:
    loop, watch, bites = watched()
    loop.advance(2000)
    assert (bites, watch.bitten) == ([60.0], Limit.FIRST_EVENT)


def test_silence_after_a_message_is_a_stall_counted_from_that_message() -> None:
    loop, watch, bites = watched()
    for second in (1, 20, 45, 70):
        loop.advance(100.0 + second)
        watch.seen()
    loop.advance(2000)
    assert (bites, watch.bitten) == ([100.0], Limit.STALL)


def test_the_deadline_comes_whatever_is_said() -> None:
    loop, watch, bites = watched(deadline_s=50.0)
    for second in range(1, 60):
        loop.advance(100.0 + second)
        watch.seen()
    assert (bites, watch.bitten) == ([50.0], Limit.DEADLINE)


@pytest.mark.parametrize("begun", [True, False])
def test_a_deadline_nearer_than_the_silence_is_a_deadline(begun: bool) -> None:
    loop, watch, bites = watched(deadline_s=10.0)
    if begun:
        watch.seen()
    loop.advance(2000)
    assert (bites, watch.bitten) == ([10.0], Limit.DEADLINE)


def test_without_limits_of_silence_only_the_deadline_bites() -> None:
    loop, watch, bites = watched(first_event_s=None, stall_s=None)
    loop.advance(5000)
    assert (bites, watch.bitten) == ([1000.0], Limit.DEADLINE)
    assert watch.past_deadline(slack_s=0.0)


def test_a_stopped_watch_never_bites() -> None:
    loop, watch, bites = watched()
    watch.stop()
    loop.advance(5000)
    assert (bites, watch.bitten) == ([], None)


def test_messages_cost_no_timers() -> None:
    loop, watch, _ = watched()
    for _number in range(1000):
        watch.seen()
    assert len(loop.timers) == 1
