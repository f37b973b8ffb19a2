"""Packet receiver: takes a packet apart, and does what its rumors, header and question mean.

It is heard in this order: its rumors, then its header (a claim at first hand: that boot and incarnation
are alive), then its question. A packet of an earlier life has no effect but that its sender is told.
A sender whose name or boot is unknown here is heard as well, and asked who it is.
"""

from typing import Final

from smg_mesh.swim.core_parts import Parts
from smg_mesh.swim.effects import NewsReceived
from smg_mesh.swim.member_updates import Source
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.messages import (
    Accusation,
    Ack,
    Address,
    Claim,
    Hello,
    Nack,
    Packet,
    Ping,
    PingRequest,
    Rank,
)
from smg_mesh.swim.rate_limits import OncePer

STRANGER_SPAN_MS: Final = 1_000
"""An address we do not know is asked who it is at most once in that time."""
_TOLD_EXCHANGE_SPAN_MS: Final = 1_000
"""Being told by many starts at most one exchange in that time."""


class PacketReceiver:
    """Takes packets that were opened and read."""

    def __init__(self, parts: Parts) -> None:
        self._voice = parts.voice
        self._members = parts.members
        self._parts = parts
        self._strangers: OncePer[Address] = OncePer(STRANGER_SPAN_MS)
        self._told: OncePer[str] = OncePer(_TOLD_EXCHANGE_SPAN_MS)

    def hear(self, claim: Claim, source: Source, *, now_ms: int, spread: bool = True) -> None:
        """Take a claim about any name."""
        if claim.name == self._voice.name:
            self._parts.defence.hear(claim, now_ms=now_ms)
        else:
            self._parts.claims.hear(claim, source, now_ms=now_ms, spread=spread)

    def packet(self, packet: Packet, sender: Address, *, now_ms: int) -> None:
        """Take a packet that came from `sender`."""
        if packet.sender == self._voice.tag:
            self._namesake(packet, sender, now_ms=now_ms)
            return
        row = self._members.tags.get(packet.sender)
        if row is not None and packet.boot < row.boot:
            self._parts.healer.tell(row, sender, now_ms=now_ms)
            return
        if packet.rumors or packet.news:
            self._rumors(packet, now_ms=now_ms)
        message = packet.message
        if type(message) is Hello and not self._hello(packet, message, sender, now_ms=now_ms):
            return
        row = self._members.tags.get(packet.sender)
        if row is not None and row.boot == packet.boot:
            self._first_hand(row, packet, sender, now_ms=now_ms)
        elif row is None or row.boot < packet.boot:
            self._ask_who(sender, now_ms=now_ms)
        self._message(packet, row, sender, now_ms=now_ms)

    def _rumors(self, packet: Packet, *, now_ms: int) -> None:
        for claim in packet.rumors:
            self.hear(claim, "rumor", now_ms=now_ms)
        for news in packet.news:
            if self._voice.hear(news, now_ms=now_ms) and news.origin != self._voice.name:
                self._voice.out.append(NewsReceived(news))

    def _message(self, packet: Packet, row: Row | None, sender: Address, *, now_ms: int) -> None:
        message = packet.message
        if type(message) is Ping:
            self._ping(message, sender, now_ms=now_ms)
        elif type(message) is Ack:
            self._ack(message.nonce, packet.sender, row, now_ms=now_ms)
        elif type(message) is PingRequest:
            self._relay(message, sender, now_ms=now_ms)
        elif type(message) is Nack:
            self._parts.prober.nack(message.nonce, packet.sender)
        elif type(message) is Accusation:
            self._told_of(message.claim, row, sender, now_ms=now_ms)

    # ── The header ───────────────────────────────────────────────────────────

    def _first_hand(self, row: Row, packet: Packet, sender: Address, *, now_ms: int) -> None:
        row.heard_ms = now_ms
        if packet.incarnation > row.incarnation:
            claim = Claim(row.name, packet.boot, packet.incarnation, Rank.ALIVE)
            self._parts.claims.hear(claim, "itself", now_ms=now_ms)
        if not row.present:
            # Held gone, it is told so; else it is a name without an address, and asked for one.
            if row.rank.gone:
                self._parts.healer.tell(row, sender, now_ms=now_ms)
            else:
                self._ask_who(sender, now_ms=now_ms)
            return
        if row.rank is Rank.SUSPECT:
            self._parts.healer.tell(row, sender, now_ms=now_ms)
        if not row.detailed:
            self._ask_who(sender, now_ms=now_ms)
        self._parts.exchanges.compare(row, packet.digest, now_ms=now_ms)

    def _ask_who(self, sender: Address, *, now_ms: int) -> None:
        if not self._voice.leaving and self._strangers.take(sender, now_ms=now_ms):
            self._voice.note("stranger")
            self._voice.introduce(sender, answer=True)

    def _namesake(self, packet: Packet, sender: Address, *, now_ms: int) -> None:
        """Take a packet of a process with our name: this one, an earlier or a later life."""
        voice, message = self._voice, packet.message
        if packet.boot == voice.boot:
            voice.note("echo")
        elif packet.boot < voice.boot:
            if type(message) is Ping and (message.target, message.target_boot) == (
                voice.name,
                voice.boot,
            ):
                voice.send(sender, Ack(message.nonce))
            else:
                self._parts.defence.tell_older(sender, now_ms=now_ms)
        elif type(message) is not Ack or not self._parts.namesake.answered(message.nonce):
            claim = Claim(voice.name, packet.boot, packet.incarnation, Rank.ALIVE)
            if not voice.leaving:
                self._parts.namesake.heard_of(claim, sender, now_ms=now_ms)

    # ── The question ─────────────────────────────────────────────────────────

    def _hello(self, packet: Packet, hello: Hello, sender: Address, *, now_ms: int) -> bool:
        """Meet the sender; False if the greeting is not about its own header."""
        claim = hello.claim
        if (claim.boot, claim.incarnation) != (packet.boot, packet.incarnation):
            self._voice.note("refused", detail="hello")
            return False
        row = self._members.rows.get(claim.name)
        met = row is None or not row.present
        self.hear(claim, "itself", now_ms=now_ms)
        if hello.answer:
            self._voice.introduce(sender, answer=False)
        row = self._members.rows.get(claim.name)
        if met and not hello.answer and row is not None and row.present:
            self._answered(row, packet.digest, now_ms=now_ms)
        return True

    def _answered(self, row: Row, digest: bytes, *, now_ms: int) -> None:
        """Converse with a newly met member that answered our greeting, if it can know anything else."""
        exchanges = self._parts.exchanges
        if digest != self._voice.digest or not exchanges.talked:
            exchanges.ask(row, "join", now_ms=now_ms)

    def _ping(self, ping: Ping, sender: Address, *, now_ms: int) -> None:
        voice = self._voice
        if ping.target != voice.name:
            voice.note("misdirected", detail="name")
            return
        if ping.claim is not None and ping.claim.name == voice.name:
            self._parts.defence.hear(ping.claim, now_ms=now_ms)
        if ping.target_boot == voice.boot:
            voice.send(sender, Ack(ping.nonce))
        else:
            voice.note("misdirected", detail="boot")
            self._parts.defence.answer(sender, now_ms=now_ms)

    def _ack(self, nonce: int, tag: bytes, row: Row | None, *, now_ms: int) -> None:
        parts = self._parts
        if parts.prober.ack(nonce, tag, now_ms=now_ms) or parts.relays.ack(nonce, tag):
            return
        if row is not None and not parts.doubts.spare(row, nonce, now_ms=now_ms):
            parts.announcer.ack(row, nonce)

    def _relay(self, request: PingRequest, asker: Address, *, now_ms: int) -> None:
        if self._voice.leaving or request.target == self._voice.name:
            return
        row = self._members.rows.get(request.target)
        ceiling_ms = self._voice.options.probe_timeout_ms
        claim, wait_ms = None, ceiling_ms
        if row is not None and row.boot == request.target_boot:
            claim, wait_ms = row.doubt, row.trips.wait_ms(ceiling_ms)
        self._parts.relays.relay(asker, request, claim, wait_ms, now_ms=now_ms)

    def _told_of(self, claim: Claim, row: Row | None, sender: Address, *, now_ms: int) -> None:
        """Hear what is held against us; answer, and converse with a member that held us dead."""
        voice = self._voice
        if claim.name != voice.name or voice.leaving:
            return
        voice.note("told_self", detail=claim.rank.name.lower())
        self._parts.defence.hear(claim, now_ms=now_ms)
        if claim.boot <= voice.boot:
            self._parts.defence.answer(sender, now_ms=now_ms)
        dead = claim.rank is Rank.DEAD and claim.boot == voice.boot
        if dead and row is not None and row.present and self._told.take("", now_ms=now_ms):
            self._parts.exchanges.ask(row, "told", now_ms=now_ms)
