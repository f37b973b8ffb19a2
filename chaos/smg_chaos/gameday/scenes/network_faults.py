"""Network faults and stalls in which no member dies, so that every announced death is a false
one.
"""

import asyncio
import signal
from collections.abc import Sequence
from random import Random
from typing import Final

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.lab.link_rules import LinkRule
from smg_chaos.gameday.stage import WHOLE_AGAIN_S, Stage
from smg_chaos.statistics import Figure

_SAY_EVERY_S: Final = 10.0
_HEARD_S: Final = 1.0  # for what was announced last to be read
_LOSSES: Final = ((0.2, 0), (0.4, 1))
_LATE_S: Final = 0.1  # as much as a timer of ours may be late without making a stall too long
_PAUSE_S: Final = 8.0
_PAUSE_EVERY_S: Final = 12.0
_SICK_LOSS: Final = 0.8


async def loss(stage: Stage) -> Sequence[Figure]:
    """Every link loses 20 %, then 40 % of its packets."""
    cluster = stage.cluster
    await cluster.form()
    figures = []
    for share, limit in _LOSSES:
        metric = f"healthy members declared dead, {share:.0%} loss"
        if await cluster.until_whole(WHOLE_AGAIN_S) is None:
            figures.append(Figure(metric, None, "", limit, "not whole after the loss before"))
            break
        since_ms = cluster.now_ms()
        cluster.lab.set_rules({"*": LinkRule(loss=share)})
        await _passing(stage, stage.seconds, cluster.names, since_ms)
        figures.append(stage.touched(metric, cluster.names, since_ms, limit))
        cluster.lab.set_rules({})
    return figures


async def stall(stage: Stage) -> Sequence[Figure]:
    """A quarter of the members stall again and again, for at most 1.5 s."""
    return await _stalling(stage, 1.5)


async def long_stall(stage: Stage) -> Sequence[Figure]:
    """The same for at most 4 s, which a cluster has to be set up for."""
    return await _stalling(stage, 4.0)


async def _stalling(stage: Stage, most_s: float) -> Sequence[Figure]:
    cluster = stage.cluster
    await cluster.form()
    since_ms = cluster.now_ms()
    stalled = cluster.agents[: max(len(cluster.agents) // 4, 1)]
    async with asyncio.TaskGroup() as group:
        for agent in stalled:
            own = Random(stage.rng.getrandbits(64))
            group.create_task(stage.stopping(agent, own, most_s - _LATE_S, stage.seconds))
        await _passing(stage, stage.seconds, cluster.names, since_ms)
    await asyncio.sleep(_HEARD_S)
    names = [agent.name for agent in stalled]
    others = [name for name in cluster.names if name not in names]
    return [
        stage.touched(f"members declared dead that stalled ≤ {most_s:g} s", names, since_ms, 0),
        stage.touched("others declared dead by or beside them", others, since_ms, 0),
    ]


async def pause(stage: Stage) -> Sequence[Figure]:
    """A sixth of the members are paused 8 s of every 12."""
    cluster = stage.cluster
    await cluster.form()
    since_ms = cluster.now_ms()
    paused = cluster.agents[-max(len(cluster.agents) // 6, 1) :]
    async with asyncio.TaskGroup() as group:
        for number, agent in enumerate(paused):
            late_s = number * _PAUSE_EVERY_S / len(paused)
            group.create_task(_paused(stage, agent, late_s))
        await _passing(stage, stage.seconds, cluster.names, since_ms)
    await asyncio.sleep(_HEARD_S)
    names = [agent.name for agent in paused]
    others = [agent.name for agent in cluster.others(*paused)]
    awake = cluster.others(*paused)
    return [
        stage.touched("others declared dead", others, since_ms, 0),
        _announced_per_minute(stage, names, since_ms, awake, "announced about one that is paused"),
    ]


async def sick(stage: Stage) -> Sequence[Figure]:
    """One member does not receive 80 % of what it is sent; then one's own packets are lost as often."""
    cluster = stage.cluster
    await cluster.form()
    patient = stage.rng.choice(cluster.agents)
    healthy = cluster.others(patient)
    names = [agent.name for agent in healthy]
    figures = []
    for way, link in (("half deaf", f"*>{patient.name}"), ("half mute", f"{patient.name}>*")):
        metric = f"healthy members declared dead, one {way}"
        if await cluster.until_whole(WHOLE_AGAIN_S) is None:
            figures.append(Figure(metric, None, "", 0, "not whole after the sickness before"))
            break
        since_ms = cluster.now_ms()
        cluster.lab.set_rules({link: LinkRule(loss=_SICK_LOSS)})
        await _passing(stage, stage.seconds, cluster.names, since_ms)
        cluster.lab.set_rules({})
        figures += [
            stage.touched(metric, names, since_ms, 0),
            _announced_per_minute(
                stage, [patient.name], since_ms, healthy, f"announced about the {way} one"
            ),
        ]
    return figures


async def _paused(stage: Stage, agent: Agent, late_s: float) -> None:
    await asyncio.sleep(late_s)
    left_s = stage.seconds - late_s
    try:
        while left_s >= _PAUSE_EVERY_S:
            agent.signal(signal.SIGSTOP)
            await asyncio.sleep(_PAUSE_S)
            agent.signal(signal.SIGCONT)
            await asyncio.sleep(_PAUSE_EVERY_S - _PAUSE_S)
            left_s -= _PAUSE_EVERY_S
    finally:
        agent.signal(signal.SIGCONT)


async def _passing(stage: Stage, seconds: float, names: Sequence[str], since_ms: int) -> None:
    """Let time pass, and report now and then what has happened."""
    left_s = seconds
    while left_s > 0:
        step_s = min(left_s, _SAY_EVERY_S)
        await asyncio.sleep(step_s)
        left_s -= step_s
        dead = len(stage.since("down", names, since_ms))
        doubts = len(stage.since("suspect", names, since_ms))
        stage.say(
            f"{seconds - left_s:.0f} of {seconds:.0f} s: {dead} deaths, {doubts} doubts announced"
        )
    await asyncio.sleep(_HEARD_S)


def _announced_per_minute(
    stage: Stage, about: Sequence[str], since_ms: int, observers: Sequence[Agent], metric: str
) -> Figure:
    """Return how often the worst observer announced the death or return of one of these, per 60
    s.
    """
    said = [
        *stage.cluster.announced("down", about, since_ms, observers),
        *stage.cluster.announced("up", about, since_ms, observers),
    ]
    most = max(
        (
            sum(one.observer == agent.name and one.name == name for one in said)
            for agent in observers
            for name in about
        ),
        default=0,
    )
    minutes = max(stage.seconds / 60, 1)
    deaths = sum(one.kind == "down" for one in said)
    says = f"{deaths} deaths, {len(said) - deaths} returns in all"
    return Figure(metric, most / minutes, "per 60 s", 1.0, says)
