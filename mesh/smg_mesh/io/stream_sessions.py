"""Stream sessions: pings, exchanges and questions of this node over streams, in both directions.

It stands between the core and the gRPC rooms: machines for exchanges are made from what the core knows
now and what state this node holds, and what they learn goes back into it as one more input.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeAlias

from smg_mesh.io.discovery.seed_search import ExchangeFailedError
from smg_mesh.io.driver import Step
from smg_mesh.io.streams import AskError, StreamClient, StreamError, Turns
from smg_mesh.io.streams.service import TOPIC_CHARS_MAX
from smg_mesh.swim.effects import Effect, StreamAnswer
from smg_mesh.swim.messages import Address, Claim
from smg_mesh.sync.exchange.exchange_machine import Exchange, ExchangeError, Opening
from smg_mesh.sync.exchange.piece_interface import Pieces

JOIN_MS: Final = 5_000
"""Longest exchange with a seed that may be nobody; the other seeds wait behind it, four at a time."""
TOPICS_MAX: Final = 256

Reply: TypeAlias = Callable[[bytes, str], Awaitable[bytes]]
"""From (payload, name of who asks) to the answer; AskError says why there is none."""


class Knowledge(Protocol):
    """Interface of the core that sessions need; `swim_core.Swim` fits."""

    @property
    def name(self) -> str:
        """This node's."""
        ...

    @property
    def boot(self) -> int:
        """Of this life."""
        ...

    def digest(self) -> bytes:
        """Return 8 bytes over the member table."""
        ...

    def rows(self) -> Sequence[Claim]:
        """Return the member table."""
        ...

    def handle_rows(self, rows: Sequence[Claim], *, now_ms: int) -> list[Effect]:
        """Take rows in."""
        ...


class Rings(Protocol):
    """Interface of the keyring's rotation that sessions need; `key_rotation.Rotation` fits."""

    @property
    def version(self) -> int:
        """How often the ring was changed."""
        ...

    async def level(self, name: str, address: Address, version: int) -> None:
        """See to it that this node and a peer, which holds `version`, have one ring."""
        ...


class Met(Protocol):
    """Callback: an exchange with a peer came to its end, whichever side began it."""

    def __call__(self, name: str, /, *, full: bool, held: bool) -> None:
        """Learn of it. `full`: all state was compared, and is the same; `held`: the peer had it all."""
        ...


class StreamSessions:
    """Sessions of this node, both sides of every stream.

    `pieces` is what this node replicates; `held` says whether it holds the cluster's state. As long as it
    does not, every exchange it begins wants everything.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        label: str,
        exchange_ms: int,
        now_ms: Callable[[], int],
        step: Callable[[Step], object],
        met: Met,
        pieces: Pieces | None = None,
        held: Callable[[], bool] = lambda: True,
    ) -> None:
        self.turns: Final = Turns()
        self._knowledge = knowledge
        self._label = label
        self._exchange_ms = exchange_ms
        self._now_ms = now_ms
        self._step = step
        self._met = met
        self._pieces = pieces
        self._held = held
        self._topics: dict[str, Reply] = {}
        self._client: StreamClient | None = None
        self._rings: Rings | None = None

    def connect(self, client: StreamClient, rings: Rings) -> None:
        """Take the client to call peers with, without which every call fails; keep `rings` level."""
        self._client = client
        self._rings = rings

    # ── This node calls ──────────────────────────────────────────────────────

    async def ping(
        self, name: str, address: Address, boot: int, *, deadline_ms: int
    ) -> StreamAnswer:
        """Return whether that very life of that member answered, or what its host said."""
        if self._client is None:
            return StreamAnswer.SILENT
        return await self._client.ping(address, name, boot, deadline_ms=deadline_ms)

    async def exchange(self, name: str, address: Address, why: str) -> bool:
        """Exchange with a known member; return whether it came to its end."""
        # Who was told wrong things, or was away, wants everything; digests decide the rest.
        full = why in ("join", "told", "stall", "heal") or not self._held()
        try:
            await self._converse(address, name, full=full, deadline_ms=self._exchange_ms)
        except StreamError:
            return False
        return True

    async def join(self, address: Address) -> bool:
        """Exchange with the process at an address; False if that was this
        node itself. ExchangeFailedError.
        """
        deadline_ms = min(self._exchange_ms, JOIN_MS)
        try:
            peer = await self._converse(address, None, full=True, deadline_ms=deadline_ms)
        except StreamError as error:
            raise ExchangeFailedError(str(error)) from error
        return not self.is_me(peer.name, peer.boot)

    async def ask(
        self, name: str, address: Address, topic: str, payload: bytes, *, deadline_s: float
    ) -> bytes:
        """Return what a member answers; AskError."""
        if self._client is None:
            raise AskError("unreachable", "this node has no streams to peers")
        return await self._client.ask(address, name, topic, payload, deadline_s=deadline_s)

    async def _converse(
        self, address: Address, name: str | None, *, full: bool, deadline_ms: int
    ) -> Opening:
        if self._client is None:
            raise StreamError("failed", "this node has no streams to peers")
        machine = self._machine(full=full, opener=True)
        peer = await self._client.exchange(
            address, name, machine, self._learn, turns=self.turns, deadline_ms=deadline_ms
        )
        if self._rings is not None and not self.is_me(peer.name, peer.boot):
            await self._rings.level(peer.name, address, peer.ring_version)
        self.ended(machine)
        return peer

    def _machine(self, *, full: bool, opener: bool) -> Exchange:
        mine, rows = self._opening(full=full), self._knowledge.rows
        return Exchange(mine, rows, opener=opener, pieces=self._pieces)

    def _learn(self, claims: Sequence[Claim]) -> None:
        now_ms = self._now_ms()
        self._step(lambda: self._knowledge.handle_rows(claims, now_ms=now_ms))

    def _opening(self, *, full: bool) -> Opening:
        return Opening(
            name=self._knowledge.name,
            boot=self._knowledge.boot,
            label=self._label,
            digest=self._knowledge.digest() + self._pieces_digest(),
            full=full,
            ring_version=0 if self._rings is None else self._rings.version,
            held=self._held(),
        )

    def _pieces_digest(self) -> bytes:
        return bytes(8) if self._pieces is None else self._pieces.digest()

    def is_me(self, name: str, boot: int) -> bool:
        """Return whether this process is that life of that node."""
        return (name, boot) == (self._knowledge.name, self._knowledge.boot)

    def answering(self) -> Exchange:
        """Return the answering side of a new exchange."""
        return self._machine(full=False, opener=False)

    def learned(self, claims: Sequence[Claim], _peer: Opening) -> None:
        """Merge rows that a peer told in an exchange which it began."""
        self._learn(claims)

    def ended(self, machine: Exchange) -> None:
        """Tell that an exchange came to its end, unless this node met itself."""
        peer = machine.peer
        if peer is not None and not self.is_me(peer.name, peer.boot):
            self._met(peer.name, full=machine.full, held=peer.held)

    # ── Peers call ───────────────────────────────────────────────────────────

    def on(self, topic: str, reply: Reply) -> None:
        """Answer questions about `topic` with `reply`; ValueError if the topic is taken."""
        if topic in self._topics:
            raise ValueError(f"{topic!r} is answered already")
        if not 1 <= len(topic) <= TOPIC_CHARS_MAX or len(self._topics) >= TOPICS_MAX:
            raise ValueError(f"{topic!r} is too long, or one topic too many")
        self._topics[topic] = reply

    async def answer(self, topic: str, payload: bytes, caller: str) -> bytes:
        """Answer a question, of a peer or of this node itself; AskError says why there is no answer."""
        reply = self._topics.get(topic)
        if reply is None:
            raise AskError("unknown", f"{self._knowledge.name} knows nothing about {topic!r}")
        return await reply(payload, caller)


class Answers:
    """The serving side, as the stream server wants it; until `open` it asks for patience."""

    def __init__(self) -> None:
        self._conversations: StreamSessions | None = None
        self._turns = Turns()

    @property
    def turns(self) -> Turns:
        """What paces the work of all exchanges."""
        return self._turns if self._conversations is None else self._conversations.turns

    def open(self, conversations: StreamSessions) -> None:
        """Answer from now on."""
        self._conversations = conversations

    async def ping(self, name: str, boot: int) -> bool:
        """Return whether this process is that life of that node."""
        return self._conversations is not None and self._conversations.is_me(name, boot)

    def exchange(self) -> Exchange:
        """Return the answering side of a new exchange; ExchangeError before `open`."""
        if self._conversations is None:
            raise ExchangeError("busy", "came too early: this node is starting")
        return self._conversations.answering()

    def learned(self, claims: tuple[Claim, ...], peer: Opening) -> None:
        """Merge what a peer told."""
        if self._conversations is not None:
            self._conversations.learned(claims, peer)

    def ended(self, machine: Exchange) -> None:
        """Learn that an exchange came to its end."""
        if self._conversations is not None:
            self._conversations.ended(machine)

    async def answer(self, topic: str, payload: bytes, caller: str) -> bytes:
        """Return the answer to a question; AskError."""
        if self._conversations is None:
            raise AskError("busy", "this node is starting")
        return await self._conversations.answer(topic, payload, caller)
