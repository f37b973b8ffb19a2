"""SWIM core: which nodes are alive, as a function from a datagram or a timer to effects.

`Swim` has no clock, no socket and no task. Each input takes the time and returns, in order, all that is
to be done; between two inputs nothing happens. The parts and who owns what:

    member_table       the table                member_updates      the door to the table
    prober             one member at a time     running_suspicions  doubts, and their end
    indirect_probes    probes for others        announcer           what subscribers hear
    exchange_schedule  anti-entropy: when       partition_healing   looks at the dead
    self_refutation    claims about this node   name_conflict       two processes, one name
    local_health       is this node slow?       leave               goodbye
    packet_sender      this node's own claim, rumors, and the effects

    packet_receiver    what a packet means      core_parts          how all of them are wired

Theory: SWIM (DSN 2002) with Lifeguard (2018), and what else keeps the healthy alive: a newer
incarnation begins a doubt afresh, every packet is a claim, the doubted are reminded, no member dies
without a last chance, and a node whose own loop stalled accuses no member.
"""

from collections.abc import Callable, Sequence
from typing import Final

from smg_mesh.config import META_BYTES_MAX, SwimOptions
from smg_mesh.swim.core_parts import Parts
from smg_mesh.swim.detection.prober import Failed
from smg_mesh.swim.dissemination.packet_sender import Identity
from smg_mesh.swim.effects import (
    Effect,
    ExchangeReason,
    Isolated,
    Member,
    Rng,
    StreamAnswer,
    Timer,
)
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.swim.packet_receiver import PacketReceiver
from smg_mesh.swim.rate_limits import Bucket
from smg_mesh.swim.wire import WireError, decode

__all__ = ["Identity", "Swim"]

JOINING_FACTOR: Final = 4
"""Who learns so many times more names than it knew is joining, and has no news for the others."""
STALL_EXCHANGES: Final = 2


class Swim:
    """Member table of one node, and everything that keeps it true."""

    def __init__(self, me: Identity, options: SwimOptions, rng: Rng) -> None:
        parts = self._parts = Parts(me, options, rng)
        self._voice = parts.voice
        self._members = parts.members
        self._listener = PacketReceiver(parts)
        self._accusations = Bucket(options.accusations_per_s, options.accusations_burst, now_ms=0)
        self._isolated = False
        self._started_ms = 0
        self._timers: dict[str, Callable[[Timer, int], None]] = {
            "probe": self._on_probe,
            "direct": lambda timer, now_ms: parts.prober.direct_over(timer.token, now_ms=now_ms),
            "nack": lambda timer, now_ms: parts.relays.silence(timer.token),
            "doubt": self._on_doubt,
            "hold": self._on_hold,
            "gossip": self._on_gossip,
            "exchange": lambda timer, now_ms: parts.exchanges.tick(timer.token, now_ms=now_ms),
            "heal": lambda timer, now_ms: parts.healer.tick(timer.token, now_ms=now_ms),
            "namesake": lambda timer, now_ms: parts.namesake.tick(timer.token, now_ms=now_ms),
            "farewell": lambda timer, now_ms: parts.farewell.tick(now_ms=now_ms),
        }

    # ── What happens to it ───────────────────────────────────────────────────

    def start(self, *, now_ms: int) -> list[Effect]:
        """Set the first timers."""
        self._started_ms = now_ms
        self._parts.prober.start(now_ms=now_ms)
        self._parts.exchanges.start(now_ms=now_ms)
        self._parts.healer.start(now_ms=now_ms)
        self._voice.spread(self._voice.claim, now_ms=now_ms)
        return self._asked()

    def handle_datagram(self, data: bytes, sender: Address, *, now_ms: int) -> list[Effect]:
        """Take an opened packet; what is none is counted and has no other effect."""
        if self._voice.silent:
            return []
        try:
            packet = decode(data)
        except WireError:
            self._voice.note("refused", detail="wire")
        else:
            self._listener.packet(packet, sender, now_ms=now_ms)
        return self._asked()

    def handle_timer(self, timer: Timer, *, now_ms: int) -> list[Effect]:
        """Do what is due; a stale or unknown timer does nothing."""
        act = self._timers.get(timer.kind)
        if act is None or self._voice.silent:
            return []
        act(timer, now_ms)
        return self._asked()

    def is_stale(self, timer: Timer) -> bool:
        """Return whether the timer is known to do nothing when it is due, so
        that no wake-up is needed for it.

        False says nothing: a stale timer that is handed back does no harm.
        """
        return timer.kind == "direct" and self._parts.prober.is_answered(timer.token)

    def handle_stall(self, lag_ms: int, *, now_ms: int) -> list[Effect]:
        """Learn that this node slept for `lag_ms`: what it missed is no other member's fault."""
        parts, voice = self._parts, self._voice
        if lag_ms <= parts.prober.stall_ms or voice.silent or voice.leaving:
            return []
        voice.note("stall")
        voice.note("stall_ms", lag_ms)
        parts.health.stalled()
        parts.doubts.stalled(now_ms=now_ms)
        parts.announcer.stalled()
        parts.prober.stalled(now_ms=now_ms)
        if lag_ms > parts.doubts.base_ms:
            # We are probably suspected: refute before being asked.
            parts.defence.speak_up(now_ms=now_ms)
            parts.exchanges.ask_random(STALL_EXCHANGES, "stall", now_ms=now_ms)
        return self._asked()

    def handle_stream_ping(self, nonce: int, *, answer: StreamAnswer, now_ms: int) -> list[Effect]:
        """Take the end of a ping over TCP."""
        parts = self._parts
        asked = parts.streams.end(nonce)
        if asked is None or answer is StreamAnswer.SILENT or self._voice.silent:
            return []
        if answer is StreamAnswer.NOBODY and asked.question == "namesake":
            parts.namesake.refused(nonce)
        elif answer is StreamAnswer.NOBODY:
            parts.prober.stream_refused(nonce)
        elif asked.question == "probe":
            parts.prober.stream_answer(nonce)
        elif asked.question == "namesake":
            parts.namesake.answered(nonce)
        elif (row := self._members.rows.get(asked.name)) is not None:
            parts.doubts.spare(row, nonce, now_ms=now_ms)
        return self._asked()

    def handle_rows(self, rows: Sequence[Claim], *, now_ms: int) -> list[Effect]:
        """Take rows that a peer sent in an exchange."""
        if self._voice.silent:
            return []
        known = self._members.rows
        news = sum(claim.name not in known for claim in rows)
        spread = news <= JOINING_FACTOR * self._members.count
        for claim in rows:
            self._listener.hear(claim, "exchange", now_ms=now_ms, spread=spread)
        return self._asked()

    def handle_exchange_end(self, name: str, *, ok: bool, now_ms: int) -> list[Effect]:
        """Learn that the exchange with that member is over."""
        self._parts.exchanges.end(name, ok=ok, now_ms=now_ms)
        return self._asked()

    # ── What it is told to do ────────────────────────────────────────────────

    def greet(self, addresses: Sequence[Address], *, now_ms: int) -> list[Effect]:
        """Say hello to addresses where members may listen; one that answers becomes a member."""
        if not (self._voice.silent or self._voice.leaving):
            for address in addresses:
                if address != self._voice.address:
                    self._voice.introduce(address, answer=True)
        return self._asked()

    def change_meta(self, meta: bytes, *, now_ms: int) -> list[Effect]:
        """Change what all are told about this node; at most 512 bytes."""
        assert len(meta) <= META_BYTES_MAX
        voice = self._voice
        if meta != voice.meta and not voice.leaving:
            voice.meta = meta
            self._parts.defence.speak_up(now_ms=now_ms)
        return self._asked()

    def change_address(self, address: Address, *, now_ms: int) -> list[Effect]:
        """Tell all that this node listens at another address."""
        voice = self._voice
        if address != voice.address and not voice.leaving:
            voice.address = address
            self._parts.defence.speak_up(now_ms=now_ms)
        return self._asked()

    def say(self, kind: str, key: str, content: bytes, *, now_ms: int) -> list[Effect]:
        """Spread news of this node's own; later ones of the same kind and key replace them."""
        if not self._voice.silent:
            self._voice.say(kind, key, content, now_ms=now_ms)
        return self._asked()

    def leave(self, *, now_ms: int) -> list[Effect]:
        """Say goodbye; `farewell_over` tells when all can have heard it."""
        if not self._voice.silent:
            self._parts.farewell.begin(now_ms=now_ms)
        return self._asked()

    def forget(self, name: str, *, now_ms: int) -> list[Effect]:
        """Drop a row of the dead; KeyError if there is none, ValueError if it is not gone."""
        self._members.forget(name)
        self._voice.rumors.forget(name)
        self._voice.note("forgotten")
        return self._asked()

    def converse(
        self, why: ExchangeReason, *, count: int = 1, name: str = "", now_ms: int
    ) -> list[Effect]:
        """Ask for exchanges with `count` random members, or with the one of that name if it is present."""
        if not (self._voice.silent or self._voice.leaving):
            row = self._members.rows.get(name)
            if row is not None and row.present:
                self._parts.exchanges.ask(row, why, now_ms=now_ms)
            else:
                self._parts.exchanges.ask_random(count, why, now_ms=now_ms)
        return self._asked()

    def set_document_digest(self, digest: bytes) -> None:
        """Say what the documents are; 8 bytes."""
        self._voice.set_document_digest(digest)

    # ── Timers that lead further ─────────────────────────────────────────────

    def _on_probe(self, timer: Timer, now_ms: int) -> None:
        if self._voice.leaving:
            return
        failed = self._parts.prober.cycle(timer.token, now_ms=now_ms)
        if failed is not None:
            self._accuse(failed, now_ms=now_ms)

    def _on_doubt(self, timer: Timer, now_ms: int) -> None:
        row = self._members.rows.get(timer.subject)
        if row is not None and self._parts.doubts.tick(row, timer.token, now_ms=now_ms):
            self._bury(row, now_ms=now_ms)

    def _on_hold(self, timer: Timer, now_ms: int) -> None:
        row = self._members.rows.get(timer.subject)
        if row is not None:
            self._parts.announcer.tick(row, timer.token, now_ms=now_ms)

    def _on_gossip(self, timer: Timer, now_ms: int) -> None:
        self._voice.gossip(timer.token, now_ms=now_ms)
        self._parts.farewell.look(now_ms=now_ms)

    def _accuse(self, failed: Failed, *, now_ms: int) -> None:
        """Raise or confirm a doubt about a member that a probe of ours did not reach."""
        row, voice = failed.row, self._voice
        if self._parts.health.isolated:
            voice.note("accusation_withheld", detail="isolated")
            return
        if row.suspicion is None or row.suspicion.open_to(voice.name):
            if not self._accusations.take(now_ms=now_ms):
                voice.note("accusation_withheld", detail="rate")
                return
            voice.note("accusation_sent")
            claim = Claim(
                row.name, failed.boot, failed.incarnation, Rank.SUSPECT, accuser=voice.name
            )
            self._parts.claims.hear(claim, "own", now_ms=now_ms)
        if failed.refused:
            self._parts.doubts.hasten(row, now_ms=now_ms)

    def _bury(self, row: Row, *, now_ms: int) -> None:
        """Declare a member dead, unless this node is cut off or leaving."""
        if self._parts.health.isolated or self._voice.leaving:
            self._parts.doubts.restart(row, now_ms=now_ms)
            return
        claim = Claim(row.name, row.boot, row.incarnation, Rank.DEAD, accuser=self._voice.name)
        self._parts.claims.hear(claim, "own", now_ms=now_ms)

    def _asked(self) -> list[Effect]:
        """Hand out what the parts asked for."""
        out = self._voice.out
        if self._parts.health.isolated != self._isolated:
            self._isolated = self._parts.health.isolated
            out.append(Isolated(self._isolated))
        self._voice.out = []
        return out

    # ── What it knows ────────────────────────────────────────────────────────

    def rows(self) -> list[Claim]:
        """Return the whole table, this node and the gone included, ordered by name, in full."""
        claims = [self._voice.claim, *self._members.claims()]
        claims.sort(key=lambda claim: claim.name)
        return claims

    def members(self) -> list[Member]:
        """Return all rows as others may see them: this node first, then ordered by name."""
        rows = self._members.rows
        known = [rows[name] for name in sorted(rows)]
        return [self._myself(), *(row.member() for row in known if row.address is not None)]

    def member(self, name: str) -> Member | None:
        """Return one row, or None if that name is unknown or only heard of."""
        if name == self._voice.name:
            return self._myself()
        row = self._members.rows.get(name)
        return None if row is None or row.address is None else row.member()

    def name_of(self, tag: bytes) -> str | None:
        """Return the name that a packet's tag stands for; None if no such member is known."""
        row = self._members.tags.get(tag)
        return None if row is None else row.name

    def _myself(self) -> Member:
        voice = self._voice
        return Member(
            voice.name,
            voice.address,
            voice.boot,
            voice.incarnation,
            voice.rank,
            voice.meta,
            self._started_ms,
            None,
            None,
            True,
            "",
        )

    def digest(self) -> bytes:
        """Return the 8 bytes over the members that packets carry."""
        return self._voice.member_digest

    @property
    def name(self) -> str:
        """This node's name."""
        return self._voice.name

    @property
    def boot(self) -> int:
        """This life of this node."""
        return self._voice.boot

    @property
    def incarnation(self) -> int:
        """How often this life had to speak up."""
        return self._voice.incarnation

    @property
    def address(self) -> Address:
        """Where this node listens."""
        return self._voice.address

    @property
    def meta(self) -> bytes:
        """What this node tells about itself."""
        return self._voice.meta

    @property
    def health_score(self) -> int:
        """0 (well) to 7."""
        return self._parts.health.score

    @property
    def isolated(self) -> bool:
        """Whether this node believes that it is the one cut off."""
        return self._isolated

    @property
    def superseded(self) -> bool:
        """Whether this node stepped down: another process keeps its name."""
        return self._voice.silent

    @property
    def farewell_over(self) -> bool:
        """Whether the goodbye was said often enough, or for a second."""
        return self._parts.farewell.over
