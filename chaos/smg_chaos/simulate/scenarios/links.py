"""Link scenarios: loss, cuts and delay on the network, and spreading of news and meta."""

from functools import partial
from typing import Final

from smg_chaos.simulate.base import event_log as chronicle
from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import settle, settled_cluster, warm_cluster
from smg_chaos.simulate.faults import described
from smg_chaos.simulate.hosts.host import Node
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.hosts.network import FLIGHT_BYTES
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.scenarios.measure import (
    LARGE,
    LARGE_TURNS,
    any_host,
    cut,
    healthy_deaths,
    must_s,
    see_each_other,
    some_hosts,
    transitions,
)
from smg_chaos.simulate.scenarios.scenario import Play, Scenario, Target
from smg_chaos.simulate.world.world import World
from smg_mesh.swim.wire import SEAL_BYTES

_STORM_S: Final = 120
_HEAL_LIMIT_S: Final = 120.0


def loss(share: float) -> Play:
    """Return the scenario in which all links lose that share of datagrams for two minutes."""

    def _play(world: World, nodes: int) -> Figures:
        warm_cluster(world, nodes)
        since_us = world.agenda.now_us
        number = world.network.add(Rough(loss=share))
        world.run_for(_STORM_S * SECOND)
        world.network.drop(number)
        victims = healthy_deaths(world, since_us=since_us)
        settle(world, limit_s=30.0, announced=False)
        return {"healthy_deaths": [float(len(victims))]}

    return _play


def sick(*, deaf: bool) -> Play:
    """Return the scenario in which 80 % is lost of all that is sent to one member, or by it."""

    def _play(world: World, nodes: int) -> Figures:
        warm_cluster(world, nodes)
        host = any_host(world)
        since_us = world.agenda.now_us
        one = (host.label,)
        rough = Rough(targets=one, loss=0.8) if deaf else Rough(sources=one, loss=0.8)
        world.chronicle.deed(since_us, host.label, f"is sick: {described(rough)}")
        number = world.network.add(rough)
        world.run_for(_STORM_S * SECOND)
        world.network.drop(number)
        victims = healthy_deaths(world, since_us=since_us, sick=(host.name,))
        per_minute = [
            count * 60 / _STORM_S
            for observer, count in transitions(world, host.name, since_us)
            if observer != host.label
        ]
        settle(world, limit_s=60.0, announced=False)
        return {
            "healthy_deaths": [float(len(victims))],
            "transitions_per_min": per_minute or [0.0],
        }

    return _play


def partition(span_s: int) -> Play:
    """Return the scenario in which the cluster is cut in two halves for that long."""

    def _play(world: World, nodes: int) -> Figures:
        settled_cluster(world, nodes)
        number = cut(world, some_hosts(world, nodes // 2))
        world.chronicle.open = span_s <= 3600
        world.run_for(span_s * SECOND)
        world.chronicle.open = True
        if max(map(_alive_for, world.nodes())) > nodes - nodes // 2:
            world.broken("a side of the cut still holds members of the other one to be alive")
        world.chronicle.deed(world.agenda.now_us, "network", "is whole again")
        world.network.drop(number)
        took = must_s(world, "healed", partial(see_each_other, world), limit_s=_HEAL_LIMIT_S)
        settle(world, limit_s=30.0, announced=False)
        return {"healed_s": took}

    return _play


def _alive_for(node: Node) -> int:
    """Return how many members that node holds to be there, itself included."""
    return sum(not one.rank.gone for one in node.core.members())


def half_cut(world: World, nodes: int) -> Figures:
    """Cut two members from each other while both see all others."""
    warm_cluster(world, nodes)
    since_us = world.agenda.now_us
    one, other = some_hosts(world, 2)
    rough = Rough(sources=(one.label,), targets=(other.label,), both_ways=True, block=True)
    number = world.network.add(rough)
    world.run_for(_STORM_S * SECOND)
    dead = healthy_deaths(world, since_us=since_us)
    world.network.drop(number)
    settle(world, limit_s=30.0, announced=False)
    return {"healthy_deaths": [float(len(dead))]}


def rumor(world: World, nodes: int) -> Figures:
    """Let one member say something, and see when all have heard it."""
    warm_cluster(world, nodes)
    world.run_for(SECOND)
    took: list[float] = []
    for turn in range(1 if nodes < LARGE else LARGE_TURNS):
        took += _said(world, turn)
        world.run_for(SECOND)
    return {"heard_s": took}


def _said(world: World, turn: int) -> list[float]:
    node = any_host(world).node
    assert node is not None
    since = len(world.chronicle.happenings)
    effects = node.core.say("test", f"turn {turn}", b"what is said", now_ms=world.now_ms(node))
    world.react(node, "say", effects)

    def heard() -> int:
        news = world.chronicle.happenings[since:]
        return len({one.observer for one in news if one.kind == chronicle.NEWS})

    others = len(world.nodes()) - 1
    return must_s(world, "heard by all", lambda: heard() >= others, limit_s=30.0)


def idle(world: World, nodes: int) -> Figures:
    """Let nothing happen for a minute, and count what is sent."""
    settled_cluster(world, nodes, calm_s=20.0)
    since_us, packets, octets = world.agenda.now_us, world.network.sent, world.network.sent_bytes
    world.run_for(60 * SECOND)
    packets, octets = world.network.sent - packets, world.network.sent_bytes - octets
    octets += packets * (FLIGHT_BYTES + (0 if world.setting.sealed else SEAL_BYTES))
    if touched := list(world.chronicle.of(chronicle.SUSPECT, since_us=since_us)):
        world.broken(f"nothing happened, and {touched[0].name} was suspected")
    return {
        "bytes_per_s": [octets / 60 / nodes],
        "packets_per_s": [packets / 60 / nodes],
    }


def rolling(world: World, nodes: int) -> Figures:
    """Change meta everywhere, again and again, and see that all agree soon after."""
    settled_cluster(world, nodes)
    took: list[float] = []
    for turn in range(5):
        for node in world.nodes():
            meta = f"turn {turn}".encode()
            world.react(node, "meta", node.core.change_meta(meta, now_ms=world.now_ms(node)))
            world.run_for(int(world.chance.random() * 50 * MS))
        settled_s = settle(world, limit_s=20.0)
        took += [] if settled_s is None else [settled_s]
    return {"agreed_s": took}


def _no_deaths(most: int = 0) -> tuple[Target, ...]:
    return (Target("healthy_deaths", "sum", most),)


def _sick_targets() -> tuple[Target, ...]:
    return (Target("healthy_deaths", "sum", 0), Target("transitions_per_min", "max", 1.0))


def _healed() -> tuple[Target, ...]:
    return (Target("healed_s", "p50", 2.0), Target("healed_s", "p99", 5.0))


LINKS: Final = (
    Scenario(
        name="loss-20",
        about="all links lose 20 % for two minutes; nobody dies of it",
        play=loss(0.2),
        nodes=100,
        seeds=20,
        targets=_no_deaths(),
    ),
    Scenario(
        name="loss-30",
        about="the same with 30 %",
        play=loss(0.3),
        nodes=100,
        seeds=20,
        targets=_no_deaths(2),
    ),
    Scenario(
        name="loss-40",
        about="the same with 40 %",
        play=loss(0.4),
        seeds=20,
        targets=_no_deaths(),
    ),
    Scenario(
        name="sick",
        about="one member hears a fifth of what it is sent; the others do not suffer",
        play=sick(deaf=True),
        targets=_sick_targets(),
    ),
    Scenario(
        name="sick-mute",
        about="a fifth of what one member sends arrives; the others do not suffer",
        play=sick(deaf=False),
        targets=_sick_targets(),
    ),
    Scenario(
        name="half-cut",
        about="two members are cut from each other; both see all others",
        play=half_cut,
        targets=_no_deaths(),
    ),
    Scenario(
        name="partition-60s",
        about="two halves for a minute",
        play=partition(60),
        targets=_healed(),
    ),
    Scenario(
        name="partition-10min",
        about="two halves for ten minutes",
        play=partition(600),
        nodes=6,
        seeds=50,
        targets=_healed(),
    ),
    Scenario(
        name="partition-26h",
        about="two halves for longer than the dead are remembered; few members: it is a long time",
        play=partition(26 * 3600),
        nodes=4,
        seeds=4,
        targets=_healed(),
    ),
    Scenario(
        name="rumor",
        about="one member says something; all hear it",
        play=rumor,
        targets=(Target("heard_s", "p99", 0.5),),
    ),
    Scenario(
        name="meta",
        about="all members change their meta at once, again and again",
        play=rolling,
        nodes=5,
        targets=(Target("agreed_s", "p99", 2.0),),
    ),
    Scenario(
        name="idle",
        about="nothing happens; what is sent, per node, with all headers and seals",
        play=idle,
        seeds=5,
        targets=(Target("bytes_per_s", "mean", 450.0),),
    ),
)
