"""A budget of tokens against streams whose length nobody knows, and a number of requests at a time.

The nodes are first taught that answers are short; then comes a crowd of streams that are not, and a node is killed in
the middle. Every one that is not cut off by that has to end by itself or with the finish reason `length`, what they
took together has to fit into the budget, and nobody may hold anything any more when all have ended.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from smg_chaos.gameday.figures import Figure
from smg_chaos.gameday.limits.definition import Definer, Rule
from smg_chaos.gameday.limits.gauges import OPEN, gauges
from smg_chaos.gameday.limits.judge import Allowance, Amount, Run, fullest, most_open
from smg_chaos.gameday.limits.orders import TALK, Asks
from smg_chaos.gameday.limits.records import UNKNOWN, Answer, Arrival
from smg_chaos.gameday.limits.report import SMEAR_US, failures
from smg_chaos.gameday.limits.scene import Scene
from smg_chaos.gameday.limits.story import ADMITTED, Record

_LESSONS: Final = 24
"""Answers that each node sees before; all are as short as this many tokens."""
_SHORT: Final = 8
_LESSON: Final = Asks(TALK, f'"max_tokens":{_SHORT}')
_STREAM: Final = Asks(
    TALK, '"stream":true,"stream_options":{"include_usage":true}', patience_s=180.0
)
_ENDS: Final = frozenset({"stop", "length"})
_AT_A_TIME: Final = 8
_OFFERED: Final = 60
_LOOK_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many streams come, spread over how long, to share a budget of how many tokens in which window."""

    streams: int
    over_s: float
    tokens: int
    window_us: int
    killed_after_s: float


FULL: Final = Crowd(1000, 4.0, 120_000, 60_000_000, 8.0)
QUICK: Final = Crowd(150, 1.0, 9_000, 10_000_000, 2.0)


async def budget(scene: Scene, definer: Definer, crowd: Crowd) -> list[Figure]:
    """Let a crowd of streams share a budget, and kill a node under it; return what they took."""
    names = list(scene.cluster.names)
    rule = Rule(
        TALK, tokens=f"{crowd.tokens}/{crowd.window_us // 1_000_000}s", on_exhausted="finish"
    )
    await definer.begin(rule, _LESSON)
    await scene.burst(dict.fromkeys(names, _LESSONS), _LESSON, over_s=1.0)
    await scene.quiet()
    await scene.room(
        crowd.window_us, crowd.window_us
    )  # what was asked before is not of that window
    since_us = scene.now_us()
    await scene.burst(
        dict.fromkeys(names, crowd.streams // len(names)), _STREAM, over_s=crowd.over_s
    )
    await asyncio.sleep(crowd.over_s + crowd.killed_after_s)
    victim = names[-1]
    began_us = scene.now_us()
    scene.cluster[victim].signal(signal.SIGKILL)
    scene.hurt.add(names.index(victim), since_us, began_us + 5_000_000)
    books = await _books_until_quiet(scene, definer)
    scene.closed("budget", since_us)
    record = await scene.record(since_us)
    still_open = sum(await gauges(scene.cluster, names[:-1], OPEN))
    figures = budget_figures(record, crowd, since_us)
    says = "of all nodes that were not killed"
    figures.append(Figure("budget: reservations nobody settled", still_open, "", 0, says))
    figures.append(audit(record, names[:-1], books, since_us // crowd.window_us))
    figures.append(failures("budget", record, scene.hurt, scene.stage.say))
    return figures


def budget_figures(record: Record, crowd: Crowd, since_us: int) -> list[Figure]:
    """Return what the streams took, as clients were told and as the engines made it, and how they ended."""
    allowance = Allowance(crowd.window_us, [Amount(crowd.tokens, since_us)])
    admitted = [answer for answer in record.answers if answer.serial in record.arrivals]
    told = _fullest(admitted, record.arrivals, allowance, _told_tokens)
    made = _fullest(admitted, record.arrivals, allowance, _made_tokens)
    arrivals = [record.arrivals[answer.serial] for answer in admitted]
    at_once = most_open(_times(arrivals))
    whole = [answer for answer in admitted if answer.status == ADMITTED and not answer.why]
    unclear = [answer for answer in whole if answer.finish not in _ENDS]
    cut = sum(answer.finish == "length" for answer in whole)
    return [
        Figure("budget: tokens over the limit", told.excess, "", 0, _says(told, crowd)),
        Figure(
            "budget: tokens made at the engines over it", made.excess, "", None, _says(made, crowd)
        ),
        Figure(
            "budget: streams that end unclear",
            len(unclear),
            "",
            0,
            f"of {len(whole)}, {cut} cut by the limit; {at_once} at once",
        ),
    ]


async def _books_until_quiet(scene: Scene, definer: Definer) -> dict[tuple[str, int], int]:
    """Wait until every answer has ended; return what the books said last of each window of each node.

    A node on which nobody asks any more closes its books some time later, so they are looked at again and again.
    """
    books: dict[tuple[str, int], int] = {}

    async def look() -> None:
        while True:
            books.update(await definer.books(TALK, "tokens"))
            await asyncio.sleep(_LOOK_S)

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        await scene.quiet()
        looking.cancel()
    books.update(await definer.books(TALK, "tokens"))
    return books


def audit(
    record: Record, names: Sequence[str], books: Mapping[tuple[str, int], int], since_window: int
) -> Figure:
    """Return how many of the first nodes' books say less than their clients were told, from a window on.

    They may say more: what an answer reserved in a window that is over by its end was not given back.
    """
    told = [0 for _ in names]
    for answer in record.answers:
        if answer.status == ADMITTED and answer.node < len(told):
            told[answer.node] += answer.prompt_tokens + answer.answer_tokens
    booked = [
        sum(spent for (of, window), spent in books.items() if of == name and window >= since_window)
        for name in names
    ]
    pairs = list(zip(booked, told, strict=True))
    wrong = sum(book < said for book, said in pairs)
    says = ", ".join(f"{book} for {said}" for book, said in pairs)
    return Figure("budget: books that say less than clients", wrong, "", 0, says)


def _says(run: Run, crowd: Crowd) -> str:
    windows = "a window" if run.first == run.last else f"{run.last - run.first + 1} windows"
    return f"{run.charged} of {run.allowed} in {windows} of {crowd.window_us // 1_000_000} s"


def _told_tokens(answer: Answer, arrival: Arrival) -> int:
    """Return what the client was told that it took; for a stream that broke off, what the engines made of it."""
    if answer.prompt_tokens == UNKNOWN or answer.answer_tokens == UNKNOWN:
        return _made_tokens(answer, arrival)
    return answer.prompt_tokens + answer.answer_tokens


def _made_tokens(answer: Answer, arrival: Arrival) -> int:
    return arrival.prompt_tokens + arrival.made_tokens


def _fullest(
    answers: Sequence[Answer],
    arrivals: Mapping[int, Arrival],
    allowance: Allowance,
    tokens: Callable[[Answer, Arrival], int],
) -> Run:
    """Return the run of windows in which most was taken; what a stream took may be of any of its windows."""
    spans = [
        allowance.span(
            answer.sent_us,
            answer.got_us,
            smear_us=SMEAR_US,
            weight=tokens(answer, arrivals[answer.serial]),
        )
        for answer in answers
    ]
    return fullest(spans, allowance.of) or Run(0, 0, 0, 0)


def _times(arrivals: Sequence[Arrival]) -> list[tuple[int, int | None]]:
    return [(one.came_us, None if one.ended_us == UNKNOWN else one.ended_us) for one in arrivals]


async def at_a_time(scene: Scene, definer: Definer) -> list[Figure]:
    """Offer more requests at a time than are allowed; return how many too many were open at the engines."""
    names = list(scene.cluster.names)
    await definer.begin(Rule(TALK, concurrency=_AT_A_TIME), _LESSON)
    since_us = scene.now_us()
    await scene.burst(dict.fromkeys(names, _OFFERED // len(names)), _LESSON, over_s=4.0)
    await scene.quiet()
    record = await scene.record(since_us)
    arrived = [
        record.arrivals[answer.serial]
        for answer in record.answers
        if answer.serial in record.arrivals
    ]
    most = most_open(_times(arrived))
    says = f"{most} of {_AT_A_TIME}, {len(arrived)} of {len(record.answers)} admitted"
    over = max(0, most - _AT_A_TIME)
    return [
        Figure("at a time: open over the limit", over, "", 0, says),
        failures("at a time", record, scene.hurt, scene.stage.say),
    ]
