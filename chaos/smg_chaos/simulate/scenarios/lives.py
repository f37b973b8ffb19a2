"""Lives of members: scenarios of crash, leave, restart, join, late or dead seeds, and twins."""

import math
from functools import partial
from typing import Final

from smg_chaos.simulate.base import event_log as chronicle
from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import put_up, settle, settled_cluster, warm_cluster
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.random_faults import name_of
from smg_chaos.simulate.scenarios.measure import (
    LARGE,
    LARGE_TURNS,
    any_host,
    healthy_deaths,
    held_alive,
    must_s,
    noticed_s,
    see_each_other,
    some_hosts,
)
from smg_chaos.simulate.scenarios.scenario import Scenario, Target
from smg_chaos.simulate.world.checkers import agreed
from smg_chaos.simulate.world.world import World

_TWIN_STARTS: Final = 3
_NOTICE_LIMIT_S: Final = 40.0
"""Longest that a scenario waits for something all must notice; every target is far below."""


def _all_notice(world: World, kind: str, name: str, since_us: int) -> list[float]:
    others = len([node for node in world.nodes() if node.name != name])

    def well() -> bool:
        return len(noticed_s(world, kind, name, since_us)) >= others

    limit_s = _NOTICE_LIMIT_S * max(1, world.options.probe_interval_ms // 500)
    took_us = world.run_until(well, limit_us=int(limit_s * SECOND), step_us=100 * MS)
    if took_us is None:
        world.broken(f"not everybody noticed that {name} is {kind} within {limit_s:g} s")
    return noticed_s(world, kind, name, since_us)


def crash(world: World, nodes: int, *, whole_host: bool = False) -> Figures:
    """Kill one member without a word; in a large cluster several, one after the other.

    `whole_host`: the machine goes with it, so no process is left there to refuse a connection.
    """
    warm_cluster(world, nodes)
    figures: Figures = {"healthy_deaths": [], "first_s": [], "everywhere_s": []}
    victims = 1 if nodes < LARGE else LARGE_TURNS
    for victim in some_hosts(world, victims):
        since_us = world.agenda.now_us
        world.chronicle.deed(since_us, victim.label, "crashes")
        world.kill(victim)
        if whole_host:
            world.network.add(Rough(targets=(victim.label,), block=True))
        noticed = _all_notice(world, chronicle.DOWN, victim.name, since_us)
        wrong = healthy_deaths(world, since_us=since_us, sick=(victim.name,))
        figures["healthy_deaths"].append(float(len(wrong)))
        figures["first_s"].append(min(noticed, default=math.inf))
        figures["everywhere_s"].append(max(noticed, default=math.inf))
        world.run_for(int(world.chance.random() * SECOND))
    return figures


def leave(world: World, nodes: int) -> Figures:
    """Let one member leave on purpose."""
    warm_cluster(world, nodes)
    leaver = any_host(world)
    since_us = world.agenda.now_us
    world.chronicle.deed(since_us, leaver.label, "leaves")
    world.leave(leaver)
    noticed = _all_notice(world, chronicle.LEFT, leaver.name, since_us)
    for one in world.chronicle.of(chronicle.SUSPECT, since_us=since_us, name=leaver.name):
        world.broken(f"{one.observer} suspected {leaver.name}, which said goodbye")
    settle(world, limit_s=10.0)
    return {"left_s": [max(noticed)] if noticed else []}


def restart(world: World, nodes: int) -> Figures:
    """Kill one member and start it again under its name, at another address, perhaps on a new disk."""
    warm_cluster(world, nodes)
    host = any_host(world)
    world.kill(host)
    world.network.move(host, world.fresh_address())
    if world.chance.random() < 0.5:
        host.lose_disk()
    world.run_for(int((0.2 + 4.0 * world.chance.random()) * SECOND))
    world.chronicle.deed(world.agenda.now_us, host.label, f"starts again at {host.address}")
    world.boot(host)
    took = must_s(world, "alive everywhere", partial(held_alive, world, host), limit_s=30.0)
    settle(world, limit_s=10.0, announced=False)
    return {"back_s": took}


def join(world: World, nodes: int) -> Figures:
    """Start all within a second, knowing one of them; what counts is the time after the last start."""
    for number in range(nodes):
        world.boot(world.add_host(name_of(number), seeds=("n0",)))
        world.run_for(int(2 * world.chance.random() * SECOND / nodes))
    return {"joined_s": must_s(world, "all see all", partial(_all_see, world, nodes), limit_s=60.0)}


def _all_see(world: World, nodes: int) -> bool:
    """Return whether all are there; the cheap question first."""
    return len(world.nodes()) == nodes and agreed(world) and see_each_other(world)


def seed_late(world: World, nodes: int) -> Figures:
    """Start the seed long after all others, which know no other member."""
    hosts = [world.add_host(name_of(number), seeds=("n0",)) for number in range(nodes)]
    for host in hosts[1:]:
        world.boot(host)
    world.run_for(int((20.0 + 20.0 * world.chance.random()) * SECOND))
    world.chronicle.deed(world.agenda.now_us, "n0", "starts at last")
    world.boot(hosts[0])
    took = must_s(world, "joined", partial(see_each_other, world), limit_s=60.0)
    return {"joined_s": took}


def seed_dead(world: World, nodes: int) -> Figures:
    """Know two seeds, of which the first is not there."""
    hosts = [world.add_host(name_of(number), seeds=("n0", "n1")) for number in range(nodes)]
    for host in hosts[1:]:
        world.boot(host)
    took = must_s(world, "joined", partial(see_each_other, world), limit_s=60.0)
    return {"joined_s": took}


def restart_alone(world: World, nodes: int) -> Figures:
    """Restart the member that all others had as seed, with another one as its seed, disk lost."""
    hosts = [world.add_host(name_of(number), seeds=("n0",)) for number in range(nodes)]
    for host in hosts:
        world.boot(host)
    settle(world, limit_s=30.0)
    world.run_for(int((8.0 + world.chance.random()) * SECOND))
    world.kill(hosts[0])
    world.run_for(int((0.5 + 10.0 * world.chance.random()) * SECOND))
    hosts[0].seeds = ("n1",)
    hosts[0].lose_disk()
    world.chronicle.deed(world.agenda.now_us, "n0", "starts again with n1 as its seed")
    world.boot(hosts[0])
    took = must_s(world, "full view", partial(see_each_other, world), limit_s=30.0)
    settle(world, limit_s=10.0, announced=False)
    return {"back_s": took}


def twins(world: World, nodes: int) -> Figures:
    """Start a second process under a name that is taken, as often as a service would; then restart the first."""
    settled_cluster(world, nodes)
    original = any_host(world, first=2)
    first = original.node
    assert first is not None
    boot = first.core.boot
    twin = world.add_host(original.name, label=f"{original.label}-twin", seeds=("n0", "n1"))
    took: list[float] = []
    for _ in range(_TWIN_STARTS):
        since_us = world.agenda.now_us
        world.chronicle.deed(since_us, twin.label, f"starts under the name {original.name}")
        world.boot(twin)
        took += must_s(world, "the second one gave way", lambda: twin.node is None, limit_s=30.0)
    if original.node is not first or first.core.boot != boot:
        world.broken(f"{original.label} was there first, and lost its name")
    settle(world, limit_s=30.0, announced=False)
    world.kill(original)
    world.chronicle.deed(world.agenda.now_us, original.label, "starts again")
    world.boot(original)
    back = must_s(world, "alive everywhere", partial(held_alive, world, original), limit_s=30.0)
    settle(world, limit_s=30.0, announced=False)
    return {"gave_way_s": took, "back_s": back}


def clock_jump(world: World, nodes: int) -> Figures:
    """Let wall clocks jump, then restart members whose clock went back or whose disk is lost."""
    settled_cluster(world, nodes)
    since_us = world.agenda.now_us
    for host in world.hosts.values():
        host.clock_wrong_ms = world.chance.randrange(-86_400_000, 86_400_000)
    world.run_for(5 * SECOND)
    if touched := healthy_deaths(world, since_us=since_us):
        world.broken(f"clocks jumped, and {touched} died")
    host = any_host(world, first=1)
    world.kill(host)
    host.clock_wrong_ms -= 7 * 86_400_000
    if world.chance.random() < 0.5:
        host.lose_disk()
    world.chronicle.deed(world.agenda.now_us, host.label, "starts again with its clock a week back")
    world.boot(host)
    took = must_s(world, "alive everywhere", partial(held_alive, world, host), limit_s=30.0)
    settle(world, limit_s=10.0, announced=False)
    return {"back_s": took}


def grown(world: World, nodes: int) -> Figures:
    """Let members join a cluster one after the other."""
    put_up(world, 2)
    world.run_for(SECOND)
    took: list[float] = []
    for number in range(2, nodes):
        host = world.add_host(name_of(number), seeds=("n0", "n1"))
        world.boot(host)
        took += must_s(world, "alive everywhere", partial(held_alive, world, host), limit_s=30.0)
    settle(world, limit_s=10.0)
    return {"joined_s": took}


LIVES: Final = (
    Scenario(
        name="crash",
        about="a member is killed, its machine lives; who notices when",
        play=crash,
        targets=(
            Target("first_s", "p50", 3.0),
            Target("first_s", "p99", 4.5),
            Target("everywhere_s", "p50", 3.0),
            Target("healthy_deaths", "sum", 0),
        ),
    ),
    Scenario(
        name="host-crash",
        about="a member is lost with its machine, which refuses nothing any more",
        play=partial(crash, whole_host=True),
        targets=(
            Target("first_s", "p50", 3.0),
            Target("first_s", "p99", 4.5),
            Target("healthy_deaths", "sum", 0),
        ),
    ),
    Scenario(
        name="leave",
        about="a member leaves on purpose; all know, and nobody doubts it",
        play=leave,
        targets=(Target("left_s", "max", 0.5),),
    ),
    Scenario(
        name="restart",
        about="a member starts again under its name, at another address",
        play=restart,
        targets=(Target("back_s", "p99", 1.0),),
    ),
    Scenario(
        name="restart-alone",
        about="the common seed restarts without its disk, with another node as seed",
        play=restart_alone,
        nodes=3,
        targets=(Target("back_s", "max", 2.0),),
    ),
    Scenario(
        name="join",
        about="all start at once and know one of them",
        play=join,
        nodes=40,
        seeds=20,
        targets=(Target("joined_s", "max", 3.0),),
    ),
    Scenario(
        name="grow",
        about="members join one after the other",
        play=grown,
        targets=(Target("joined_s", "p99", 2.0),),
    ),
    Scenario(
        name="seed-late",
        about="the only seed starts long after the others",
        play=seed_late,
        nodes=5,
        targets=(Target("joined_s", "p99", 2.0),),
    ),
    Scenario(
        name="seed-dead",
        about="of two seeds the first is not there",
        play=seed_dead,
        nodes=3,
        targets=(Target("joined_s", "p99", 1.0),),
    ),
    Scenario(
        name="twins",
        about="a second process starts under a name that is taken, three times; the first one restarts",
        play=twins,
        nodes=5,
        targets=(Target("gave_way_s", "p99", 3.0), Target("back_s", "p99", 1.0)),
    ),
    Scenario(
        name="clock-jump",
        about="wall clocks jump; then a member restarts with its clock a week back",
        play=clock_jump,
        nodes=5,
        targets=(Target("back_s", "p99", 3.0),),
    ),
)
