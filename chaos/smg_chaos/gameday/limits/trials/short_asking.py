"""Short trials of a larger limit: a burst at one node, one request a second, and two nodes at once."""

import asyncio
from typing import Final

from smg_chaos.gameday.limits.claims.admissions import Admissions
from smg_chaos.gameday.limits.claims.remaining import bounds_of
from smg_chaos.gameday.limits.clients.header_checks import window_of
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN
from smg_chaos.gameday.limits.story import Record
from smg_chaos.gameday.limits.trials import goals
from smg_chaos.gameday.limits.trials.trial import Trial
from smg_chaos.gameday.limits.trials.window_use import admitted_in, asked_first
from smg_chaos.statistics import Figure

AMOUNT: Final = 600
BURST: Final = 640
_AHEAD_S: Final = 3.0
_ON_PER_S: Final = 1.0
_ON_S: Final = 10.0
_SECOND_PART_S: Final = 15.0
_CLOSING_US: Final = 500_000


async def burst(trial: Trial) -> list[Figure]:
    """Ask a node that does not own the limit for more than all of it, at once, and then on; return
    the figures.
    """
    name, scene = "burst", trial.scene
    await trial.begin(AMOUNT)
    client = trial.not_owning()
    async with trial.sampled():
        await trial.border(early_s=_AHEAD_S)
        await scene.connect({client: BURST})
        window = await trial.border()
        began_us = scene.now_us()
        await scene.burst({client: BURST})
        await scene.quiet()
        ended_us = scene.now_us()
        await scene.rate({client: _ON_PER_S})
        await asyncio.sleep(min(_ON_S, trial.window_us / 2e6))
        await scene.quiet()
    record = await trial.record()
    asked = asked_first(record, trial.names.index(client), began_us, ended_us)
    admitted = sum(answer.serial in record.arrivals for answer in asked)
    used = admitted_in(record, trial.allowance).get(window, 0)
    took_s = (ended_us - began_us) / 1e6
    says = f"{admitted} of {AMOUNT} at {client} in {took_s:.1f} s, {used} with those after them"
    return [
        goals.OF_BURST.figure(name, admitted / AMOUNT, f"{says}; {trial.owner} owns it"),
        *await trial.figures(name),
    ]


async def paced(trial: Trial) -> list[Figure]:
    """Ask the first node once a second, from before a window's beginning on; return what it said
    remains.
    """
    name, scene = "paced", trial.scene
    window_s = trial.window_us / 1e6
    part_s = min(_SECOND_PART_S, window_s / 2)
    await scene.room(trial.window_us, round(part_s * 1e6))
    async with trial.sampled():
        await trial.begin(AMOUNT, first_s=part_s)
        await scene.rate({trial.names[0]: _ON_PER_S})
        await trial.border()
        await asyncio.sleep(part_s)
        await scene.quiet()
    words = told_remaining(await scene.record(), trial.since_us, trial.window_us, AMOUNT)
    scene.stage.say(f"{name}: remaining {', '.join(words)}")
    return list(await trial.figures(name))


def told_remaining(record: Record, since_us: int, window_us: int, amount: int) -> list[str]:
    """Return what each answer since a moment said to remain, with what did where that is not
    possible, and the border between windows as `|`.
    """
    admissions = Admissions(record, window_us)
    words: list[str] = []
    before: int | None = None
    for answer in record.answers:
        window = window_of(answer, window_us) if answer.reset_ms != UNKNOWN else None
        if window is None or answer.sent_us < since_us:
            continue
        if before is not None and window != before:
            words.append("|")
        before = window
        bounds = bounds_of(answer, window, admissions, amount)
        is_possible = bounds.distance(answer.remaining) == 0
        truth = "" if is_possible else f" (of {bounds.most})"
        words.append(f"{answer.remaining}{truth}")
    return words


async def two_nodes(trial: Trial) -> list[Figure]:
    """Ask two nodes, neither of them the owner, for twice the limit in a window; return the
    figures.
    """
    name, scene = "two nodes", trial.scene
    await trial.begin(AMOUNT)
    clients = [trial.not_owning(), trial.not_owning(1)]
    per_s = AMOUNT * 1e6 / trial.window_us
    async with trial.sampled():
        window = await trial.border()
        await scene.rate(dict.fromkeys(clients, per_s))
        await trial.until((window + 1) * trial.window_us - _CLOSING_US)
        await scene.quiet()
    used = admitted_in(await trial.record(), trial.allowance).get(window, 0)
    says = f"{used} of {AMOUNT} at {' and '.join(clients)}; {trial.owner} owns it"
    return [goals.OF_TWO.figure(name, used / AMOUNT, says), *await trial.figures(name)]
