"""Cluster start: boots the hosts of a world, and lets time pass until all members agree."""

from typing import Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.host import Host
from smg_chaos.simulate.random_faults import name_of
from smg_chaos.simulate.world.checkers import agreed, disagreements
from smg_chaos.simulate.world.world import World

_COLD_MAX: Final = 48
"""A cluster up to that size joins by itself; a larger one is told who is there."""
_APART_MS: Final = 300
"""Nodes start within that time of each other."""


def put_up(world: World, nodes: int) -> None:
    """Start that many nodes, in any order; all know the first two as seeds."""
    hosts = [world.add_host(name_of(number), seeds=("n0", "n1")) for number in range(nodes)]
    for host in hosts:
        at_us = int(world.chance.random() * _APART_MS * MS)
        world.agenda.deed(world.agenda.now_us + at_us, _boot, world, host)


def _boot(world: World, host: Host) -> None:
    world.boot(host)


def settled_cluster(world: World, nodes: int, *, calm_s: float = 5.0) -> None:
    """Start that many nodes and let time pass until all know all, and a little more.

    The calm has a random length: what comes next meets every phase of every timer.
    """
    put_up(world, nodes)
    world.run_for(_APART_MS * MS)
    settle(world, limit_s=60.0)
    world.run_for(int((calm_s + world.chance.random()) * SECOND))


def warm_cluster(world: World, nodes: int) -> None:
    """Start that many nodes and let time pass until all know all; large clusters by a short cut.

    Joining is not what these scenarios are about: in a large cluster every node is given the whole table
    at once, before the first timer.
    """
    if nodes <= _COLD_MAX:
        settled_cluster(world, nodes, calm_s=3.0)
        return
    world.chronicle.open = False
    for number in range(nodes):
        world.boot(world.add_host(name_of(number)))
    everybody = [node.core.rows()[0] for node in world.nodes()]
    for node in world.nodes():
        effects = node.core.handle_rows(everybody, now_ms=world.now_ms(node))
        world.react(node, "rows", effects)
    if not agreed(world):
        world.broken("all were given the same rows, and do not agree")
    world.run_for(int((3.0 + world.chance.random()) * SECOND))
    world.chronicle.open = True


def settle(world: World, *, limit_s: float, announced: bool = True) -> float | None:
    """Let time pass until all is as it should be; return how long it took.

    After `limit_s` it is a broken promise, and None.
    """

    def well() -> bool:
        return agreed(world) and not disagreements(world, announced=announced)

    took_us = world.run_until(well, limit_us=int(limit_s * SECOND), step_us=50 * MS)
    if took_us is None:
        for wrong in disagreements(world, announced=announced):
            world.broken(f"not settled after {limit_s:g} s: {wrong}")
        return None
    return took_us / SECOND
