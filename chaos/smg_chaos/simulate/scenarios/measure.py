"""Measurements of scenarios: which nodes noticed an event, and after how long."""

from collections.abc import Callable, Iterator
from typing import Final

from smg_chaos.simulate.base import event_log as chronicle
from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.hosts.host import Host, Node
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.world.world import World
from smg_mesh.swim.messages import Rank

LARGE: Final = 500
"""A cluster from that size on is dear to put up, and used several times."""
LARGE_TURNS: Final = 5


def any_host(world: World, *, first: int = 0) -> Host:
    """Return one of the hosts, from the `first` one on."""
    hosts = list(world.hosts.values())
    return hosts[world.chance.randrange(first, len(hosts))]


def some_hosts(world: World, count: int) -> list[Host]:
    """Return that many hosts, in the order in which they came."""
    chosen = world.chance.sample(range(len(world.hosts)), count)
    hosts = list(world.hosts.values())
    return [hosts[place] for place in sorted(chosen)]


def noticed_s(world: World, kind: str, name: str, since_us: int) -> list[float]:
    """Return how long after `since_us` each of the other nodes announced it, in order."""
    first: dict[str, int] = {}
    for one in world.chronicle.of(kind, since_us=since_us, name=name):
        first.setdefault(one.observer, one.at_us)
    return [(at_us - since_us) / SECOND for at_us in first.values()]


def healthy_deaths(world: World, *, since_us: int, sick: tuple[str, ...] = ()) -> list[str]:
    """Return the names of members announced down since then although nothing ailed them."""
    downs = world.chronicle.of(chronicle.DOWN, since_us=since_us)
    return sorted({one.name for one in downs if one.name not in sick})


def held_alive(world: World, host: Host) -> bool:
    """Return whether every node holds the life on that host to be alive."""
    node = host.node
    if node is None:
        return False
    for other in world.nodes():
        row = other.core.member(node.name)
        if row is None or row.boot != node.core.boot or row.rank is not Rank.ALIVE:
            return False
    return True


def until_s(
    world: World, condition: Callable[[], bool], *, limit_s: float, step_ms: int = 10
) -> float | None:
    """Let time pass until the condition holds; return the seconds, or None after the limit."""
    took_us = world.run_until(condition, limit_us=int(limit_s * SECOND), step_us=step_ms * MS)
    return None if took_us is None else took_us / SECOND


def must_s(
    world: World, what: str, condition: Callable[[], bool], *, limit_s: float
) -> list[float]:
    """Return how long it took as a figure; that it never came is a broken promise."""
    took_s = until_s(world, condition, limit_s=limit_s)
    if took_s is None:
        world.broken(f"{what}: not within {limit_s:g} s")
        return []
    return [took_s]


def cut(world: World, one_side: list[Host]) -> int:
    """Cut these hosts off from all others; return the rule's number."""
    inside = tuple(host.label for host in one_side)
    outside = tuple(label for label in world.hosts if label not in inside)
    rough = Rough(sources=inside, targets=outside, both_ways=True, block=True)
    world.chronicle.deed(world.agenda.now_us, "network", f"cut {','.join(inside)} off")
    return world.network.add(rough)


def see_each_other(world: World) -> bool:
    """Return whether every node holds every other one to be alive."""
    nodes = world.nodes()
    return all(_holds_alive(node, other.name) for node in nodes for other in nodes)


def _holds_alive(node: Node, name: str) -> bool:
    row = node.core.member(name)
    return row is not None and row.rank is Rank.ALIVE


def transitions(world: World, name: str, since_us: int) -> Iterator[tuple[str, int]]:
    """Yield every observer and how often it announced the member's going and coming since then."""
    counts: dict[str, int] = {}
    for one in world.chronicle.of(
        chronicle.UP, chronicle.DOWN, chronicle.LEFT, since_us=since_us, name=name
    ):
        counts[one.observer] = counts.get(one.observer, 0) + 1
    yield from counts.items()
