"""A few membership cores on one virtual clock, with links that only delay or cut.

For tests that want to see a rule work between members; weather of every kind is the business of
`smg-chaos simulate`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from smg_mesh.config import PROFILES, SwimOptions
from smg_mesh.swim.effects import (
    BootChanged,
    Effect,
    Isolated,
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
    NewsReceived,
    Note,
    OpenExchange,
    SendDatagram,
    SetTimer,
    StreamAnswer,
    StreamPing,
    Superseded,
)
from smg_mesh.swim.messages import Address, Rank
from smg_mesh.swim.swim_core import Identity, Swim

LATENCY_MS = 1
EXCHANGE_MS = 5
Event = (
    MemberUp
    | MemberSuspected
    | MemberRefuted
    | MemberDown
    | MemberLeft
    | MemberChanged
    | NewsReceived
    | BootChanged
    | Superseded
    | Isolated
)


@dataclass
class Node:
    """One core and what it told its subscribers."""

    swim: Swim
    address: Address
    up: bool = True
    events: list[tuple[int, Event]] = field(default_factory=list)
    notes: dict[tuple[str, str], int] = field(default_factory=dict)
    exchanges: list[tuple[int, str, str]] = field(default_factory=list)


class SmallCluster:
    """Cores, their packets and timers, in the order of time."""

    def __init__(self, *, seed: int = 1, options: SwimOptions = PROFILES["lan"]) -> None:
        self.now_ms = 1_000
        self.options = options
        self.nodes: dict[Address, Node] = {}
        self.cut: Callable[[Address, Address], bool] = lambda sender, to: False
        self.overhear: Callable[[list[Effect]], None] = lambda effects: None
        self.packets = 0
        self._rng = Random(seed)
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def add(self, name: str, *, host: str | None = None, boot: int = 1, meta: bytes = b"") -> Node:
        """Start a member; it greets nobody yet."""
        address = Address(host or f"10.0.0.{len(self.nodes) + 1}", 7946)
        rng = Random(self._rng.getrandbits(64))
        node = Node(Swim(Identity(name, address, boot, meta), self.options, rng), address)
        self.nodes[address] = node
        self.do(node, node.swim.start(now_ms=self.now_ms))
        return node

    def joined(self, count: int) -> list[Node]:
        """Start members that all greet the first, and let them meet."""
        nodes = [self.add(f"n{number}") for number in range(count)]
        for node in nodes[1:]:
            self.do(node, node.swim.greet([nodes[0].address], now_ms=self.now_ms))
        self.run(5_000)
        return nodes

    def run(self, span_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + span_ms
        while self._heap and self._heap[0][0] <= end_ms:
            self.now_ms, _, act = heappop(self._heap)
            act()
        self.now_ms = end_ms

    def until(self, true: Callable[[], bool], limit_ms: int) -> int:
        """Let time pass until it is `true`; return how much did."""
        start_ms = self.now_ms
        while not true():
            assert self._heap
            assert self._heap[0][0] <= start_ms + limit_ms, "it did not become true in time"
            self.now_ms, _, act = heappop(self._heap)
            act()
        return self.now_ms - start_ms

    def do(self, node: Node, effects: list[Effect]) -> None:
        """Do what a core asked for."""
        self.overhear(effects)
        for effect in effects:
            self._one(node, effect)

    def rank(self, node: Node, name: str) -> Rank | None:
        """Return what `node` holds of that name."""
        member = node.swim.member(name)
        return None if member is None else member.rank

    def all_hold(self, rank: Rank | None, name: str) -> bool:
        """Whether everybody who is up holds that name to be `rank`."""
        others = [node for node in self.nodes.values() if node.up and node.swim.name != name]
        return all(self.rank(node, name) is rank for node in others)

    def agree(self) -> bool:
        """Whether all who are up have the same digest and hold each other alive."""
        up = [node for node in self.nodes.values() if node.up]
        names = [node.swim.name for node in up]
        alive = all(self.rank(node, name) is Rank.ALIVE for node in up for name in names)
        return alive and len({node.swim.digest() for node in up}) == 1

    def _at(self, delay_ms: int, act: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._heap, (self.now_ms + max(0, delay_ms), self._count, act))

    def _reaches(self, sender: Address, to: Address) -> Node | None:
        node = self.nodes.get(to)
        return node if node is not None and node.up and not self.cut(sender, to) else None

    def _one(self, node: Node, effect: Effect) -> None:
        match effect:
            case SendDatagram():
                self.packets += 1
                self._at(LATENCY_MS, lambda: self._arrive(node, effect))
            case SetTimer():
                self._at(effect.due_ms - self.now_ms, lambda: self._fire(node, effect))
            case StreamPing():
                self._at(2 * LATENCY_MS, lambda: self._stream_ping(node, effect))
            case OpenExchange():
                node.exchanges.append((self.now_ms, effect.name, effect.why))
                self._at(EXCHANGE_MS, lambda: self._exchange(node, effect))
            case Note():
                key = (effect.name, effect.detail)
                node.notes[key] = node.notes.get(key, 0) + effect.value
            case _:
                node.events.append((self.now_ms, effect))

    def _arrive(self, sender: Node, effect: SendDatagram) -> None:
        node = self._reaches(sender.address, effect.to)
        if node is not None:
            got = node.swim.handle_datagram(effect.packet, sender.address, now_ms=self.now_ms)
            self.do(node, got)

    def _fire(self, node: Node, effect: SetTimer) -> None:
        if node.up:
            self.do(node, node.swim.handle_timer(effect.timer, now_ms=self.now_ms))

    def _stream_ping(self, node: Node, effect: StreamPing) -> None:
        asked = self._reaches(node.address, effect.address)
        answered = (
            asked is not None
            and not self.cut(effect.address, node.address)
            and (asked.swim.name, asked.swim.boot) == (effect.name, effect.boot)
        )
        done = node.swim.handle_stream_ping
        answer = StreamAnswer.HERE if answered else StreamAnswer.SILENT
        self.do(node, done(effect.nonce, answer=answer, now_ms=self.now_ms))

    def _exchange(self, node: Node, effect: OpenExchange) -> None:
        peer = self._reaches(node.address, effect.address)
        ok = peer is not None and not self.cut(effect.address, node.address)
        if ok and peer is not None and node.up:
            mine, theirs = node.swim.rows(), peer.swim.rows()
            self.do(node, node.swim.handle_rows(theirs, now_ms=self.now_ms))
            self.do(peer, peer.swim.handle_rows(mine, now_ms=self.now_ms))
        done = node.swim.handle_exchange_end
        self.do(node, done(effect.name, ok=ok, now_ms=self.now_ms))
