"""Ports: what the parts of a world call of the world, one protocol for each thing.

A part combines those it needs and takes that combination, never the world's class; so it can be understood and
tested without the world, and lies in a room below it.
"""

from collections.abc import Sequence
from random import Random
from typing import Protocol

from smg_chaos.simulate.base.event_log import Chronicle
from smg_chaos.simulate.base.history_hash import Trace
from smg_chaos.simulate.base.virtual_clock import Agenda
from smg_chaos.simulate.hosts.host import Host, Node
from smg_chaos.simulate.hosts.network import Network
from smg_mesh.swim.effects import Effect


class HasAgenda(Protocol):
    """The clock, and what is still to happen."""

    agenda: Agenda


class SeedSetting(Protocol):
    """The setting of a world, as far as chance is drawn from it."""

    @property
    def seed(self) -> int:
        """The seed of the history."""
        ...


class HasSeed(Protocol):
    """The setting that a part draws its own chance from."""

    @property
    def setting(self) -> SeedSetting:
        """What the world is made from."""
        ...


class HasChance(Protocol):
    """The chance of the world's own deeds."""

    chance: Random


class HasNetwork(Protocol):
    """The links between hosts."""

    network: Network


class HasChronicle(Protocol):
    """The log of what happened."""

    chronicle: Chronicle


class HasTrace(Protocol):
    """The fingerprint of the history, if it is taken."""

    trace: Trace | None


class HasNotes(Protocol):
    """The counters of what nodes noted, by name."""

    notes: dict[str, int]


class HasHosts(Protocol):
    """The hosts by label, in the order in which they came."""

    hosts: dict[str, Host]


class HasNodes(Protocol):
    """The nodes that live."""

    def nodes(self) -> list[Node]:
        """Return all that live now, in the order of their hosts."""
        ...


class PromiseReport(Protocol):
    """The report of what must not happen."""

    def broken(self, promise: str) -> None:
        """Note that something happened which must not."""
        ...


class CoreDriver(Protocol):
    """The driver of the nodes' cores."""

    def now_ms(self, node: Node) -> int:
        """Return what the node's monotonic clock shows."""
        ...

    def react(self, node: Node, cause: object, effects: Sequence[Effect]) -> None:
        """Do what a core asked for after an input."""
        ...


class HostPower(Protocol):
    """The switch that begins and ends lives on hosts."""

    def boot(self, host: Host) -> Node:
        """Begin a life on a host that has none."""
        ...

    def kill(self, host: Host) -> None:
        """End the life on a host at once."""
        ...


class LoopControl(Protocol):
    """The switch that stops a node's loop and lets it run again."""

    def stop(self, node: Node) -> None:
        """Let the node's loop stand still until `go_on` was called as often."""
        ...

    def go_on(self, node: Node, *, timers_first: bool) -> None:
        """Let it run again."""
        ...
