"""A simple core for tests of the simulator: everybody greets everybody, and silence is death."""

from collections.abc import Sequence
from typing import Final

from smg_mesh.config import SwimOptions
from smg_mesh.swim.effects import (
    Effect,
    ExchangeReason,
    Member,
    MemberDown,
    MemberUp,
    Note,
    OpenExchange,
    Rng,
    SendDatagram,
    SetTimer,
    StreamAnswer,
    StreamPing,
    Timer,
)
from smg_mesh.swim.messages import NO_DIGEST, Address, Claim, Hello, Packet, Rank
from smg_mesh.swim.wire import WireError, decode, encode, sender_tag

BEAT_MS: Final = 500
SILENCE_MS: Final = 2_000


class FakeCore:
    """Enough of a core to move packets, timers, exchanges and announcements. `heard` is what came."""

    def __init__(
        self, name: str, address: Address, boot: int, meta: bytes, options: SwimOptions, rng: Rng
    ) -> None:
        self.name = name
        self.address = address
        self.boot = boot
        self.incarnation = 0
        self.isolated = False
        self.farewell_over = True
        self.rng = rng
        self.meta = meta
        self.table: dict[str, Claim] = {}
        self.heard_ms: dict[str, int] = {}
        self.heard: list[tuple[int, str, object]] = []

    @property
    def me(self) -> Claim:
        return Claim(self.name, self.boot, self.incarnation, Rank.ALIVE, self.address, self.meta)

    def start(self, *, now_ms: int) -> list[Effect]:
        return [SetTimer(Timer("beat", "", 1), now_ms + BEAT_MS)]

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        self.heard.append((now_ms, "datagram", len(data)))
        try:
            packet = decode(data)
        except WireError:
            return [Note("refused", detail="wire")]
        assert isinstance(packet.message, Hello)
        claim = packet.message.claim
        effects = self.merge(claim, now_ms=now_ms)
        if packet.message.answer:
            effects.append(self.hello(sender, answer=False))
        return effects

    def merge(self, claim: Claim, *, now_ms: int) -> list[Effect]:
        if claim.name == self.name:
            return []
        known = self.table.get(claim.name)
        if claim.rank is Rank.ALIVE:
            self.heard_ms[claim.name] = now_ms
        if known is not None and claim.order <= known.order:
            return []
        self.table[claim.name] = claim
        came = known is None or known.rank.gone
        return [MemberUp(self.shown(claim), known is not None)] if came else []

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        self.heard.append((now_ms, "timer", timer))
        effects: list[Effect] = [SetTimer(timer, now_ms + BEAT_MS)]
        for name, claim in self.table.items():
            if claim.rank.gone:
                continue
            assert claim.address is not None
            effects.append(self.hello(claim.address, answer=False))
            if now_ms - self.heard_ms[name] > SILENCE_MS:
                dead = Claim(name, claim.boot, claim.incarnation, Rank.DEAD, claim.address, b"")
                self.table[name] = dead
                effects.append(MemberDown(self.shown(dead), "silence"))
        return effects

    def hello(self, to: Address, *, answer: bool) -> SendDatagram:
        message = Hello(self.me, answer)
        packet = Packet(sender_tag(self.name), self.boot, self.incarnation, NO_DIGEST, message)
        return SendDatagram(to, encode(packet))

    def handle_stall(self, lag_ms: int, *, now_ms: int) -> list[Effect]:
        self.heard.append((now_ms, "stall", lag_ms))
        for name in self.heard_ms:
            self.heard_ms[name] = now_ms
        return []

    def handle_stream_ping(self, nonce: int, *, answer: StreamAnswer, now_ms: int) -> list[Effect]:
        self.heard.append((now_ms, "stream-ping", (nonce, answer)))
        return []

    def handle_rows(self, rows: Sequence[Claim], *, now_ms: int) -> list[Effect]:
        self.heard.append((now_ms, "rows", len(rows)))
        return [effect for claim in rows for effect in self.merge(claim, now_ms=now_ms)]

    def handle_exchange_end(self, name: str, *, ok: bool, now_ms: int) -> list[Effect]:
        self.heard.append((now_ms, "exchange-end", (name, ok)))
        return []

    def greet(self, addresses: Sequence[Address], *, now_ms: int) -> list[Effect]:
        return [self.hello(address, answer=True) for address in addresses]

    def change_meta(self, meta: bytes, *, now_ms: int) -> list[Effect]:
        self.meta = meta
        self.incarnation += 1
        return []

    def change_address(self, address: Address, *, now_ms: int) -> list[Effect]:
        self.address = address
        self.incarnation += 1
        return []

    def say(self, kind: str, key: str, content: bytes, *, now_ms: int) -> list[Effect]:
        return [Note("said")]

    def converse(
        self, why: ExchangeReason, *, count: int = 1, name: str = "", now_ms: int
    ) -> list[Effect]:
        self.heard.append((now_ms, "converse", (why, count, name)))
        return []

    def set_document_digest(self, digest: bytes) -> None:
        pass

    def leave(self, *, now_ms: int) -> list[Effect]:
        return []

    def ask(self, what: type[StreamPing] | type[OpenExchange], other: "FakeCore") -> Effect:
        """Return an effect that a test can let this core ask for."""
        if what is StreamPing:
            return StreamPing(other.name, other.boot, other.address, 7, 1_000)
        return OpenExchange(other.name, other.address, "periodic")

    def rows(self) -> list[Claim]:
        table = self.table | {self.name: self.me}
        return [table[name] for name in sorted(table)]

    def members(self) -> list[Member]:
        others = [claim for claim in self.rows() if claim.name != self.name]
        return [self.shown(self.me), *(self.shown(claim) for claim in others)]

    def member(self, name: str) -> Member | None:
        claim = self.me if name == self.name else self.table.get(name)
        return None if claim is None else self.shown(claim)

    def shown(self, claim: Claim) -> Member:
        assert claim.address is not None
        return Member(
            claim.name,
            claim.address,
            claim.boot,
            claim.incarnation,
            claim.rank,
            claim.meta or b"",
            0,
            None,
            None,
            True,
            "",
        )

    def digest(self) -> bytes:
        living = [row for row in self.rows() if not row.rank.gone]
        return sender_tag(repr([(row.name, row.boot, row.incarnation) for row in living]))
