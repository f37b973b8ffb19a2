"""Network of hosts: delay, jitter, loss, duplicates, reordering and blocks, each one-way.

A `Rough` says what is wrong with some directed links. Several may hold at once: losses combine as
independent chances, delays add up, one block blocks. What holds for a pair is worked out once and kept
until a rule comes or goes, so a quiet network costs one look-up and one random number per datagram.
"""

from heapq import heappush
from random import Random
from typing import Final, NamedTuple

from smg_chaos.simulate.base.virtual_clock import DATAGRAM, Agenda
from smg_chaos.simulate.hosts.host import Host, Route
from smg_chaos.simulate.hosts.link_faults import Rough, combined
from smg_chaos.simulate.hosts.packet_replay import Wiretap
from smg_mesh.swim.messages import Address

_REORDERED_US: Final = 20_000
"""How much later a reordered datagram comes, at most."""
FLIGHT_BYTES: Final = 28
"""IPv4 and UDP headers, which a wire carries too."""


class Wire(NamedTuple):
    """A link without faults."""

    delay_us: int
    jitter_us: int


WIRES: Final = {
    "lan": Wire(120, 400),
    "lan-stable": Wire(120, 400),
    "wan": Wire(25_000, 15_000),
    "local": Wire(20, 60),
}


class Network:
    """All hosts by address, and the faults of links between them."""

    def __init__(self, wire: Wire, agenda: Agenda, chance: Random) -> None:
        self._wire = wire
        self._agenda = agenda
        self._random = chance.random
        self._hosts: dict[Address, Host] = {}
        self._all: list[Host] = []
        self._rough: dict[int, Rough] = {}
        self._numbered = 0
        self.sent = 0
        self.sent_bytes = 0
        self.wiretap: Wiretap | None = None

    def attach(self, host: Host) -> None:
        """Make the host reachable at its present address."""
        self._all.append(host)
        self._hosts[host.address] = host
        self._forget_routes()

    def move(self, host: Host, address: Address) -> None:
        """Give the host another address; what is sent to the old one is lost."""
        del self._hosts[host.address]
        host.address = address
        self._hosts[address] = host
        self._forget_routes()

    def add(self, rough: Rough) -> int:
        """Let `rough` hold from now; return its number."""
        self._numbered += 1
        self._rough[self._numbered] = rough
        self._forget_routes()
        return self._numbered

    def drop(self, number: int) -> None:
        """End the rule with that number, if it still holds."""
        if self._rough.pop(number, None) is not None:
            self._forget_routes()

    def heal(self) -> None:
        """End all of them."""
        self._rough.clear()
        self._forget_routes()

    def route(self, source: Host, to: Address) -> Route:
        """Return what lies between `source` and that address now."""
        found = source.routes.get(to)
        if found is None:
            found = source.routes[to] = self._find(source, to)
        return found

    def send(self, source: Host, to: Address, packet: bytes, *, kind: int = DATAGRAM) -> None:
        """Put a datagram on its way; it may get lost, come twice, or late."""
        self.sent += 1
        self.sent_bytes += len(packet)
        if self.wiretap is not None and kind == DATAGRAM:
            self.wiretap.hear(packet)
        host, delay_us, jitter_us, rough = source.routes.get(to) or self.route(source, to)
        if host is None or (rough is not None and self._lost(rough)):
            return
        agenda = self._agenda
        due_us = agenda.now_us + delay_us + int(self._random() * jitter_us)
        if rough is not None:
            due_us = self._delayed(rough, due_us, (kind, host, packet, source.address))
        agenda.planned = number = agenda.planned + 1
        heappush(agenda.entries, (due_us, number, kind, host, packet, source.address))

    def inject(self, host: Host, packet: bytes, sender: Address) -> None:
        """Let a host receive bytes that no member sent."""
        self._agenda.plan(self._agenda.now_us, DATAGRAM, host, packet, sender)

    def _lost(self, rough: Rough) -> bool:
        return rough.block or (rough.loss > 0.0 and self._random() < rough.loss)

    def _delayed(self, rough: Rough, due_us: int, entry: tuple[int, Host, bytes, Address]) -> int:
        random = self._random
        if rough.duplicate and random() < rough.duplicate:
            twice_us = due_us + int(random() * _REORDERED_US)
            self._agenda.plan(twice_us, *entry)
        if rough.reorder and random() < rough.reorder:
            due_us += int(random() * _REORDERED_US)
        return due_us

    def _find(self, source: Host, to: Address) -> Route:
        host = self._hosts.get(to)
        if host is None:
            return Route(None, 0, 0, None)
        held = [one for one in self._rough.values() if one.holds(source.label, host.label)]
        rough = combined(held) if held and host is not source else None
        delay_us, jitter_us = self._wire
        if rough is None:
            return Route(host, delay_us, jitter_us, None)
        return Route(host, delay_us + rough.delay_us, jitter_us + rough.jitter_us, rough)

    def _forget_routes(self) -> None:
        for host in self._all:
            host.routes.clear()
