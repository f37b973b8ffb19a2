"""Loop scenarios: nodes that are alive while their event loop stalls or stands still."""

from functools import partial
from typing import Final

from smg_chaos.simulate.base import event_log as chronicle
from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import settle, settled_cluster, warm_cluster
from smg_chaos.simulate.hosts.host import Host
from smg_chaos.simulate.hosts.loop_pause import stand_still
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.scenarios.measure import (
    any_host,
    healthy_deaths,
    held_alive,
    must_s,
    noticed_s,
    some_hosts,
    transitions,
)
from smg_chaos.simulate.scenarios.scenario import Play, Scenario, Target
from smg_chaos.simulate.world.world import World

_STORM_S: Final = 120


def _stall_again(world: World, host: Host, until_us: int, longest_ms: int) -> None:
    """Let the loop stand still, run a while, and stand still again."""
    node = host.node
    if node is None or world.agenda.now_us >= until_us:
        return
    random = world.chance.random
    for_ms = int(longest_ms * (0.2 + 0.8 * random()))
    stand_still(world, node, for_ms=for_ms, timers_first=random() < 0.5)
    pause_ms = for_ms + 200 + int(3_000 * random())
    again_us = world.agenda.now_us + pause_ms * MS
    world.agenda.deed(again_us, _stall_again, world, host, until_us, longest_ms)


def stalls(longest_ms: int) -> Play:
    """Return the scenario in which a quarter of the members stall again and again."""

    def _play(world: World, nodes: int) -> Figures:
        warm_cluster(world, nodes)
        since_us = world.agenda.now_us
        until_us = since_us + _STORM_S * SECOND
        stalled = some_hosts(world, max(1, nodes // 4))
        for host in stalled:
            at_us = since_us + int(world.chance.random() * 2 * SECOND)
            world.agenda.deed(at_us, _stall_again, world, host, until_us, longest_ms)
        world.run(until_us)
        sick = tuple(host.name for host in stalled)
        dead = {one.name for one in world.chronicle.of(chronicle.DOWN, since_us=since_us)}
        settle(world, limit_s=60.0, announced=False)
        return {
            "stalled_deaths": [float(len(dead & set(sick)))],
            "healthy_deaths": [float(len(dead - set(sick)))],
        }

    return _play


def paused(world: World, nodes: int) -> Figures:
    """Pause a sixth of the members for 8 s of every 12."""
    warm_cluster(world, nodes)
    since_us = world.agenda.now_us
    hosts = some_hosts(world, max(1, nodes // 6))
    for host in hosts:
        for turn in range(_STORM_S // 12):
            at_us = since_us + int((12 * turn + world.chance.random()) * SECOND)
            world.agenda.deed(at_us, _pause, world, host, 8_000)
    world.run(since_us + _STORM_S * SECOND)
    sick = tuple(host.name for host in hosts)
    others = healthy_deaths(world, since_us=since_us, sick=sick)
    watchers = {node.host.label for node in world.nodes()} - set(sick)
    per_minute = [
        count * 60 / _STORM_S
        for name in sick
        for observer, count in transitions(world, name, since_us)
        if observer in watchers
    ]
    settle(world, limit_s=60.0, announced=False)
    return {"healthy_deaths": [float(len(others))], "transitions_per_min": per_minute or [0.0]}


def _pause(world: World, host: Host, for_ms: int) -> None:
    if host.node is not None:
        timers_first = world.chance.random() < 0.5
        stand_still(world, host.node, for_ms=for_ms, timers_first=timers_first)


def paused_long(world: World, nodes: int) -> Figures:
    """Pause one member for 25 s, then let it go on."""
    settled_cluster(world, nodes)
    host = any_host(world)
    since_us = world.agenda.now_us
    world.chronicle.deed(since_us, host.label, "stands still for 25 s")
    _pause(world, host, 25_000)
    world.run(since_us + 25 * SECOND)
    dead = noticed_s(world, chronicle.DOWN, host.name, since_us)
    if len(dead) < nodes - 1:
        world.broken(f"only {len(dead)} of {nodes - 1} noticed that {host.name} stands still")
    took = must_s(world, "alive again everywhere", partial(held_alive, world, host), limit_s=30.0)
    others = healthy_deaths(world, since_us=since_us, sick=(host.name,))
    settle(world, limit_s=20.0, announced=False)
    return {"dead_s": dead, "back_s": took, "healthy_deaths": [float(len(others))]}


def _stall_targets() -> tuple[Target, ...]:
    return (Target("stalled_deaths", "sum", 0), Target("healthy_deaths", "sum", 0))


LOOPS: Final = (
    Scenario(
        name="stalls",
        about="a quarter of the members stall again and again, 1.5 s at most",
        play=stalls(1_500),
        nodes=20,
        targets=_stall_targets(),
    ),
    Scenario(
        name="stalls-stable",
        about="the same with up to 4 s, and the profile for such hosts",
        play=stalls(4_000),
        nodes=20,
        profile="lan-stable",
        targets=_stall_targets(),
    ),
    Scenario(
        name="paused",
        about="a sixth of the members stand still for 8 s of every 12",
        play=paused,
        nodes=24,
        seeds=20,
        targets=(
            Target("healthy_deaths", "sum", 0),
            Target("transitions_per_min", "max", 1.0),
        ),
    ),
    Scenario(
        name="paused-25s",
        about="one member stands still for 25 s and goes on",
        play=paused_long,
        nodes=3,
        targets=(
            Target("dead_s", "p99", 4.5),
            Target("back_s", "p99", 1.0),
            Target("healthy_deaths", "sum", 0),
        ),
    ),
)
