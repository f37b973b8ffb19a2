"""Nodes whose histories lie apart, in one process: a mesh between them that does what a test wants."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.history.peers.peer_interface import STORE, Answer, PeerContact
from smg_node.history.peers.remote_store import RemoteStores
from smg_node.history.peers.remote_store_server import RemoteStoreServer
from smg_node.history.peers.routed_store import RoutedStore
from smg_node.history.peers.thread_owners import ThreadOwners
from smg_node.history.ports import Direct, Keeper
from smg_storage.ids import holder_tag, new_id
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access, Conversation, Item, Status, StoredResponse
from smg_storage.store import HistoryStore
from support.store_contract.maker import Clock

PAYLOAD_BYTES_MAX = 1_000_000
"""As much as the mesh carries in a question or an answer."""


class MeshError(Exception):
    """Why there is no answer, as the mesh says it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Net:
    """Who is there. What stands in `faults` befalls the next questions, one each: a code of the mesh's, or "lost" for
    an answer that does not come although all was done."""

    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    spooling: dict[str, bool] = field(default_factory=dict)
    unheard_s: dict[str, float] = field(default_factory=dict)
    """For how long others have not heard a node, if not since a moment ago."""
    bytes: int = 0

    def peers(self, name: str) -> "NetPeers":
        self.states.setdefault(name, "alive")
        return NetPeers(self, name)


class NetPeers:
    """The others, as one of them sees them."""

    def __init__(self, net: Net, name: str) -> None:
        self._net = net
        self.name = name

    async def ask(self, node: str, topic: str, payload: bytes, *, deadline_s: float) -> bytes:
        net = self._net
        net.asked.append((self.name, node))
        assert len(payload) <= PAYLOAD_BYTES_MAX
        if net.states.get(node) in ("dead", "left"):
            raise refusal(node, "unreachable")
        fault = net.faults.pop(0) if net.faults else ""
        if fault == "silent":
            await asyncio.sleep(deadline_s)
            raise refusal(node, "timeout")
        if fault not in ("", "lost"):
            raise refusal(node, fault)
        answer = await net.answers[node, topic](payload, self.name)
        net.bytes += len(payload) + len(answer)
        assert len(answer) <= PAYLOAD_BYTES_MAX
        if fault == "lost":
            raise refusal(node, "hung_up")
        return answer

    def answer(self, topic: str, reply: Answer) -> None:
        self._net.answers[self.name, topic] = reply

    def gone(self) -> Mapping[str, int]:
        return {name: 1 for name, state in self.known().items() if state in ("dead", "left")}

    def known(self) -> Mapping[str, str]:
        return {name: state for name, state in self._net.states.items() if name != self.name}

    def heard(self) -> Mapping[str, PeerContact]:
        ago = self._net.unheard_s
        return {
            name: PeerContact(state, ago.get(name, 0.1))
            for name, state in self.known().items()
            if state != "left"
        }

    def spooling(self) -> Mapping[str, str]:
        return {name: state for name, state in self.known().items() if self._net.spooling.get(name)}

    def say_spooling(self, *, on: bool) -> None:
        self._net.spooling[self.name] = on


def refusal(node: str, code: str) -> SmgError:
    error = SmgError(ErrorKind.UPSTREAM_FAILED, f"{node}: {code}", code="member_refused")
    error.__cause__ = MeshError(code)
    return error


@dataclass
class HeldNode:
    """One node: its own store, and what it makes of the others'."""

    name: str
    own: HistoryStore
    roster: ThreadOwners
    holders: RoutedStore
    holding: RemoteStoreServer
    counted: list[tuple[str, str]]


def held_node(
    net: Net,
    name: str,
    store: HistoryStore,
    *,
    keeper: Keeper | None = None,
    roster: type[ThreadOwners] = ThreadOwners,
) -> HeldNode:
    """Add a node to a net."""
    rng, peers = random.Random(name), net.peers(name)
    own: Keeper = Direct(store) if keeper is None else keeper
    names = roster(name, peers, now_s=time.monotonic)
    counted: list[tuple[str, str]] = []
    elsewhere = RemoteStores(
        peers,
        now_s=time.monotonic,
        rng=rng,
        observe=lambda operation, outcome, _: counted.append((operation, outcome)),
    )
    holders = RoutedStore(own, names, elsewhere, local=lambda: True, chance=rng)
    holding = RemoteStoreServer(own, now_s=time.monotonic, rng=rng)
    peers.answer(STORE, holding.answer)
    return HeldNode(name, store, names, holders, holding, counted)


def memory(clock: Clock) -> MemoryStore:
    return MemoryStore(Bounds(age_max_s=30 * 86_400), clock)


ACCESS = Access(tenant="acme", timeout_s=30.0)
SHORT = Access(tenant="acme", timeout_s=0.2)


@dataclass
class Three:
    """Nodes a, b and c, each with a memory of its own."""

    net: Net
    clock: Clock
    chance: random.Random
    a: HeldNode
    b: HeldNode
    c: HeldNode

    def id(self, prefix: str, node: str) -> str:
        """Return an id of a thread that a node holds."""
        thread = f"{holder_tag(node)}{self.chance.getrandbits(24):06x}"
        return new_id(prefix, thread, now_ms=1, chance=self.chance)

    def response(self, node: str, text: str = "x", **more: Any) -> StoredResponse:
        made = StoredResponse(
            id=self.id("resp", node),
            status=Status.COMPLETED,
            model="m",
            created_us=self.clock.now_us,
            input=b"[]",
            response=msgspec.json.encode({"text": text}),
            completed_us=self.clock.now_us,
        )
        return msgspec.structs.replace(made, **more)

    def item(self, item_id: str) -> Item:
        return Item(item_id, "message", b'{"id":"x"}', self.clock.now_us)

    async def conversation(self, node: str) -> str:
        made = Conversation(self.id("conv", node), self.clock.now_us, self.clock.now_us)
        return (await self.a.holders.create_conversation(ACCESS, made)).id


def three_nodes() -> Three:
    """Return three nodes that know each other and hold nothing."""
    net, clock = Net(), Clock()
    nodes = [held_node(net, name, memory(clock)) for name in "abc"]
    return Three(net, clock, random.Random(3), *nodes)
