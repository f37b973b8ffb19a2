"""Timers of streams, on a clock that only moves when told; a limit bites a tenth of a second late at most."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from smg_node.engines.transport.deadline_queue import TICK_S
from smg_node.engines.transport.stream_timeouts import END_S, Limit, Watch, Watches


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
        Watches(cast(asyncio.AbstractEventLoop, loop)),
        lambda: bites.append(loop.now - 100.0),
        deadline_s=deadline_s,
        first_event_s=first_event_s,
        stall_s=stall_s,
    )
    return loop, watch, bites


def soon_after(bites: list[float], due_s: float) -> bool:
    """Whether it bit once, never too early and at most two ticks late."""
    return len(bites) == 1 and due_s <= bites[0] <= due_s + 2 * TICK_S


def test_silence_before_the_first_message_has_its_own_limit() -> None:
    loop, watch, bites = watched()
    loop.advance(2000)
    assert soon_after(bites, 60.0)
    assert watch.bitten is Limit.FIRST_EVENT


def test_silence_after_a_message_is_a_stall_counted_from_that_message() -> None:
    loop, watch, bites = watched()
    for second in (1, 20, 45, 70):
        loop.advance(100.0 + second)
        watch.seen()
    loop.advance(2000)
    assert soon_after(bites, 100.0)
    assert watch.bitten is Limit.STALL


def test_the_deadline_comes_whatever_is_said() -> None:
    loop, watch, bites = watched(deadline_s=50.0)
    for second in range(1, 60):
        loop.advance(100.0 + second)
        watch.seen()
    assert soon_after(bites, 50.0)
    assert watch.bitten is Limit.DEADLINE


@pytest.mark.parametrize("begun", [True, False])
def test_a_deadline_nearer_than_the_silence_is_a_deadline(begun: bool) -> None:
    loop, watch, bites = watched(deadline_s=10.0)
    if begun:
        watch.seen()
    loop.advance(2000)
    assert soon_after(bites, 10.0)
    assert watch.bitten is Limit.DEADLINE


def test_without_limits_of_silence_only_the_deadline_bites() -> None:
    loop, watch, bites = watched(first_event_s=None, stall_s=None)
    loop.advance(5000)
    assert soon_after(bites, 1000.0)
    assert watch.bitten is Limit.DEADLINE
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


def test_many_watches_have_one_timer_and_none_when_they_are_over() -> None:
    loop = FakeLoop()
    watches = Watches(cast(asyncio.AbstractEventLoop, loop))
    bites: list[int] = []
    many = [
        Watch(
            watches,
            partial(bites.append, number),
            deadline_s=10.0 + number / 100,
            first_event_s=None,
            stall_s=None,
        )
        for number in range(400)
    ]
    assert len(loop.timers) == 1
    for watch in many[::2]:
        watch.stop()
    loop.advance(200.0)
    assert sorted(bites) == list(range(1, 400, 2))
    assert loop.timers == []


@pytest.mark.parametrize("stall_s", [None, 0.1, 30.0])
def test_a_complete_answer_has_a_moment_to_end_whatever_its_limits_are(
    stall_s: float | None,
) -> None:
    loop, watch, bites = watched(stall_s=stall_s)
    watch.seen()
    watch.complete()
    loop.advance(2000)
    assert soon_after(bites, END_S)


def test_one_that_bites_may_stop_and_begin_others() -> None:
    loop = FakeLoop()
    watches = Watches(cast(asyncio.AbstractEventLoop, loop))
    bites: list[str] = []

    def watch(name: str, bite: Callable[[], None], deadline_s: float) -> Watch:
        def bitten() -> None:
            bites.append(name)
            bite()

        return Watch(watches, bitten, deadline_s=deadline_s, first_event_s=None, stall_s=None)

    other = watch("other", lambda: None, 5.0)

    def bite() -> None:
        other.stop()
        watch("new", lambda: None, 1.0)

    watch("first", bite, 1.0)
    loop.advance(200.0)
    assert bites == ["first", "new"]
