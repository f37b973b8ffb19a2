"""One membership core on a stage: what arrives, and what it must ask for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import TypeVar

from smg_mesh.config import PROFILES, SwimOptions
from smg_mesh.swim.effects import (
    Effect,
    Note,
    OpenExchange,
    SendDatagram,
    SetTimer,
    StreamAnswer,
    StreamPing,
    Timer,
)
from smg_mesh.swim.messages import (
    NO_DIGEST,
    Ack,
    Address,
    Claim,
    Gossip,
    Hello,
    Message,
    Nack,
    News,
    Packet,
    Ping,
    PingRequest,
    Rank,
)
from smg_mesh.swim.swim_core import Identity, Swim
from smg_mesh.swim.wire import decode, encode, sender_tag

LAN = PROFILES["lan"]
ME = Address("10.0.0.1", 7946)
E = TypeVar("E", bound=Effect)
M = TypeVar("M", bound=Message)


@dataclass
class Actor:
    """Somebody else, played by the test. It answers pings while it is `well`."""

    name: str
    address: Address
    boot: int = 1
    incarnation: int = 0
    well: bool = True

    def claim(
        self, rank: Rank = Rank.ALIVE, *, accuser: str = "", incarnation: int | None = None
    ) -> Claim:
        """Return a claim about this member, as a packet carries it."""
        raised = self.incarnation if incarnation is None else incarnation
        if rank is Rank.ALIVE:
            return Claim(self.name, self.boot, raised, rank, self.address, b"m")
        return Claim(self.name, self.boot, raised, rank, accuser=accuser)

    def row(self, rank: Rank, *, accuser: str = "") -> Claim:
        """Return a claim about this member, as an exchange carries it."""
        address, meta = self.address, b"m"
        return Claim(self.name, self.boot, self.incarnation, rank, address, meta, accuser)

    def says(
        self,
        message: Message | None = None,
        *,
        rumors: Sequence[Claim] = (),
        news: Sequence[News] = (),
        digest: bytes = NO_DIGEST,
    ) -> bytes:
        """Return a clear packet of this member's."""
        packet = Packet(
            sender_tag(self.name),
            self.boot,
            self.incarnation,
            digest,
            message or Gossip(),
            tuple(rumors),
            tuple(news),
        )
        return encode(packet)


@dataclass
class Stage:
    """The core under test, its clock and its timers."""

    options: SwimOptions = LAN
    seed: int = 1
    boot: int = 100
    name: str = "me"
    now_ms: int = 10_000
    tcp: bool | None = False
    """How pings over TCP end; None: not at all."""
    actors: dict[Address, Actor] = field(default_factory=dict)
    asked: list[Effect] = field(default_factory=list)
    """All it asked for since the last `clear`."""

    def __post_init__(self) -> None:
        identity = Identity(self.name, ME, self.boot, b"mine")
        self.swim = Swim(identity, self.options, Random(self.seed))
        self._timers: list[tuple[int, int, Timer]] = []
        self._count = 0
        self.did(self.swim.start(now_ms=self.now_ms))

    def clear(self) -> None:
        """Forget what was asked for."""
        self.asked = []

    def did(self, effects: list[Effect]) -> list[Effect]:
        """Take note of effects; their timers will fire."""
        self.asked += effects
        for effect in effects:
            if isinstance(effect, SetTimer):
                self._count += 1
                heappush(self._timers, (effect.due_ms, self._count, effect.timer))
        return effects

    # ── What happens ─────────────────────────────────────────────────────────

    def meet(self, *names: str) -> list[Actor]:
        """Let members say hello."""
        met = []
        for name in names:
            actor = Actor(name, Address(f"10.0.1.{len(self.actors) + 1}", 7946))
            self.actors[actor.address] = actor
            self.hear(actor, Hello(actor.claim(), False), digest=self.digest16())
            met.append(actor)
        for actor in met:
            self.converse(actor.name)
        return met

    def converse(self, name: str, rows: Sequence[Claim] = (), *, ok: bool = True) -> list[Effect]:
        """Let an exchange with that member bring rows and end."""
        effects = self.did(self.swim.handle_rows(rows, now_ms=self.now_ms))
        return effects + self.did(self.swim.handle_exchange_end(name, ok=ok, now_ms=self.now_ms))

    def digest16(self) -> bytes:
        """Return the digests a peer carries that agrees with us."""
        return self.swim.digest() + bytes(8)

    def hear(
        self,
        actor: Actor,
        message: Message | None = None,
        *,
        rumors: Sequence[Claim] = (),
        news: Sequence[News] = (),
        digest: bytes | None = None,
        sender: Address | None = None,
    ) -> list[Effect]:
        """Let a packet of that member arrive; its digests agree with ours unless given."""
        data = actor.says(message, rumors=rumors, news=news, digest=digest or self.digest16())
        where = sender or actor.address
        return self.did(self.swim.handle_datagram(data, where, now_ms=self.now_ms))

    def run(self, span_ms: int) -> None:
        """Let time pass; members that are well answer pings a millisecond later."""
        end_ms = self.now_ms + span_ms
        while self._timers and self._timers[0][0] <= end_ms:
            due_ms, _, timer = heappop(self._timers)
            self.now_ms = max(self.now_ms, due_ms)
            self._answer(self.did(self.swim.handle_timer(timer, now_ms=self.now_ms)))
        self.now_ms = end_ms

    def sleep(self, span_ms: int) -> list[Effect]:
        """Let time pass without the core noticing, then tell it that it stalled."""
        self.now_ms += span_ms
        return self.did(self.swim.handle_stall(span_ms, now_ms=self.now_ms))

    def _answer(self, effects: list[Effect]) -> None:
        for to, ping in messages(effects, Ping):
            actor = self.actors.get(to)
            if actor is not None and actor.well and ping.target == actor.name:
                self.now_ms += 1
                self.hear(actor, Ack(ping.nonce))
        for to, request in messages(effects, PingRequest):
            relay = self.actors.get(to)
            if relay is not None and relay.well:
                self.hear(relay, Nack(request.nonce))
        for asked in of(effects, StreamPing) if self.tcp is not None else []:
            done = self.swim.handle_stream_ping
            answer = StreamAnswer.HERE if self.tcp else StreamAnswer.SILENT
            self.did(done(asked.nonce, answer=answer, now_ms=self.now_ms))

    # ── What it asked for ────────────────────────────────────────────────────

    def rank(self, name: str) -> Rank | None:
        """Return the state of a name."""
        member = self.swim.member(name)
        return None if member is None else member.rank

    def of(self, kind: type[E]) -> list[E]:
        """Return the effects of one kind since the last `clear`."""
        return of(self.asked, kind)

    def sent(self, kind: type[M], to: Address | None = None) -> list[M]:
        """Return the messages of one kind since the last `clear`."""
        return [message for where, message in messages(self.asked, kind) if to in (None, where)]

    def notes(self, name: str, detail: str | None = None) -> int:
        """Return what was counted under a name since the last `clear`."""
        return sum(
            note.value
            for note in of(self.asked, Note)
            if note.name == name and detail in (None, note.detail)
        )

    def exchanges(self) -> list[tuple[str, str]]:
        """Return with whom exchanges were asked for since the last `clear`, and why."""
        return [(effect.name, effect.why) for effect in self.of(OpenExchange)]

    def spread(self) -> list[Claim]:
        """Return the claims that rode on packets since the last `clear`."""
        return [claim for packet in packets(self.asked) for claim in packet.rumors]

    def until(self, true: Callable[[], bool], limit_ms: int) -> int:
        """Let time pass in steps of 10 ms until it is `true`; return how much did."""
        start_ms = self.now_ms
        while not true():
            assert self.now_ms - start_ms < limit_ms, "it did not become true in time"
            self.run(10)
        return self.now_ms - start_ms


def of(effects: Iterable[Effect], kind: type[E]) -> list[E]:
    """Return the effects of one kind."""
    return [effect for effect in effects if isinstance(effect, kind)]


def packets(effects: Iterable[Effect]) -> list[Packet]:
    """Return the packets that were asked for."""
    return [decode(effect.packet) for effect in of(effects, SendDatagram)]


def messages(effects: Iterable[Effect], kind: type[M]) -> list[tuple[Address, M]]:
    """Return the messages of one kind that were asked for, and where to."""
    found: list[tuple[Address, M]] = []
    for effect in of(effects, SendDatagram):
        message = decode(effect.packet).message
        if isinstance(message, kind):
            found.append((effect.to, message))
    return found


__all__ = ["LAN", "ME", "Actor", "Rank", "Stage", "messages", "of", "packets"]
