"""Exchange schedule: with which members anti-entropy exchanges are opened, and when; never how.

An exchange begins when a peer's digests differ from ours and still do at its next packet a second
later, when two members meet or meet again, after a long stall, and now and then with a random member,
seldom if it agrees with us.
At most two are in flight, one per peer; a few wait, the rest is not asked for: a difference that
lasts is noticed again.
"""

from typing import Final

from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.effects import ExchangeReason, OpenExchange
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.members.member_table import Members
from smg_mesh.swim.random_draws import jittered, sample

WAITING_MAX: Final = 16
DIFFERS_MS: Final = 1_000
"""A rumor needs less to arrive; what differs longer will not come by itself."""
DIFFERS_FEW_MS: Final = 700
"""The same in a small cluster, where rumors need half a second at most."""
FEW_MAX: Final = 64
"""Members up to which a node that differs from everybody asks the next one at once. One packet of a member
comes every few seconds, so waiting for two of the same would take long; in a large cluster, where somebody
always has just changed, all would ask all the time."""
AGREED_EVERY: Final = 10
"""With a member that agrees only so seldom: digests ride on every packet, and what they do not cover
(rows of the gone, the keyring's version) may wait. An exchange in the quiet costs more than its gossip."""
_LOST_MS: Final = 150_000
"""The end of an exchange that is so late will not come: streams give up after two minutes."""


class Exchanges:
    """Conversations in flight and those that wait."""

    def __init__(self, voice: PacketSender, members: Members) -> None:
        self._voice = voice
        self._members = members
        self._in_flight: dict[str, int] = {}
        self._waiting: dict[str, ExchangeReason] = {}
        self._token = 0
        self._agreed = 0
        self._odd_ms: int | None = None
        """Since when every packet had other digests than ours."""
        self.talked = False
        """Whether an exchange of ours ever came to its end."""

    def start(self, *, now_ms: int) -> None:
        """Set the timer of the exchange with a random member."""
        span_ms = jittered(self._voice.rng, self._voice.options.exchange_interval_ms)
        self._token = self._voice.timer("exchange", now_ms + span_ms)

    def tick(self, token: int, *, now_ms: int) -> None:
        """Converse with a random member, seldom if it agrees with us, and set the timer again."""
        if token != self._token:
            return
        for row in sample(self._voice.rng, self._members.present, 1, lambda row: True):
            self._agreed = self._agreed + 1 if self._agrees(row, now_ms=now_ms) else AGREED_EVERY
            if self._agreed >= AGREED_EVERY:
                self._agreed = 0
                self.ask(row, "periodic", now_ms=now_ms)
        self.start(now_ms=now_ms)

    def _agrees(self, row: Row, *, now_ms: int) -> bool:
        """Whether its last packet, of late, had our digests."""
        if not self.talked or row.heard_ms is None or row.differs_ms is not None:
            return False
        return now_ms - row.heard_ms <= self._voice.options.exchange_interval_ms

    def ask_random(self, count: int, why: ExchangeReason, *, now_ms: int) -> None:
        """Converse with random members."""
        for row in sample(self._voice.rng, self._members.present, count, lambda row: True):
            self.ask(row, why, now_ms=now_ms)

    def ask(self, row: Row, why: ExchangeReason, *, now_ms: int) -> None:
        """Converse with that member, or let it wait for its turn."""
        self._drop_lost(now_ms=now_ms)
        if row.name in self._in_flight or row.name in self._waiting or row.address is None:
            return
        if len(self._in_flight) < self._voice.options.exchanges_in_flight:
            self._open(row, why, now_ms=now_ms)
        elif len(self._waiting) < WAITING_MAX:
            self._waiting[row.name] = why
        else:
            self._voice.note("exchange_dropped")

    def _open(self, row: Row, why: ExchangeReason, *, now_ms: int) -> None:
        assert row.address is not None
        self._in_flight[row.name] = now_ms
        self._voice.note("exchange", detail=why)
        self._voice.out.append(OpenExchange(row.name, row.address, why))

    def end(self, name: str, *, ok: bool, now_ms: int) -> None:
        """Free the place of an exchange that is over, and begin one that waits."""
        if self._in_flight.pop(name, None) is not None and not ok:
            self._voice.note("exchange_failed")
        self.talked |= ok
        self._begin_waiting(now_ms=now_ms)

    def _begin_waiting(self, *, now_ms: int) -> None:
        limit = self._voice.options.exchanges_in_flight
        while self._waiting and len(self._in_flight) < limit:
            name = next(iter(self._waiting))
            why = self._waiting.pop(name)
            row = self._members.rows.get(name)
            if row is not None and row.present:
                self._open(row, why, now_ms=now_ms)

    def _drop_lost(self, *, now_ms: int) -> None:
        lost = [name for name, since in self._in_flight.items() if now_ms - since > _LOST_MS]
        for name in lost:
            self.end(name, ok=False, now_ms=now_ms)

    def compare(self, row: Row, digest: bytes, *, now_ms: int) -> None:
        """Look at the digests of a packet: converse if they differ for a second.

        Those of one member, or those of all that were heard: then it is probably us who missed something.
        """
        if digest == self._voice.digest:
            row.differs_ms = self._odd_ms = None
            return
        if self._odd_ms is None:
            self._odd_ms = now_ms
        if row.differs_ms is None:
            row.differs_ms = now_ms
        if self._members.count <= FEW_MAX:
            lasts = now_ms - min(self._odd_ms, row.differs_ms) >= DIFFERS_FEW_MS
        else:
            lasts = now_ms - row.differs_ms >= DIFFERS_MS
        if lasts:
            row.differs_ms = self._odd_ms = now_ms
            self.ask(row, "digest", now_ms=now_ms)

    def counts(self) -> tuple[int, int]:
        """Return how many are in flight and how many wait."""
        return len(self._in_flight), len(self._waiting)
