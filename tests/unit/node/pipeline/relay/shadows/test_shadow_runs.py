"""Copies are few at a time, within their budget, tried once, and never in the way of what is served."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from smg_node.core.ports import Clock
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_context import Asks, RelayParts, Translation
from smg_node.pipeline.relay.relay_request import APIS, relayable
from smg_node.pipeline.relay.shadows.shadow_records import AnswerFigures, ShadowRecord
from smg_node.pipeline.relay.shadows.shadow_runs import (
    DAY_MS,
    RUNNING_MAX,
    WAITING_MAX,
    WAITING_MAX_BYTES,
    ShadowRuns,
)
from smg_node.pipeline.relay.shadows.shadow_tap import (
    ANSWER_MAX_BYTES,
    CLIENT_KEY_HEADER,
    Measured,
    Shadowed,
    tap_of,
)
from smg_node.providers.routes.shadow_rule import ShadowRule

FIGURES = AnswerFigures(1, 0, 1, 5, 2, None)
BODY = {"model": "r", "messages": [{"role": "user", "content": "hi"}]}


@dataclass
class Time:
    ms: int = 5 * DAY_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000


def shadowed(per_day: int = 1_000, answer: bytes = b"{}") -> Shadowed:
    return Shadowed(
        cast("RelayParts", None),
        relayable(APIS["chat"], b"{}", BODY),
        Asks("chat", False),
        RequestContext("req", 0.0, 9.0),
        "r",
        "w-copy",
        ShadowRule(1.0, per_day),
        "w-own",
        False,
        answer,
        Measured(1.0, 0.5, (1, 0, 1), None),
    )


@dataclass
class World:
    """Runs over a comparison that waits until it is let go."""

    time: Time = field(default_factory=Time)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    processes: int = 1
    running: int = 0
    most: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    broken: bool = False
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    def __post_init__(self) -> None:
        self.runs = ShadowRuns(self.spawn, self.time, lambda: self.processes, self.compare)

    async def __aenter__(self) -> "World":
        await self.group.__aenter__()
        return self

    async def __aexit__(self, *ended: Any) -> None:
        await self.group.__aexit__(*ended)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(self.group.create_task(work, name=name))

    async def compare(self, one: Shadowed, clock: Clock) -> ShadowRecord:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.go.wait()
            if self.broken:
                raise ValueError("a fault of ours")
        finally:
            self.running -= 1
        return ShadowRecord(clock.now_ms(), "req", "w-own", "w-copy", FIGURES, FIGURES)

    async def done(self) -> dict[str, int]:
        self.go.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return self.runs.book.of("r").outcomes


async def test_a_few_run_at_a_time_some_wait_and_the_rest_is_dropped() -> None:
    async with World() as world:
        for _ in range(WAITING_MAX):
            world.runs.take(shadowed())
        await asyncio.sleep(0)
        for _ in range(RUNNING_MAX + 3):
            world.runs.take(shadowed())
        assert len(world.tasks) == RUNNING_MAX
        assert await world.done() == {"answered": WAITING_MAX + RUNNING_MAX, "dropped": 3}
        assert world.most == RUNNING_MAX
        world.runs.take(shadowed())
        assert (await world.done())["answered"] == WAITING_MAX + RUNNING_MAX + 1


async def test_those_that_wait_hold_so_many_bytes_at_most() -> None:
    async with World() as world:
        large = shadowed(answer=b"x" * (WAITING_MAX_BYTES // 3))
        for _ in range(4):
            world.runs.take(large)
        assert await world.done() == {"answered": 2, "dropped": 2}
        world.runs.take(large)
        assert (await world.done())["answered"] == 3


@pytest.mark.parametrize(("processes", "sent"), [(1, 10), (3, 4), (100, 1), (0, 10)])
async def test_a_process_sends_its_part_of_a_day_s_budget(processes: int, sent: int) -> None:
    async with World(processes=processes) as world:
        for _ in range(12):
            world.runs.take(shadowed(per_day=10))
        assert await world.done() == {"answered": sent, "over_budget": 12 - sent}
        world.time.ms += DAY_MS
        world.runs.take(shadowed(per_day=10))
        assert (await world.done())["answered"] == sent + 1


async def test_the_end_of_a_process_cuts_copies_and_waits_for_none() -> None:
    async with World() as world:
        for _ in range(RUNNING_MAX + 2):
            world.runs.take(shadowed())
        await asyncio.sleep(0)
        for task in world.tasks:
            task.cancel()
        assert await world.done() == {"cut": RUNNING_MAX + 2}


async def test_a_process_that_takes_no_more_tasks_forgets_copies() -> None:
    world = World()

    def refuses(work: Coroutine[Any, Any, None], name: str) -> None:
        raise RuntimeError("the group is shutting down")

    runs = ShadowRuns(refuses, world.time, lambda: 1, world.compare)
    runs.take(shadowed())
    assert runs.book.of("r").outcomes == {"cut": 1}


async def test_a_fault_of_ours_ends_one_copy_and_nothing_else() -> None:
    async with World(broken=True) as world:
        for _ in range(6):
            world.runs.take(shadowed())
        assert await world.done() == {"failed": 6}


# ── Which requests ───────────────────────────────────────────────────────────


@dataclass
class Target:
    id: str
    labels: dict[str, str]


@dataclass
class Parts:
    """As much of the parts of relays as a tap looks at."""

    drawn: float = 0.0
    clock: Time = field(default_factory=Time)

    def serving(self, model: object) -> list[Target]:
        return [Target("w-own", {}), Target("w-copy", {"shadow": "0.5 10"})]

    def random(self) -> float:
        return self.drawn

    @property
    def fleet(self) -> "Parts":
        return self

    @property
    def rng(self) -> "Parts":
        return self


@dataclass
class Model:
    name: str = "r"


def asks(*, presented: bool = True, client_key: str = "") -> Asks:
    presenter = cast("Any", object() if presented else None)
    translation = Translation(cast("Any", None), presenter)
    headers = {CLIENT_KEY_HEADER: client_key} if client_key else {}
    return Asks("chat", False, translate=lambda: translation, headers=headers)


def taken(
    parts: Parts,
    asked: Asks,
    *pieces: Head | bytes,
    worker: str = "w-own",
    target: str | None = None,
) -> list[Shadowed]:
    found: list[Shadowed] = []
    context = RequestContext("req", 0.0, 9.0, target_worker=target)
    body = relayable(APIS["chat"], b"{}", BODY)
    tap = tap_of(
        cast("RelayParts", parts), body, asked, context, cast("Any", Model()), found.append
    )
    if tap is not None:
        for piece in pieces:
            tap.hear(piece)
        tap.over(worker, 1.0, (1, 0, 1), ())
    return found


ANSWER = (Head(200, "text/event-stream", {}, events=True), b"data: a\n\n", b"data: b\n\n")


def test_a_sampled_request_is_handed_over_with_its_whole_answer() -> None:
    [one] = taken(Parts(), asks(), *ANSWER)
    assert (one.route, one.target, one.worker, one.streamed) == ("r", "w-copy", "w-own", True)
    assert one.answer == b"data: a\n\ndata: b\n\n"
    assert one.rule == ShadowRule(0.5, 10)
    assert one.measured.first_s == 1.0


def test_an_answer_that_its_client_was_told_past_the_tap_is_not_copied() -> None:
    assert taken(Parts(), asks(), Head(200, "text/event-stream", {}, events=True, told=True)) == []


def test_what_is_not_to_be_copied_is_not() -> None:
    assert taken(Parts(drawn=0.5), asks(), *ANSWER) == []
    assert taken(Parts(), asks(client_key="sk-own"), *ANSWER) == []
    assert taken(Parts(), replace(asks(), translate=None), *ANSWER) == []
    assert taken(Parts(), asks(), *ANSWER, target="w-own") == []
    assert taken(Parts(), asks(), *ANSWER, worker="w-copy") == []
    long = b"x" * (ANSWER_MAX_BYTES // 2 + 1)
    assert taken(Parts(), asks(), ANSWER[0], long, long) == []


class Listening:
    """Listens to one call."""

    finished = True
    used = spent = None
    deltas = 0

    def __init__(self) -> None:
        self.heard: list[Head | bytes] = []

    def hear(self, piece: Head | bytes) -> bool:
        self.heard.append(piece)
        return False

    def over(self) -> None:
        self.heard.append(b"over")


def test_where_somebody_listens_the_last_call_s_own_bytes_are_kept() -> None:
    found: list[Shadowed] = []
    listening: list[Listening] = []

    def listen(listen_as: object) -> Listening:
        listening.append(Listening())
        return listening[-1]

    context = RequestContext("req", 0.0, 9.0)
    body = relayable(APIS["chat"], b"{}", BODY)
    asked = replace(asks(presented=False), answer="77", listen=listen)
    tap = tap_of(
        cast("RelayParts", Parts()), body, asked, context, cast("Any", Model()), found.append
    )
    assert tap is not None
    as_vendor = cast("Any", object())
    for piece in (b"broken", b"whole"):
        listener = tap.asks.listen(as_vendor)
        assert listener is not None
        listener.hear(Head(200, "", {}, events=True))
        assert listener.hear(piece) is False
        listener.over()
    tap.hear(b"what comes out of the listener")
    tap.over("w-own", None, (1, 0, 1), ())
    [one] = found
    assert (one.answer, one.listen_as, one.streamed) == (b"whole", as_vendor, True)
    assert listening[1].heard[1:] == [b"whole", b"over"]
