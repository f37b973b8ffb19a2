"""Budget of tokens shared by streams of unpredictable length, and a limit on concurrent requests.

The nodes first learn that answers are short; then comes a crowd of long streams, and when all of it
is open at the engines, a node is killed. Every stream that is not cut off by that has to end by
itself or with the finish reason `length`, their sum has to fit into the budget, and nothing may be
reserved any more when all have ended.

A crowd is chosen so that all of it gets in and does not get out whole: what a stream reserves when
it is taken for a short one, and its first step beyond, fit into the budget for each; what streams
need does not. All of it is over within one window, so that there is no doubt what was charged to
it.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from smg_chaos.gameday.limits.clients.client_messages import TALK, Asks
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer, Arrival
from smg_chaos.gameday.limits.definition import Definer, Rule
from smg_chaos.gameday.limits.engines import Speech
from smg_chaos.gameday.limits.gauges import OPEN, gauges
from smg_chaos.gameday.limits.judge import Allowance, Amount, Run, fullest, most_open
from smg_chaos.gameday.limits.report import SMEAR_US, failures
from smg_chaos.gameday.limits.scene import Scene
from smg_chaos.gameday.limits.story import ADMITTED, Record
from smg_chaos.statistics import Figure

_LESSONS: Final = 24
"""Answers that each node sees before; all are as short as this many tokens."""
_SHORT: Final = 8
_LESSON: Final = Asks(TALK, f'"max_tokens":{_SHORT}')
_STREAM: Final = Asks(
    TALK, '"stream":true,"stream_options":{"include_usage":true}', patience_s=180.0
)
_ENDS: Final = frozenset({"stop", "length"})
_AT_A_TIME: Final = 8
_OFFERED: Final = 240
_OFFERED_S: Final = 2.0
_LOOK_S: Final = 2.0
_GLANCE_S: Final = 0.25
_GLANCES: Final = 8
_SETTLE_S: Final = 0.5
_TRIES: Final = 2
"""So often those are asked again that were refused: then the first ones are near their end."""
_LENGTHS: Final = "any-length:260,100,370"
"""A stream lasts longer than the crowd takes to come, and is over before the window is."""
_STANDING: Final = 0.2
"""What stands comes slice by slice, the rest when it is asked for: so most of a budget is there for a crowd."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """Number of streams, the time over which they start, and the budget of tokens and window they
    share.

    `talk` is the engines' output and pace; all of them have been open for `open_s` when a node is
    killed.
    """

    streams: int
    over_s: float
    tokens: int
    window_us: int
    open_s: float
    talk: Speech


FULL: Final = Crowd(1000, 18.0, 290_000, 60_000_000, 1.0, Speech(_LENGTHS, 100.0, 10))
QUICK: Final = Crowd(100, 1.0, 29_000, 10_000_000, 0.5, Speech(_LENGTHS, 15.0, 10))


async def budget(scene: Scene, definer: Definer, crowd: Crowd) -> list[Figure]:
    """Run a crowd of streams on one budget, and kill a node under it; return the tokens they
    took.
    """
    names = list(scene.cluster.names)
    amount = f"{crowd.tokens}/{crowd.window_us // 1_000_000}s"
    rule = Rule(TALK, tokens=amount, standing=_STANDING, on_exhausted="finish")
    await definer.begin(rule, _LESSON)
    await scene.burst(dict.fromkeys(names, _LESSONS), _LESSON, over_s=1.0)
    await scene.quiet()
    await scene.room(
        crowd.window_us, crowd.window_us
    )  # what was asked before is not of that window
    since_us = scene.now_us()
    known = frozenset(scene.arrivals(TALK))
    counts = dict.fromkeys(names, crowd.streams // len(names))
    await scene.burst(counts, _STREAM, over_s=crowd.over_s)
    await _all_open(scene, crowd, known)
    victim = names[-1]
    killed_us = scene.now_us()
    scene.cluster[victim].signal(signal.SIGKILL)
    scene.hurt.add(names.index(victim), since_us, killed_us + 5_000_000)
    books, still_open = await _settled(scene, definer, names[:-1])
    scene.closed("budget", since_us)
    record = await scene.record(since_us)
    says = "of all nodes that were not killed"
    return [
        together(record, crowd, killed_us),
        *budget_figures(record, crowd, since_us),
        Figure("budget: reservations nobody settled", still_open, "", 0, says),
        *audit(record, names, books, crowd, since_us // crowd.window_us),
        failures("budget", record, scene.hurt, scene.stage.say),
    ]


async def _all_open(scene: Scene, crowd: Crowd, known: frozenset[int]) -> None:
    """Return when all streams of the crowd are open, or some could not be opened again and again.

    Rights take a moment from node to node: a stream that comes while none are there is refused, and told to come
    again in a second.
    """
    names = scene.cluster.names
    await asyncio.sleep(crowd.over_s + _SETTLE_S)
    for _ in range(_TRIES):
        arrivals = scene.arrivals(TALK).items()
        there = sum(one not in known and it.ended_us == UNKNOWN for one, it in arrivals)
        missing = crowd.streams - there
        if missing <= 0:
            break
        scene.stage.say(f"budget: {missing} streams of {crowd.streams} come again")
        counts = {name: -(-(missing - at) // len(names)) for at, name in enumerate(names)}
        again_s = crowd.over_s / 10
        await scene.burst(counts, _STREAM, over_s=again_s)
        await asyncio.sleep(again_s + _SETTLE_S)
    await asyncio.sleep(crowd.open_s)


def together(record: Record, crowd: Crowd, killed_us: int) -> Figure:
    """Return how many of the crowd were not open at the engines when the node was killed."""
    times = _times(_arrivals(record))
    then = sum(came <= killed_us and (end is None or end > killed_us) for came, end in times)
    says = f"{then} of {crowd.streams} were, {most_open(times)} at most at one time"
    missing = max(0, crowd.streams - then)
    return Figure("budget: streams not open when a node is killed", missing, "", 0, says)


def budget_figures(record: Record, crowd: Crowd, since_us: int) -> list[Figure]:
    """Return the streams' tokens, as clients were told and as the engines made them, and how they
    ended.
    """
    allowance = Allowance(crowd.window_us, [Amount(crowd.tokens, since_us)])
    admitted = [answer for answer in record.answers if answer.serial in record.arrivals]
    told = _fullest(admitted, record.arrivals, allowance, _told_tokens)
    made = _fullest(admitted, record.arrivals, allowance, _made_tokens)
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
            f"of {len(whole)}, {cut} cut by the limit",
        ),
    ]


async def _settled(
    scene: Scene, definer: Definer, living: Sequence[str]
) -> tuple[dict[tuple[str, int], int], float]:
    """Wait until every answer has ended and is settled; return the last state of the books, and how
    many never were settled.

    A node without requests closes its books some time later, so they are looked at again and again.
    A client has the end of its answer a moment before the node is done with it.
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
    still_open = 0.0
    for _ in range(_GLANCES):
        still_open = sum(await gauges(scene.cluster, living, OPEN))
        if not still_open:
            break
        await asyncio.sleep(_GLANCE_S)
    await asyncio.sleep(_GLANCE_S)
    books.update(await definer.books(TALK, "tokens"))
    return books, still_open


def audit(
    record: Record,
    names: Sequence[str],
    books: Mapping[tuple[str, int], int],
    crowd: Crowd,
    window: int,
) -> list[Figure]:
    """Return how many books differ from what clients were told, and how much they have too much;
    the last name is dead.

    Where all answers of a node ended in the window in which they began, its book has to say just as
    much. Of others it may say more: what an answer reserved in a window that is over by its end was
    not given back.
    """
    living = names[:-1]
    pairs, wrong = [], 0
    for node, name in enumerate(living):
        answers = [one for one in record.answers if one.node == node and one.status == ADMITTED]
        said = sum(one.prompt_tokens + one.answer_tokens for one in answers)
        booked = sum(
            spent for (of, number), spent in books.items() if of == name and number >= window
        )
        settled = all(one.got_us // crowd.window_us == window for one in answers)
        wrong += booked != said if settled else booked < said
        pairs.append(f"{booked} for {said}" if settled else f"{booked} for at least {said}")
    lost = sum(_made(record, one) for one in record.answers if one.node == len(living))
    total = sum(books.get((name, window), 0) for name in living) + lost
    says = f"{total} of {crowd.tokens} with {lost} of the node that was killed"
    over = max(0, total - crowd.tokens)
    return [
        Figure("budget: books that do not say what clients do", wrong, "", 0, ", ".join(pairs)),
        Figure("budget: tokens in the books over the limit", over, "", 0, says),
    ]


def _made(record: Record, answer: Answer) -> int:
    arrival = record.arrivals.get(answer.serial)
    return 0 if arrival is None else _made_tokens(answer, arrival)


def _arrivals(record: Record) -> list[Arrival]:
    return [
        record.arrivals[answer.serial]
        for answer in record.answers
        if answer.serial in record.arrivals
    ]


def _says(run: Run, crowd: Crowd) -> str:
    windows = "a window" if run.first == run.last else f"{run.last - run.first + 1} windows"
    return f"{run.charged} of {run.allowed} in {windows} of {crowd.window_us // 1_000_000} s"


def _told_tokens(answer: Answer, arrival: Arrival) -> int:
    """Return the stream's tokens as the client was told; for one that broke off, as the engines
    made them.
    """
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
    await scene.burst(dict.fromkeys(names, _OFFERED // len(names)), _LESSON, over_s=_OFFERED_S)
    await scene.quiet()
    record = await scene.record(since_us)
    arrived = _arrivals(record)
    most = most_open(_times(arrived))
    says = f"{most} of {_AT_A_TIME}, {len(arrived)} of {len(record.answers)} admitted"
    over = max(0, most - _AT_A_TIME)
    return [
        Figure("at a time: open over the limit", over, "", 0, says),
        failures("at a time", record, scene.hurt, scene.stage.say),
    ]
