"""Nodes that have only streams: a server, a client and a table of rows, over real loopback gRPC."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from smg_mesh.io.streams import AskError, StreamClient, StreamServer, Turns
from smg_mesh.io.tls import Credentials, DerivedMaterial, PlainCredentials, RingKeys, TlsCredentials
from smg_mesh.swim.messages import Address, Claim
from smg_mesh.sync.exchange.exchange_machine import Exchange, Opening
from smg_mesh.sync.exchange.piece_interface import Pieces

LABEL = "test"


@dataclass
class Ring:
    """A keyring as certificates see it; tests change it at will."""

    held: list[bytes]

    def keys(self) -> tuple[bytes, ...]:
        return tuple(self.held)


def key(number: int) -> bytes:
    """Return a key of 32 bytes."""
    return bytes([number]) * 32


def derived(
    name: str, *keys: bytes, label: str = LABEL, ring: RingKeys | None = None
) -> TlsCredentials:
    """Return credentials made from a keyring."""
    material = DerivedMaterial(ring or Ring(list(keys or (key(1),))), name=name, label=label)
    return TlsCredentials(material, name=name, label=label)


def plain(name: str, *, label: str = LABEL) -> PlainCredentials:
    """Return no credentials."""
    return PlainCredentials(name=name, label=label)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that has to come."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.005)


class Gate:
    """Lets answers wait until a test opens it, and says how many wait."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = 0

    async def wait(self) -> None:
        self.waiting += 1
        try:
            await self.open.wait()
        finally:
            self.waiting -= 1


@dataclass
class Node:
    """One node: what it holds and learned, and both ends of its streams."""

    name: str
    credentials: Credentials
    rows: Sequence[Claim] = ()
    boot: int = 1
    digest: bytes = bytes(16)
    label: str = LABEL
    said: dict[str, Any] = field(default_factory=dict)
    learned_rows: list[Claim] = field(default_factory=list)
    told_by: list[Opening] = field(default_factory=list)
    pieces: Pieces | None = None
    ended_with: list[tuple[str, bool]] = field(default_factory=list)
    turns: Turns = field(default_factory=Turns)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    gate: Gate | None = None
    replies: Callable[[str, bytes, str], bytes] | None = None
    address: Address = field(default_factory=lambda: Address("127.0.0.1", 0))
    _server: StreamServer | None = None
    _client: StreamClient | None = None

    @property
    def client(self) -> StreamClient:
        assert self._client is not None, "the node is up"
        return self._client

    @property
    def server(self) -> StreamServer:
        assert self._server is not None, "the node is up"
        return self._server

    def count(self, name: str, detail: str) -> None:
        self.counts[name, detail] += 1

    def machine(self, *, opener: bool) -> Exchange:
        """Return this node's side of an exchange."""
        digest = self.digest
        if self.pieces is not None:
            digest = digest[:8] + self.pieces.digest()
        mine = Opening(self.name, self.boot, self.label, digest, **{"full": True, **self.said})
        return Exchange(mine, lambda: self.rows, opener=opener, pieces=self.pieces)

    async def exchange_with(
        self, other: "Node", *, name: str | None = "", deadline_ms: int = 10_000
    ) -> Opening:
        """Converse with another node, expecting it to be there unless told otherwise."""
        return await self.client.exchange(
            other.address,
            other.name if name == "" else name,
            self.machine(opener=True),
            self.learned_rows.extend,
            turns=self.turns,
            deadline_ms=deadline_ms,
        )

    # ── What a StreamServer asks ─────────────────────────────────────────────

    async def ping(self, name: str, boot: int) -> bool:
        return (name, boot) == (self.name, self.boot)

    def exchange(self) -> Exchange:
        return self.machine(opener=False)

    def learned(self, claims: tuple[Claim, ...], peer: Opening) -> None:
        self.learned_rows += claims
        self.told_by.append(peer)

    def ended(self, machine: Exchange) -> None:
        assert machine.peer is not None
        self.ended_with.append((machine.peer.name, machine.full))

    async def answer(self, topic: str, payload: bytes, caller: str) -> bytes:
        if self.gate is not None:
            await self.gate.wait()
        if self.replies is None:
            raise AskError("unknown", f"nobody answers about {topic}")
        return self.replies(topic, payload, caller)


@asynccontextmanager
async def up(*nodes: Node, **limits: float) -> AsyncIterator[None]:
    """Let nodes serve on ports of their own, and take them down, whatever happens."""
    try:
        for node in nodes:
            node._server = StreamServer(
                node.address, node.credentials, node, count=node.count, **limits
            )
            node._client = StreamClient(
                node.credentials, count=node.count, monotonic_s=time.monotonic
            )
            node.address = Address("127.0.0.1", await node._server.start())
        yield
    finally:
        for node in nodes:
            await node.client.close()
        for node in nodes:
            await node.server.stop(0)


# ── Others ───────────────────────────────────────────────────────────────────


@asynccontextmanager
async def stranger(node: Node, **options: int) -> AsyncIterator[Any]:
    """Yield a bare channel to a node, to say anything on."""
    given = [(f"grpc.{name}", value) for name, value in options.items()]
    channel = grpc.aio.insecure_channel(f"ipv4:{node.address}", options=given)
    try:
        yield channel
    finally:
        await channel.close(None)


@asynccontextmanager
async def impostor(serve: Any) -> AsyncIterator[Address]:
    """Yield the address of a server whose exchanges are served by `serve`."""
    server = grpc.aio.server()
    stream: Any = grpc.stream_stream_rpc_method_handler
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("smg.mesh.v1.Mesh", {"Exchange": stream(serve)}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield Address("127.0.0.1", port)
    finally:
        await server.stop(None)
