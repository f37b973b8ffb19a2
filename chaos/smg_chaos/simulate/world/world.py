"""World of a simulated cluster: hosts on one clock, a network between them, real cores on them.

The world takes the next entry of the agenda, gives it to the core it is for, and does what the core asks.
Nothing else moves. After every input the checkers look at what it may have changed. Two worlds with one
setting have one history, input for input and byte for byte.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from smg_chaos.simulate.base.event_log import Chronicle
from smg_chaos.simulate.base.history_hash import Trace
from smg_chaos.simulate.base.random_sources import chance
from smg_chaos.simulate.base.virtual_clock import (
    ARRIVAL,
    CALL,
    DATAGRAM,
    DEED,
    MS,
    RIGHTS,
    SECOND,
    TIMER,
    Agenda,
)
from smg_chaos.simulate.hosts.core_interface import CoreFactory
from smg_chaos.simulate.hosts.host import Host, Node, numbered_address
from smg_chaos.simulate.hosts.network import WIRES, Network
from smg_chaos.simulate.hosts.packet_replay import Wiretap
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.replicas.replica_setting import StateSetting
from smg_chaos.simulate.rights.rights_setting import RightsSetting
from smg_chaos.simulate.world.announcements import announce
from smg_chaos.simulate.world.checkers import Checkers
from smg_chaos.simulate.world.joining import Search
from smg_chaos.simulate.world.streams import Streams
from smg_chaos.simulate.world.tcp_pipes import Pipes
from smg_mesh.config import PROFILES, ProfileName, SwimOptions
from smg_mesh.swim.effects import Effect, Note, OpenExchange, SendDatagram, SetTimer, StreamPing
from smg_mesh.swim.messages import Address

if TYPE_CHECKING:
    from smg_chaos.simulate.hosts.sealed_packets import Seal
    from smg_chaos.simulate.replicas.shared_world import Commons
    from smg_chaos.simulate.rights.rights_world import Market
    from smg_chaos.simulate.whole.traffic import Traffic
    from smg_chaos.simulate.whole.traffic_setting import TrafficSetting

_LATE_US: Final = 500
"""How late a loop calls a timer that is due, at most."""
_CHECK_EVERY: Final = 64
"""Inputs of one node after which its whole table is looked at, although its digest did not change."""
_SMALL_TABLE: Final = 16
_ROWS_PER_INPUT: Final = 4
"""Rows that looking may cost per input: tables larger than small are looked at more rarely."""
_FAREWELL_POLL_US: Final = 50 * MS
_FAREWELL_MAX_US: Final = SECOND
_STEP_DOWN_US: Final = 200 * MS
"""A superseded node has that long left: it drains, then exits."""
_OFFSET_MS_MAX: Final = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The options of a world, beside its cores."""

    seed: int
    profile: ProfileName = "lan"
    sealed: bool = False
    traced: bool = False
    state: StateSetting | None = None
    """None: nodes share nothing but the membership."""
    rights: RightsSetting | None = None
    """None: nothing is limited."""
    traffic: "TrafficSetting | None" = None
    """None: nobody asks for answers. With it, there are state and rights."""


class World:
    """The whole simulated cluster. `hosts` are by label, in the order in which they came."""

    def __init__(
        self,
        setting: Setting,
        make_core: CoreFactory,
        make_replica: ReplicaFactory | None = None,
    ) -> None:
        self.setting = setting
        self.options: SwimOptions = PROFILES[setting.profile]
        self.agenda = Agenda()
        self.chance = chance(setting.seed, "world")
        self.network = Network(WIRES[setting.profile], self.agenda, chance(setting.seed, "network"))
        pipes = Pipes(self.agenda, self.network, chance(setting.seed, "pipes"))
        self.streams = Streams(self, pipes)
        self.chronicle = Chronicle()
        self.checkers = Checkers(self)
        self.trace = Trace() if setting.traced else None
        self.hosts: dict[str, Host] = {}
        self.wiretap: Wiretap | None = None
        self.broken_promises: list[str] = []
        self.notes: dict[str, int] = {}
        self.events = 0
        self.refused_datagrams = 0
        self.commons: Commons | None = None
        if setting.state is not None:
            assert make_replica is not None
            self.commons = _commons(self, setting.state, make_replica)
        self.market = None if setting.rights is None else _market(self, setting.rights)
        self.traffic = None if setting.traffic is None else _traffic(self, setting.traffic)
        self._make_core = make_core
        self._late = chance(setting.seed, "lateness").random
        self._make_seal = _sealing(setting.seed) if setting.sealed else None
        self._addresses = 0

    # ── Hosts and lives ──────────────────────────────────────────────────────

    def add_host(self, name: str, *, label: str = "", seeds: Sequence[str] = ()) -> Host:
        """Put up a machine for a member of that name; nothing runs on it yet."""
        label = label or name
        assert label not in self.hosts
        host = Host(len(self.hosts), label, name, self.fresh_address())
        host.seeds = tuple(seeds)
        self.hosts[label] = host
        self.network.attach(host)
        return host

    def fresh_address(self) -> Address:
        """Return an address that was never used."""
        self._addresses += 1
        return numbered_address(self._addresses)

    def boot(self, host: Host, *, meta: bytes = b"") -> Node:
        """Begin a life on a host that has none; it tries to join as it was configured."""
        assert host.node is None
        now_us = self.agenda.now_us
        host.lives += 1
        own = chance(self.setting.seed, "life", host.label, host.lives)
        boot = host.next_boot(now_us, own)
        core = self._make_core(host.name, host.address, boot, meta, self.options, own)
        node = Node(host, core, self.options, boot=boot, offset_ms=own.randrange(_OFFSET_MS_MAX))
        node.started_us = now_us
        node.seal = None if self._make_seal is None else self._make_seal()
        host.node = node
        self.checkers.born(node)
        if self.commons is not None:
            self.commons.born(node)
        if self.market is not None:
            self.market.born(node)
        if self.traffic is not None:
            self.traffic.born(node)
        self.react(node, "start", core.start(now_ms=self.now_ms(node)))
        node.search = search = Search(self, node)
        search.begin()
        return node

    def listen_in(self) -> None:
        """Keep a sample of all datagrams from now on."""
        self.wiretap = self.network.wiretap = Wiretap(chance(self.setting.seed, "wiretap"))

    def kill(self, host: Host) -> None:
        """End the life on a host at once: nothing is said, nothing is saved."""
        node = host.node
        if node is not None:
            node.alive = False
            host.node = None
            self.checkers.ended(node)
            if self.traffic is not None:
                self.traffic.over(node)
            if self.market is not None:
                self.market.ended(node)
            if node.life is not None:
                node.life.end()

    def leave(self, host: Host) -> None:
        """Let the life on a host say goodbye and end."""
        node = host.node
        if node is not None and not node.leaving:
            node.leaving = True
            if node.teller is not None:
                node.teller.leave()
            self.react(node, "leave", node.core.leave(now_ms=self.now_ms(node)))
            now_us = self.agenda.now_us
            self.agenda.plan(now_us + _FAREWELL_POLL_US, CALL, node, self._farewell, (node, now_us))

    def _farewell(self, node: Node, since_us: int) -> None:
        now_us = self.agenda.now_us
        if node.core.farewell_over or now_us - since_us >= _FAREWELL_MAX_US:
            if node.life is not None:
                node.life.close()
            self.kill(node.host)
        else:
            poll_us = now_us + _FAREWELL_POLL_US
            self.agenda.plan(poll_us, CALL, node, self._farewell, (node, since_us))

    def step_down(self, node: Node) -> None:
        """End a life that heard of a newer one with its name, after it has drained."""
        if not node.superseded:
            node.superseded = True
            self.agenda.deed(self.agenda.now_us + _STEP_DOWN_US, self._stepped_down, node)

    def _stepped_down(self, node: Node) -> None:
        if node.alive:
            if node.life is not None:
                node.life.close()
            self.kill(node.host)

    def nodes(self) -> list[Node]:
        """Return all that live now, in the order of their hosts."""
        return [host.node for host in self.hosts.values() if host.node is not None]

    def alone(self, node: Node) -> bool:
        """Return whether a node knows no other living member."""
        return all(one.rank.gone or one.name == node.name for one in node.core.members())

    def now_ms(self, node: Node) -> int:
        """Return what the node's monotonic clock shows."""
        return self.agenda.now_us // MS + node.offset_ms

    def broken(self, promise: str) -> None:
        """Note that something happened which must not."""
        if len(self.broken_promises) < 20:
            self.broken_promises.append(f"at {self.agenda.now_us / SECOND:.3f} s: {promise}")

    # ── Standing still ───────────────────────────────────────────────────────

    def stop(self, node: Node) -> None:
        """Let the node's loop stand still until `go_on` was called as often."""
        if node.alive:
            if not node.stopped:
                node.stopped_us = self.agenda.now_us
            node.stopped += 1

    def go_on(self, node: Node, *, timers_first: bool) -> None:
        """Let it run again: the stall first, then what piled up, in one of both orders."""
        if not node.alive or not node.stopped:
            return
        node.stopped -= 1
        if node.stopped:
            return
        lag_ms = node.lag_ms(self.agenda.now_us)
        if node.has_stalled(lag_ms):
            effects = node.core.handle_stall(lag_ms, now_ms=self.now_ms(node))
            self.react(node, f"stall {lag_ms}", effects)
        for kind, x, y in node.take_waiting(timers_first=timers_first):
            if node.alive:
                self._give(node, kind, x, y)

    # ── The loop ─────────────────────────────────────────────────────────────

    def run_for(self, span_us: int) -> None:
        """Let time pass."""
        self.run(self.agenda.now_us + span_us)

    def run(self, until_us: int) -> None:
        """Do everything that is due until then, in order."""
        agenda = self.agenda
        entries = agenda.entries
        while entries and entries[0][0] <= until_us:
            agenda.now_us, _, kind, whose, x, y = heappop(entries)
            if kind == DEED:
                x(*y)
                continue
            node = whose.node if kind <= DATAGRAM else whose
            if node is None or not node.alive:
                continue
            if not node.stopped:
                self._give(node, kind, x, y)
            elif kind <= DATAGRAM:
                node.queue(kind, x, y)
            else:
                (node.waiting if kind == ARRIVAL else node.overdue).append((kind, x, y))
        agenda.now_us = until_us

    def run_until(
        self, condition: Callable[[], bool], *, limit_us: int, step_us: int = 10 * MS
    ) -> int | None:
        """Let time pass until `condition` holds; return how long it took, or None after `limit_us`."""
        since_us = self.agenda.now_us
        while not condition():
            if self.agenda.now_us - since_us >= limit_us:
                return None
            self.run_for(step_us)
        return self.agenda.now_us - since_us

    def _give(self, node: Node, kind: int, x: object, y: object) -> None:
        now_ms = self.agenda.now_us // MS + node.offset_ms
        if kind == TIMER:
            self.react(node, x, node.core.handle_timer(x, now_ms=now_ms))  # type: ignore[arg-type]  # TIMER entries hold timers
        elif kind == DATAGRAM:
            self._receive(node, x, y, now_ms)  # type: ignore[arg-type]  # DATAGRAM entries hold bytes
        elif kind == RIGHTS:
            if node.teller is not None:
                node.teller.hear(x, y)  # type: ignore[arg-type]  # RIGHTS entries hold bytes
        else:
            x(*y)  # type: ignore[operator,misc]  # ARRIVAL and CALL entries hold deeds

    def _receive(self, node: Node, packet: bytes, sender: Address, now_ms: int) -> None:
        if node.seal is not None:
            opened = node.seal.open(packet)
            if opened is None:
                self.refused_datagrams += 1
                return
            packet = opened
        self.react(node, packet, node.core.handle_datagram(packet, sender, now_ms=now_ms))

    def give_garbage(self, host: Host, packet: bytes, sender: Address) -> None:
        """Let a running node receive bytes that are no packet, and look that they change nothing."""
        node = host.node
        if node is not None and not node.stopped:
            before = node.core.members()
            effects = node.core.handle_datagram(packet, sender, now_ms=self.now_ms(node))
            self.checkers.refused(node, before, effects)
            self.react(node, packet, effects)

    # ── What cores ask for ───────────────────────────────────────────────────

    def react(self, node: Node, cause: object, effects: Sequence[Effect]) -> None:
        """Do what a core asked for after an input, in order; then look whether all is well."""
        self.events += 1
        for effect in effects:
            kind = type(effect)
            if kind is SendDatagram:
                self._send(node, effect)  # type: ignore[arg-type]  # just compared
            elif kind is SetTimer:
                self._set_timer(node, effect)  # type: ignore[arg-type]  # just compared
            elif kind is Note:
                notes = self.notes
                name = effect.name  # type: ignore[union-attr]  # just compared
                count = effect.value  # type: ignore[union-attr]  # just compared
                notes[name] = notes.get(name, 0) + count
            else:
                self._perform(node, effect)
        if self.trace is not None:
            self.trace.note(self.agenda.now_us, node.host.label, cause, effects)
        node.unchecked += 1
        digest = node.core.digest()
        if digest == node.digest and node.unchecked < _CHECK_EVERY:
            return
        rows = len(node.checked)
        if rows <= _SMALL_TABLE or node.unchecked * _ROWS_PER_INPUT >= rows:
            node.digest = digest
            node.unchecked = 0
            self.checkers.look(node)

    def _send(self, node: Node, effect: SendDatagram) -> None:
        packet = effect.packet
        if node.seal is not None:
            packet = node.seal.seal(packet)
        self.network.send(node.host, effect.to, packet)

    def _set_timer(self, node: Node, effect: SetTimer) -> None:
        agenda = self.agenda
        due_us = (effect.due_ms - node.offset_ms) * MS + int(self._late() * _LATE_US)
        agenda.planned = number = agenda.planned + 1
        entry = (max(due_us, agenda.now_us), number, TIMER, node, effect.timer, None)
        heappush(agenda.entries, entry)

    def _perform(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, StreamPing):
            self.streams.ping(node, effect)
        elif isinstance(effect, OpenExchange):
            self.streams.exchange(node, effect)
        else:
            announce(self, node, effect)


def _commons(world: World, setting: StateSetting, make_replica: ReplicaFactory) -> "Commons":
    # Imported when it is used, like the keyring: worlds of members only do without the views.
    from smg_chaos.simulate.replicas.shared_world import Commons

    return Commons(world, setting, make_replica)


def _market(world: World, setting: RightsSetting) -> "Market":
    # Imported when it is used: most worlds limit nothing.
    from smg_chaos.simulate.rights.rights_world import Market

    return Market(world, setting)


def _traffic(world: World, setting: "TrafficSetting") -> "Traffic":
    # Imported when it is used: engines and their words are slow to load.
    from smg_chaos.simulate.whole.traffic import Traffic

    return Traffic(world, setting)


def _sealing(seed: int) -> "Callable[[], Seal]":
    # Imported when it is used: cryptography is slow to load, and most worlds do without.
    from smg_chaos.simulate.hosts.sealed_packets import make_sealing

    return make_sealing(seed)
