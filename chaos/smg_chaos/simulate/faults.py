"""Faults of a simulated cluster, as values: when, which member, for how long.

A fault undoes itself after `for_ms`, so leaving one out of a list leaves no half of it behind. What no
longer makes sense when its time comes (crash a dead node, restart a living one) does nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.hosts.loop_pause import stand_still

if TYPE_CHECKING:
    from smg_chaos.simulate.hosts.host import Host, Node
    from smg_chaos.simulate.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The process is gone; nothing was said, nothing was saved."""

    at_ms: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The process is killed, if it runs, and another begins under the same name at once."""

    at_ms: int
    who: str
    new_address: bool = False
    lost_disk: bool = False
    clock_back_ms: int = 0
    """How far its wall clock was set back before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The member says goodbye and ends."""

    at_ms: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A new host joins through the first one's address and one more."""

    at_ms: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A second process is started under a name that is taken."""

    at_ms: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The loop of a member stands still."""

    at_ms: int
    who: str
    for_ms: int
    timers_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """The loop of a member stands still again and again, `busy_ms` at most, with short breaks."""

    at_ms: int
    who: str
    for_ms: int
    busy_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockJump:
    """The wall clock of a host jumps."""

    at_ms: int
    who: str
    by_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Links are rough: `rough` says which, and how."""

    at_ms: int
    for_ms: int
    rough: Rough


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """Bytes that are no packet arrive from nowhere."""

    at_ms: int
    who: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A wiretap sends datagrams again that it saw before."""

    at_ms: int
    who: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """A member changes what it says of itself."""

    at_ms: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A member gets another address inside its life."""

    at_ms: int
    who: str


Fault: TypeAlias = (
    Crash
    | Restart
    | Leave
    | Join
    | Twin
    | Pause
    | Slow
    | ClockJump
    | Storm
    | Garbage
    | Replay
    | Meta
    | Move
)

_BREAK_MS: Final = 30
"""A slow loop runs that long between two times of standing still, at most."""


def plan_fault(world: "World", fault: Fault) -> None:
    """Put a fault on the world's agenda."""
    world.agenda.deed(fault.at_ms * MS, _happen, world, fault)


def _happen(world: "World", fault: Fault) -> None:
    _DEEDS[type(fault)](world, fault)


def _host(world: "World", who: str) -> "Host | None":
    return world.hosts.get(who)


def _node(world: "World", who: str) -> "Node | None":
    host = world.hosts.get(who)
    return None if host is None else host.node


def _crash(world: "World", fault: Crash) -> None:
    host = _host(world, fault.who)
    if host is not None and host.node is not None:
        world.chronicle.deed(world.agenda.now_us, fault.who, "crashes")
        world.kill(host)


def _restart(world: "World", fault: Restart) -> None:
    host = _host(world, fault.who)
    if host is None:
        return
    world.kill(host)
    host.clock_wrong_ms -= fault.clock_back_ms
    if fault.lost_disk:
        host.lose_disk()
    if fault.new_address:
        world.network.move(host, world.fresh_address())
    odd = [
        text
        for odd, text in (
            (fault.new_address, f"at {host.address}"),
            (fault.lost_disk, "without its disk"),
            (fault.clock_back_ms, f"with its clock {fault.clock_back_ms} ms back"),
        )
        if odd
    ]
    world.chronicle.deed(world.agenda.now_us, fault.who, " ".join(["starts again", *odd]))
    world.boot(host)


def _leave(world: "World", fault: Leave) -> None:
    host = _host(world, fault.who)
    if host is not None and host.node is not None and not host.node.stopped:
        world.chronicle.deed(world.agenda.now_us, fault.who, "leaves")
        world.leave(host)


def _join(world: "World", fault: Join) -> None:
    if fault.who not in world.hosts:
        world.chronicle.deed(world.agenda.now_us, fault.who, "joins")
        world.boot(world.add_host(fault.who, seeds=_seeds(world)))


def _twin(world: "World", fault: Twin) -> None:
    label = f"{fault.who}-twin"
    if fault.who in world.hosts and label not in world.hosts:
        world.chronicle.deed(world.agenda.now_us, label, f"starts under the name {fault.who}")
        world.boot(world.add_host(fault.who, label=label, seeds=_seeds(world)))


def _seeds(world: "World") -> list[str]:
    """Return two hosts that were there from the beginning."""
    return list(world.hosts)[:2]


def _pause(world: "World", fault: Pause) -> None:
    node = _node(world, fault.who)
    if node is not None:
        text = f"stands still for {fault.for_ms} ms"
        world.chronicle.deed(world.agenda.now_us, fault.who, text)
        stand_still(world, node, for_ms=fault.for_ms, timers_first=fault.timers_first)


def _slow(world: "World", fault: Slow) -> None:
    node = _node(world, fault.who)
    if node is not None:
        text = f"runs slowly for {fault.for_ms} ms, {fault.busy_ms} ms at a time"
        world.chronicle.deed(world.agenda.now_us, fault.who, text)
        own = chance(world.setting.seed, "slow", fault.who, fault.at_ms)
        _busy(world, node, fault, own.random)


def _busy(world: "World", node: "Node", fault: Slow, random: Callable[[], float]) -> None:
    now_ms = world.agenda.now_us // MS
    if not node.alive or now_ms >= fault.at_ms + fault.for_ms:
        return
    busy_ms = 1 + int(random() * fault.busy_ms)
    stand_still(world, node, for_ms=busy_ms, timers_first=random() < 0.5)
    again_us = (now_ms + busy_ms + 1 + int(random() * _BREAK_MS)) * MS
    world.agenda.deed(again_us, _busy, world, node, fault, random)


def _clock_jump(world: "World", fault: ClockJump) -> None:
    host = _host(world, fault.who)
    if host is not None:
        text = f"has its wall clock jump by {fault.by_ms} ms"
        world.chronicle.deed(world.agenda.now_us, fault.who, text)
        host.clock_wrong_ms += fault.by_ms


def _storm(world: "World", fault: Storm) -> None:
    number = world.network.add(fault.rough)
    world.chronicle.deed(world.agenda.now_us, "network", described(fault.rough))
    world.agenda.deed((fault.at_ms + fault.for_ms) * MS, _calm, world, number, fault.rough)


def _calm(world: "World", number: int, rough: Rough) -> None:
    world.network.drop(number)
    world.chronicle.deed(world.agenda.now_us, "network", f"is rid of: {described(rough)}")


def described(rough: Rough) -> str:
    """Return a rule of the network in words."""
    sources, targets = (",".join(ones) or "all" for ones in (rough.sources, rough.targets))
    arrow = "<->" if rough.both_ways else "->"
    ills = [
        ("cut" if rough.block else ""),
        (f"loss {rough.loss:.0%}" if rough.loss else ""),
        (f"duplicates {rough.duplicate:.0%}" if rough.duplicate else ""),
        (f"reordered {rough.reorder:.0%}" if rough.reorder else ""),
        (f"delay +{rough.delay_us} us" if rough.delay_us else ""),
        (f"jitter +{rough.jitter_us} us" if rough.jitter_us else ""),
    ]
    return f"{sources} {arrow} {targets}: {', '.join(ill for ill in ills if ill)}"


def _garbage(world: "World", fault: Garbage) -> None:
    host = _host(world, fault.who)
    if host is None:
        return
    world.chronicle.deed(world.agenda.now_us, fault.who, f"gets {fault.count} packets of garbage")
    own = chance(world.setting.seed, "garbage", fault.who, fault.at_ms)
    sample = b"" if world.wiretap is None else world.wiretap.one(own)
    for _ in range(fault.count):
        packet = own.randbytes(own.randrange(0, 200))
        if sample and own.random() < 0.5:
            # Cut short, so that it can be no whole packet; a flipped bit could make one.
            packet = sample[: own.randrange(0, len(sample))]
        if world.setting.sealed:
            world.network.inject(host, packet, world.fresh_address())
        else:
            world.give_garbage(host, packet, world.fresh_address())


def _replay(world: "World", fault: Replay) -> None:
    host = _host(world, fault.who)
    if host is None or world.wiretap is None:
        return
    world.chronicle.deed(world.agenda.now_us, fault.who, f"gets {fault.count} old packets again")
    own = chance(world.setting.seed, "replay", fault.who, fault.at_ms)
    for _ in range(fault.count):
        packet = world.wiretap.one(own)
        if packet:
            world.network.inject(host, packet, world.wiretap.sender)


def _meta(world: "World", fault: Meta) -> None:
    node = _node(world, fault.who)
    if node is not None and not node.stopped and not node.leaving:
        world.chronicle.deed(world.agenda.now_us, fault.who, "changes its meta")
        effects = node.core.change_meta(f"at {fault.at_ms}".encode(), now_ms=world.now_ms(node))
        world.react(node, "meta", effects)


def _move(world: "World", fault: Move) -> None:
    node = _node(world, fault.who)
    if node is not None and not node.stopped and not node.leaving:
        world.network.move(node.host, world.fresh_address())
        world.chronicle.deed(world.agenda.now_us, fault.who, f"moves to {node.address}")
        effects = node.core.change_address(node.address, now_ms=world.now_ms(node))
        world.react(node, "move", effects)


_DEEDS: Final[Mapping[type, Callable[[Any, Any], None]]] = MappingProxyType(
    {
        Crash: _crash,
        Restart: _restart,
        Leave: _leave,
        Join: _join,
        Twin: _twin,
        Pause: _pause,
        Slow: _slow,
        ClockJump: _clock_jump,
        Storm: _storm,
        Garbage: _garbage,
        Replay: _replay,
        Meta: _meta,
        Move: _move,
    }
)
