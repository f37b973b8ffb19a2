"""Rights faults: changes of limits, crashes and pauses of their owners, as values."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from smg_chaos.simulate.base.virtual_clock import MS
from smg_chaos.simulate.hosts.host import Host
from smg_chaos.simulate.hosts.loop_pause import PausedWorld, stand_still
from smg_chaos.simulate.hosts.ports import (
    HasChance,
    HasChronicle,
    HasHosts,
    HasNodes,
    HostPower,
)
from smg_mesh.escrow.messages.messages import Minted
from smg_mesh.escrow.spending.released_slices import RELEASED

if TYPE_CHECKING:
    from smg_chaos.simulate.rights.rights_life import Teller
    from smg_chaos.simulate.rights.rights_world import Market


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLimit:
    """An operator sets another amount (and what stands of it) at one node."""

    at_ms: int
    who: str
    key: str
    amount: int
    standing: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KillOwner:
    """The owner of a key dies; another life begins there after `back_ms`, if that is not 0."""

    at_ms: int
    key: str
    back_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOwner:
    """The loop of the owner of a key stands still."""

    at_ms: int
    key: str
    for_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KillLender:
    """The disk of the next node that releases some of a key is slow, and the node dies meanwhile or soon after.

    Another life begins there after `back_ms`. What it said before it was written is known to others, and not to that life.
    """

    at_ms: int
    key: str
    back_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartAll:
    """All processes die in the same moment, and begin again."""

    at_ms: int
    back_ms: int


_SLOW_US: Final = 60 * MS
Ruled: TypeAlias = ChangeLimit | KillOwner | KillLender | PauseOwner | RestartAll


class RuledWorld(HasChance, HasChronicle, HasHosts, HasNodes, HostPower, PausedWorld, Protocol):
    """The world in which something befalls limits and their owners."""

    @property
    def market(self) -> "Market | None":
        """Its rights, if anything is limited."""
        ...


def plan_ruled(world: RuledWorld, deed: Ruled) -> None:
    """Put a deed on the world's agenda."""
    world.agenda.deed(deed.at_ms * MS, _do, world, deed)


def owner_of(world: RuledWorld, key: str) -> "Teller | None":
    """Return the node that owns a key now, by its own word."""
    assert world.market is not None
    for teller in world.market.tellers():
        report = teller.core.report(key, wall_ms=teller.wall_ms)
        if report is not None and report.term:
            return teller
    return None


def _do(world: RuledWorld, deed: Ruled) -> None:
    match deed:
        case ChangeLimit():
            _change(world, deed)
        case KillOwner(key=key, back_ms=back_ms):
            owner = owner_of(world, key)
            if owner is not None:
                host = owner.node.host
                world.chronicle.deed(world.agenda.now_us, host.label, f"owns {key} and crashes")
                world.kill(host)
                if back_ms:
                    _back_later(world, host, back_ms)
        case KillLender():
            if world.market is not None:
                world.market.awaited.append(partial(_lends, world, deed))
        case PauseOwner(key=key, for_ms=for_ms):
            owner = owner_of(world, key)
            if owner is not None:
                _pause(world, owner, key, for_ms)
        case RestartAll(back_ms=back_ms):
            world.chronicle.deed(world.agenda.now_us, "everybody", "crashes")
            for node in world.nodes():
                world.kill(node.host)
                _back_later(world, node.host, back_ms)


def _lends(world: RuledWorld, deed: KillLender, teller: "Teller", rows: Sequence[Minted]) -> int:
    """Return how much longer a write takes, if it is a release of that key, or else 0; its node dies, often before it."""
    if all(row.key != RELEASED + deed.key for row in rows):
        return 0
    dies_us = int(2 * _SLOW_US * world.chance.random())
    world.agenda.deed(world.agenda.now_us + dies_us, _dies, world, deed, teller)
    return _SLOW_US


def _dies(world: RuledWorld, deed: KillLender, teller: "Teller") -> None:
    node = teller.node
    if node.alive and node.host.node is node:
        text = f"releases some of {deed.key} and crashes"
        world.chronicle.deed(world.agenda.now_us, node.host.label, text)
        world.kill(node.host)
        _back_later(world, node.host, deed.back_ms)


def _pause(world: RuledWorld, owner: "Teller", key: str, for_ms: int) -> None:
    text = f"owns {key} and stands still for {for_ms} ms"
    world.chronicle.deed(world.agenda.now_us, owner.node.host.label, text)
    stand_still(world, owner.node, for_ms=for_ms, timers_first=world.chance.random() < 0.5)


def _back_later(world: RuledWorld, host: Host, back_ms: int) -> None:
    back_ms += int(world.chance.random() * 300)
    world.agenda.deed(world.agenda.now_us + back_ms * MS, _back, world, host)


def _back(world: RuledWorld, host: Host) -> None:
    if host.node is None:
        world.chronicle.deed(world.agenda.now_us, host.label, "starts again")
        world.boot(host)


def _change(world: RuledWorld, deed: ChangeLimit) -> None:
    market = world.market
    host = world.hosts.get(deed.who)
    if market is None or host is None or host.node is None or host.node.stopped:
        return
    wall_ms = host.wall_ms(world.agenda.now_us)
    limit = market.definitions.write(deed.key, deed.amount, deed.standing, wall_ms=wall_ms)
    text = f"sets {deed.key} to {limit.amount}, of which {limit.standing:.0%} stand"
    world.chronicle.deed(world.agenda.now_us, host.label, text)
    market.change(limit, host)
