"""Healing scenarios: members come together after a partition, all at once, and with a seed that is
late.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.agents.cluster import ClusterError, Views
from smg_chaos.gameday.lab.link_rules import cut
from smg_chaos.gameday.stage import WHOLE_AGAIN_S, Stage
from smg_chaos.statistics import Figure, times

_JOIN_S: Final = 60.0
_LATE_S: Final = 5.0
_LOOK_S: Final = 0.1


async def partition(stage: Stage) -> Sequence[Figure]:
    """Block all links between two halves for a while, then open them."""
    cluster = stage.cluster
    await cluster.form()
    half = len(cluster.names) // 2
    one, other = cluster.names[:half], cluster.names[half:]
    seen: list[float | None] = []
    healed: list[float | None] = []
    for number in range(stage.rounds):
        await stage.pause()
        cluster.lab.set_rules(cut(one, other))
        parted = await _parted(stage, one, other)
        seen.append(parted)
        await asyncio.sleep(max(stage.seconds - (stage.seconds if parted is None else parted), 0))
        cluster.lab.set_rules({})
        whole = await cluster.until_whole(WHOLE_AGAIN_S)
        healed.append(whole)
        stage.say(
            f"partition {number + 1} of {stage.rounds}: seen by all after {_told(parted)}, "
            f"whole {_told(whole)} after it ended"
        )
        if whole is None:
            break
    return [
        *times("all see the other side dead", seen),
        *times("all pairs alive after healing", healed, p50_max=2.0, p99_max=5.0),
    ]


async def join(stage: Stage) -> Sequence[Figure]:
    """Start all nodes alone; then make all join at once through one of them."""
    cluster = stage.cluster
    stage.say(f"starting {len(cluster.agents)} nodes, each alone")
    await cluster.start_apart(cluster.agents)
    await stage.pause()
    seed, *rest = cluster.agents
    taken: list[float | None] = []
    since_us = cluster.monotonic_us()
    async with asyncio.TaskGroup() as group:
        for agent in rest:
            group.create_task(agent.join([seed.mesh_address]))
        whole = await cluster.until_whole(_JOIN_S)
    taken.append(None if whole is None else (cluster.monotonic_us() - since_us) / 1e6)
    stage.say(f"all pairs alive: {_told(taken[-1])}")
    return [Figure("all pairs alive after joining through one seed", taken[-1], "s", 3.0)]


async def late_seed(stage: Stage) -> Sequence[Figure]:
    """Start all members with a seed that is not there yet; then start the seed."""
    seed, *rest = stage.cluster.agents
    for agent in rest:
        agent.start([seed.mesh_address])
    await stage.cluster.answering(rest)
    await asyncio.sleep(_LATE_S)
    taken_s = await whole_after_start(stage, seed)
    stage.say(f"all pairs alive {_told(taken_s)} after the seed appeared")
    return [Figure("joined after the seed appeared", taken_s, "s", 2.0)]


async def whole_after_start(stage: Stage, agent: Agent, seeds: Sequence[str] = ()) -> float | None:
    """Start a node; return how long after it appeared all saw all alive, None if that never came.

    One that has lived before appears when it answers: packets from its machine may be of the life
    that is over.
    """
    cluster = stage.cluster
    lived = agent.program is not None
    cluster.lab.mark()
    agent.start(seeds)
    appeared_us = await _appeared(stage, agent, by_packets=not lived)
    if await cluster.until_whole(WHOLE_AGAIN_S) is None:
        return None
    return max(cluster.monotonic_us() - appeared_us, 0) / 1e6


async def _appeared(stage: Stage, seed: Agent, *, by_packets: bool) -> int:
    """Return when (µs) a node first answered, or sent a packet where that counts, whichever came first."""
    cluster = stage.cluster
    for _ in range(round(WHOLE_AGAIN_S / _LOOK_S)):
        view = await seed.view()
        now_us = cluster.monotonic_us()
        spoken_us = cluster.lab.spoken_us(seed.address)
        if by_packets and spoken_us is not None:
            return spoken_us
        if view is not None:
            return now_us
        await asyncio.sleep(_LOOK_S)
    raise ClusterError(f"{seed.name} does not appear; it said:\n{seed.last_words()}")


async def _parted(stage: Stage, one: Sequence[str], other: Sequence[str]) -> float | None:
    """Return how long until all have the whole other side dead; None if the time is over first."""

    def parted(views: Views) -> bool:
        return all(
            view is not None
            and all(
                view[name].state == "dead" for name in _beyond(observer, one, other) if name in view
            )
            for observer, view in views.items()
        )

    return await stage.cluster.seconds_until(parted, stage.seconds, every_s=_LOOK_S * 2)


def _beyond(observer: str, one: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    return other if observer in one else one


def _told(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.2f} s"
