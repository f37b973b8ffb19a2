"""Packet sender: this node's own claim, and the effects it asks for:
packets with rumors, timers, notes.
"""

from dataclasses import dataclass
from typing import Final

from smg_mesh.config import META_BYTES_MAX, SwimOptions
from smg_mesh.swim.boot_numbers import BOOT_MAX
from smg_mesh.swim.dissemination.rumors import Rumors
from smg_mesh.swim.effects import Effect, Note, Rng, SendDatagram, SetTimer, Timer
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.members.member_table import Members, digest_piece
from smg_mesh.swim.messages import Address, Claim, Gossip, Hello, Message, News, Packet, Rank
from smg_mesh.swim.random_draws import sample
from smg_mesh.swim.wire import BODY_BYTES_MAX, encode, message_bytes, sender_tag

INCARNATION_MAX: Final = (1 << 32) - 1
_GOSSIP: Final = Gossip()
_NO_MORE: Final = bytes(8)
"""The second half of a packet's digest is not used; zeros cost nothing on the wire."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of this member, given at start."""

    name: str
    address: Address
    boot: int
    meta: bytes = b""


class PacketSender:
    """This node's own claim, its rumors, and the effects of the input at hand."""

    def __init__(self, me: Identity, options: SwimOptions, rng: Rng, members: Members) -> None:
        assert len(me.meta) <= META_BYTES_MAX
        self.name = me.name
        self.tag = sender_tag(me.name)
        self.boot = me.boot
        self.incarnation = 0
        self.rank = Rank.ALIVE
        self.address = me.address
        self.meta = me.meta
        self.options = options
        self.rng = rng
        self.out: list[Effect] = []
        self.silent = False
        """Stepped down: another process has this node's name."""
        self.rumors = Rumors(options)
        self._members = members
        self._documents = 0
        self._own_piece = digest_piece(me.name, me.boot, 0)
        self._digest = b""
        self._digest_of = -1
        self._token = 0
        self._gossip_token = 0
        self._gossip_waits = False
        self._gossiped_ms = -options.gossip_interval_ms
        self._said_seq = 0

    # ── What is asked for ────────────────────────────────────────────────────

    def send(self, to: Address, message: Message) -> None:
        """Ask for a packet, filled up with rumors."""
        claims: tuple[Claim, ...] = ()
        news: tuple[News, ...] = ()
        if self.rumors.waiting():
            left = BODY_BYTES_MAX - message_bytes(message)
            claims, news = self.rumors.take(left, members=self._members.count)
        packet = Packet(self.tag, self.boot, self.incarnation, self.digest, message, claims, news)
        self.out.append(SendDatagram(to, encode(packet)))

    def timer(self, kind: str, due_ms: int, subject: str = "") -> int:
        """Ask for a timer; return its token, which no other timer has."""
        self._token += 1
        self.out.append(SetTimer(Timer(kind, subject, self._token), due_ms))
        return self._token

    def note(self, name: str, value: int = 1, detail: str = "") -> None:
        """Count something."""
        self.out.append(Note(name, value, detail))

    def nonce(self) -> int:
        """Return a number to know an answer by; 32 bits, as nobody without a key can guess."""
        return self.rng.getrandbits(32)

    # ── Who this node is ─────────────────────────────────────────────────────

    @property
    def leaving(self) -> bool:
        """Whether this node has said goodbye."""
        return self.rank is Rank.LEFT

    @property
    def claim(self) -> Claim:
        """This node's own claim, in full."""
        return Claim(self.name, self.boot, self.incarnation, self.rank, self.address, self.meta)

    @property
    def digest(self) -> bytes:
        """What every packet carries: 8 bytes over the members and the documents together.

        Which of the two differs is asked in the exchange that follows; 8 bytes more on every packet
        would be a tenth of an idle node's traffic.
        """
        value = self._members.digest ^ self._own_piece ^ self._documents
        if value != self._digest_of:
            self._digest_of = value
            self._digest = value.to_bytes(8, "big") + _NO_MORE
        return self._digest

    @property
    def member_digest(self) -> bytes:
        """8 bytes over the members alone."""
        return (self._members.digest ^ self._own_piece).to_bytes(8, "big")

    def set_document_digest(self, digest: bytes) -> None:
        """Say from now on that this is what the documents are."""
        assert len(digest) == 8
        self._documents = int.from_bytes(digest, "big")

    def raise_incarnation(self, above: int, *, now_ms: int) -> bool:
        """Take an incarnation larger than `above` and spread it; False if there is none left."""
        wanted = max(self.incarnation, above) + 1
        if wanted > INCARNATION_MAX:
            return False
        self.incarnation = wanted
        self._own_piece = digest_piece(self.name, self.boot, wanted)
        self.spread(self.claim, now_ms=now_ms)
        return True

    def take_boot(self, boot: int, *, now_ms: int) -> None:
        """Go on as a later life."""
        assert self.boot < boot <= BOOT_MAX
        self.boot = boot
        self.incarnation = 0
        self._own_piece = digest_piece(self.name, boot, 0)
        self.spread(self.claim, now_ms=now_ms)

    # ── Rumors ───────────────────────────────────────────────────────────────

    def spread(self, claim: Claim, *, now_ms: int) -> None:
        """Let the claim ride on packets from now on."""
        self.rumors.add(claim, members=self._members.count)
        self.wake_gossip(now_ms=now_ms)

    def say(self, kind: str, key: str, content: bytes, *, now_ms: int) -> News:
        """Spread news of our own; later ones of the same key win, in later lives too."""
        self._said_seq = max(self._said_seq + 1, self.boot)
        news = News(self.name, kind, key, self._said_seq, content)
        self.hear(news, now_ms=now_ms)
        return news

    def hear(self, news: News, *, now_ms: int) -> bool:
        """Spread news; False if they or newer ones were heard before."""
        if not self.rumors.add_news(news):
            return False
        if news.origin == self.name:
            self._said_seq = max(self._said_seq, news.seq)
        self.wake_gossip(now_ms=now_ms)
        return True

    def wake_gossip(self, *, now_ms: int) -> None:
        """Let the gossip timer run while there is something to say and a member to hear it."""
        if self._gossip_waits or self._members.alone or not self.rumors.waiting():
            return
        self._gossip_waits = True
        due_ms = max(now_ms, self._gossiped_ms + self.options.gossip_interval_ms)
        self._gossip_token = self.timer("gossip", due_ms)

    def gossip(self, token: int, *, now_ms: int) -> None:
        """Send rumors to a few random members; the newly dead hear them too."""
        if token != self._gossip_token:
            return
        self._gossip_waits = False
        self._gossiped_ms = now_ms
        audience = self._audience(now_ms=now_ms)
        for row in audience:
            if row.address is not None and self.rumors.waiting():
                self.send(row.address, _GOSSIP)
        if audience:  # Without one, the next member that appears wakes us.
            self.wake_gossip(now_ms=now_ms)

    def _audience(self, *, now_ms: int) -> list[Row]:
        members, nodes = self._members, self.options.gossip_nodes
        chosen = sample(self.rng, members.present, nodes, lambda row: True)
        since_ms = now_ms - self.options.gossip_to_dead_ms
        dead = sample(self.rng, members.dead, 1, lambda row: row.since_ms > since_ms)
        if not dead:
            return chosen
        if len(chosen) < nodes:
            return chosen + dead
        # One of the newly dead takes a member's place as often as is its share of both.
        share = len(members.dead) / (len(members.dead) + len(members.present))
        if self.rng.random() < nodes * share:
            chosen[-1:] = dead
        return chosen

    def introduce(self, to: Address, *, answer: bool) -> None:
        """Tell that address who we are, in full; with `answer`, ask for the same."""
        self.send(to, Hello(self.claim, answer))
