"""Joining: a simulated node's search for its first peer, and for the others after a loss.

The driver's rules and its numbers, with names that always resolve to where a host is now: while a
node is alone or has exchanged with no peer, greetings to all its seeds, and beside them rounds of
exchanges in random order, with a pause that doubles. Afterwards, now and then, a greeting to the
seeds whose address is no living member. Peers of an earlier life, from the disk, are seeds too.
"""

from random import Random
from typing import Final, Protocol

from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import CALL, SECOND
from smg_chaos.simulate.hosts.host import SNAPSHOT_SEEDS_MAX, Node
from smg_chaos.simulate.hosts.ports import CoreDriver, HasAgenda, HasHosts, HasSeed
from smg_chaos.simulate.world.streams import Streams
from smg_mesh.io.discovery.seed_search import (
    AGAIN_S,
    AT_A_TIME,
    BACKOFF_MAX_S,
    BACKOFF_MIN_S,
    GREET_S,
    GREETINGS_OF_OLD_PEERS,
)
from smg_mesh.swim.messages import Address

_GREET_US: Final = int(GREET_S * SECOND)
_BACKOFF_MIN_US: Final = int(BACKOFF_MIN_S * SECOND)
_BACKOFF_MAX_US: Final = int(BACKOFF_MAX_S * SECOND)
_AGAIN_US: Final = int(AGAIN_S * SECOND)


class SearchWorld(HasAgenda, HasHosts, HasSeed, CoreDriver, Protocol):
    """The world of a node that looks for peers."""

    streams: Streams

    def alone(self, node: Node) -> bool:
        """Return whether a node knows no other living member."""
        ...


class Search:
    """One node's search, as long as it lives."""

    def __init__(self, world: SearchWorld, node: Node) -> None:
        self._world = world
        self._node = node
        self._chance: Random = chance(
            world.setting.seed, "joining", node.host.label, node.host.lives
        )
        old = list(node.host.disk.peers.values())[-SNAPSHOT_SEEDS_MAX:]
        self._old_peers = tuple(one for one in old if one != node.address)
        self._backoff_us = _BACKOFF_MIN_US
        self._greeted = 0
        self._greeting = False
        self._asking: list[Address] = []
        self._in_flight = 0
        self._round = 0

    def begin(self) -> None:
        """Look for the first peer."""
        if self._seeds() or self._old_peers:
            self._greet_often()
            self._rounds(self._round)

    def exchanged(self) -> None:
        """An exchange with a peer went well, whichever side began it."""
        self._node.joined = True

    def lost_all(self) -> None:
        """No other member is alive here any more: search as at the start."""
        self._greeted = 0
        self._round += 1
        if not self._greeting:
            self._greet_often()
        self._rounds(self._round)

    def _seeds(self) -> list[Address]:
        """Look up where the seeds are now, leaving out this node itself."""
        hosts = self._world.hosts
        found = [hosts[label].address for label in self._node.host.seeds if label in hosts]
        return [address for address in found if address != self._node.address]

    # ── Greetings ────────────────────────────────────────────────────────────

    def _searching(self) -> bool:
        return not self._node.joined or self._world.alone(self._node)

    def _greet_often(self) -> None:
        self._greeting = self._searching()
        if self._greeting:
            old = self._old_peers if self._greeted < GREETINGS_OF_OLD_PEERS else ()
            self._greeted += 1
            self._greet((*self._seeds(), *old))
            self._later(_GREET_US, self._greet_often)

    def _greet(self, addresses: tuple[Address, ...]) -> None:
        node, world = self._node, self._world
        present = {one.address for one in node.core.members() if not one.rank.gone}
        absent = [one for one in dict.fromkeys(addresses) if one not in present]
        if absent and not node.leaving:
            effects = node.core.greet(absent, now_ms=world.now_ms(node))
            world.react(node, f"greet {len(absent)}", effects)

    # ── Rounds of exchanges ──────────────────────────────────────────────────

    def _rounds(self, number: int) -> None:
        """Ask all seeds while no peer is found; later only greet those missing. One chain lives."""
        if number != self._round:
            return
        if self._searching():
            self._asking = [*dict.fromkeys((*self._seeds(), *self._old_peers))]
            self._chance.shuffle(self._asking)
            self._ask_more()
            pause_us = int(self._backoff_us * (0.8 + 0.4 * self._chance.random()))
            self._backoff_us = min(2 * self._backoff_us, _BACKOFF_MAX_US)
        else:
            self._greet((*self._seeds(), *self._old_peers))
            pause_us = _AGAIN_US
            self._backoff_us = _BACKOFF_MIN_US
        self._later(pause_us, self._rounds, number)

    def _ask_more(self) -> None:
        while self._asking and self._in_flight < AT_A_TIME and self._searching():
            self._in_flight += 1
            address = self._asking.pop()
            self._world.streams.converse(self._node, address, self._asked, full=True)

    def _asked(self, ok: bool) -> None:
        self._in_flight -= 1
        self._ask_more()

    def _later(self, span_us: int, deed: object, *arguments: object) -> None:
        due_us = self._world.agenda.now_us + span_us
        self._world.agenda.plan(due_us, CALL, self._node, deed, arguments)
