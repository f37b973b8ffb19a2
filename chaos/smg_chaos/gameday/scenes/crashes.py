"""Crashes of one member at a time, and its leave, and its return at another address."""

import signal
from collections.abc import Sequence
from typing import Final

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.agents.cluster import Views
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure, times

_NOTICED_S: Final = 45.0
_BACK_S: Final = 60.0
_LEAVE_S: Final = 15.0


async def crash(stage: Stage) -> Sequence[Figure]:
    """Kill a member (SIGKILL), repeatedly: how long until the first, and until all others announce
    the death.
    """
    cluster = stage.cluster
    await cluster.form()
    first: list[float | None] = []
    everyone: list[float | None] = []
    bystanders = 0
    for number in range(stage.rounds):
        await stage.pause()
        victim = stage.rng.choice(cluster.agents)
        others = cluster.others(victim)
        since_ms = cluster.now_ms()
        victim.signal(signal.SIGKILL)
        told = await cluster.until_announced(others, "down", victim.name, since_ms, _NOTICED_S)
        first.append(told[0] if told else None)
        everyone.append(told[-1] if told else None)
        names = [agent.name for agent in others]
        bystanders += len({one.name for one in stage.since("down", names, since_ms)})
        noticed = "not by all" if told is None else f"first {told[0]:.2f} s, all {told[-1]:.2f} s"
        stage.say(f"kill {number + 1} of {stage.rounds}: {victim.name}: {noticed}")
        await _back(stage, victim, others)
    return [
        *times("first to announce a crash", first, p50_max=3.0, p99_max=5.0),
        *times("all announce a crash", everyone, p50_max=3.0, p99_max=5.0),
        Figure("others declared dead meanwhile", bystanders, "", 0),
    ]


async def leave(stage: Stage) -> Sequence[Figure]:
    """Stop a member (SIGTERM): how long until all others announce that it left, and whether any
    suspected it.
    """
    cluster = stage.cluster
    await cluster.form()
    taken: list[float | None] = []
    doubted = died = 0
    for number in range(stage.rounds):
        await stage.pause()
        leaver = stage.rng.choice(cluster.agents)
        others = cluster.others(leaver)
        since_ms = cluster.now_ms()
        leaver.signal(signal.SIGTERM)
        told = await cluster.until_announced(others, "left", leaver.name, since_ms, _NOTICED_S)
        taken.append(told[-1] if told else None)
        noticed = "not by all" if told is None else f"all know after {told[-1]:.2f} s"
        stage.say(f"leave {number + 1} of {stage.rounds}: {leaver.name}: {noticed}")
        await stage.pause()
        doubted += len(stage.since("suspect", [leaver.name], since_ms))
        died += len(stage.since("down", [leaver.name], since_ms))
        await _back(stage, leaver, others)
    return [
        *times("all announce a leave", taken, p99_max=0.5),
        Figure("doubts about who left", doubted, "", 0),
        Figure("deaths of who left", died, "", 0),
    ]


async def restart(stage: Stage) -> Sequence[Figure]:
    """Kill a member and at once start a new life under the same name, at another address."""
    cluster = stage.cluster
    await cluster.form()
    taken: list[float | None] = []
    refused = ""
    elsewhere: dict[str, bool] = {}
    for number in range(stage.rounds):
        await stage.pause()
        moved = stage.rng.choice(cluster.agents)
        others = cluster.others(moved)
        elsewhere[moved.name] = not elsewhere.get(moved.name, False)
        moved.signal(signal.SIGKILL)
        await _gone(stage, moved)
        cluster.lab.mark()
        moved.start([agent.mesh_address for agent in others[:3]], elsewhere=elsewhere[moved.name])
        seconds = await _alive_at(stage, moved, others)
        taken.append(seconds)
        if seconds is None:
            words = "alive elsewhere" if await _known(stage, moved, others) else "not alive"
            refused = f"after {_BACK_S:.0f} s: {words}"
            stage.say(f"restart {number + 1} of {stage.rounds}: {moved.name}: {refused}")
            break  # the next round would start from a table that is already wrong
        stage.say(f"restart {number + 1} of {stage.rounds}: {moved.name}: {seconds:.2f} s")
        await stage.whole_again()
    figures = times("same name, new address: alive everywhere", taken, p99_max=1.0)
    return [Figure(f.metric, f.value, f.unit, f.limit, refused or f.says) for f in figures]


async def _back(stage: Stage, agent: Agent, others: Sequence[Agent]) -> None:
    """Start an agent again, and wait until everything is as before."""
    await _gone(stage, agent)
    await stage.cluster.start_apart([agent], [other.mesh_address for other in others[:3]])
    await stage.whole_again()


async def _gone(stage: Stage, agent: Agent) -> None:
    """Return when the process has ended; one that takes too long to leave is killed."""
    assert agent.program is not None
    if await agent.end_of(agent.program, _LEAVE_S) is None:
        agent.signal(signal.SIGKILL)
        await agent.end_of(agent.program)


async def _alive_at(stage: Stage, moved: Agent, others: Sequence[Agent]) -> float | None:
    """Return how long after its first packet all others have it alive at its new address; None if
    never.

    The start of a process takes its time, which says nothing about the mesh.
    """

    def there(views: Views) -> bool:
        seen = [view.get(moved.name) if view else None for view in views.values()]
        return all(one and one.state == "alive" and one.is_at(moved.address) for one in seen)

    if await stage.cluster.seconds_until(there, _BACK_S, others, every_s=0.03) is None:
        return None
    now_us = stage.cluster.monotonic_us()
    spoken_us = stage.cluster.lab.spoken_us(moved.address)
    assert spoken_us is not None, "seen by all at an address from which it never spoke"
    return (now_us - spoken_us) / 1e6


async def _known(stage: Stage, moved: Agent, others: Sequence[Agent]) -> bool:
    views = await stage.cluster.views(others)
    return any(
        view and moved.name in view and view[moved.name].state == "alive" for view in views.values()
    )
