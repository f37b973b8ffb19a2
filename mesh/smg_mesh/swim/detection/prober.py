"""Prober: pings one member after the other, with relays (PING-REQ) and TCP when it does not answer.

One probe is under way at a time, and one interval (longer while this node is unwell) is one probe:

    t = 0          PING to the member; if it is suspect, with what is held against it
    t = timeout    no ACK: PING_REQ to a few relays, and a ping over TCP
    t = interval   no answer by any way: the probe failed; the next one begins

Members are probed in a shuffled round, so each is probed once in at most 2n - 1 intervals. A probe
proves nothing if this node stalled meanwhile, or the member raised its incarnation.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from smg_mesh.swim.detection.local_health import Health
from smg_mesh.swim.detection.tcp_pings import StreamPings
from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.members.member_table import Members
from smg_mesh.swim.messages import Ping, PingRequest, Rank
from smg_mesh.swim.random_draws import below, sample, shuffle


@dataclass(slots=True, eq=False)
class Probe:
    """The probe under way."""

    row: Row
    nonce: int
    boot: int
    incarnation: int
    started_ms: int
    verdict_ms: int
    relays: int = 0
    nacks: dict[bytes, None] = field(default_factory=dict)
    answered: bool = False
    refused: bool = False
    """The host said over TCP that no process listens there."""


class Failed(NamedTuple):
    """A probe without any answer: the member, its life and incarnation."""

    row: Row
    boot: int
    incarnation: int
    refused: bool
    """Its host said that no process listens there."""


class Prober:
    """Probes of this node, one round after the other."""

    def __init__(
        self, voice: PacketSender, members: Members, health: Health, streams: StreamPings
    ) -> None:
        self._voice = voice
        self._members = members
        self._health = health
        self._streams = streams
        self._round: list[Row] = []
        self._next = 0
        self._probe: Probe | None = None
        self._direct_token = 0
        self._cycle_token = 0
        options = voice.options
        self.stall_ms = max(options.stall_min_ms, options.probe_interval_ms // 4)
        """Whatever comes later than this came late because this node stalled."""

    def start(self, *, now_ms: int) -> None:
        """Let the first probe begin within one interval."""
        delay_ms = below(self._voice.rng, self._voice.options.probe_interval_ms)
        self._cycle_token = self._voice.timer("probe", now_ms + delay_ms)

    def add(self, row: Row) -> None:
        """Let a new member enter at a random place of the round."""
        if row.in_round:
            return
        row.in_round = True
        place = below(self._voice.rng, len(self._round) + 1)
        self._round.insert(place, row)
        if place < self._next:
            self._next += 1

    def cycle(self, token: int, *, now_ms: int) -> Failed | None:
        """End the probe under way and begin the next; return what failed."""
        if token != self._cycle_token:
            return None
        failed = self._conclude(now_ms=now_ms)
        self._begin(now_ms=now_ms)
        return failed

    def stalled(self, *, now_ms: int) -> None:
        """Give up the probe under way without a verdict and begin the next."""
        if self._probe is not None and not self._probe.answered:
            self._voice.note("probe_void")
        self._begin(now_ms=now_ms)

    def _begin(self, *, now_ms: int) -> None:
        voice, options = self._voice, self._voice.options
        over_ms = now_ms + options.probe_interval_ms * (1 + self._health.score)
        self._cycle_token = voice.timer("probe", over_ms)
        self._direct_token = 0
        row = self._choose()
        if row is None or row.address is None:
            self._probe = None
            return
        probe = Probe(row, voice.nonce(), row.boot, row.incarnation, now_ms, over_ms)
        self._probe = probe
        voice.send(row.address, Ping(probe.nonce, row.name, row.boot, row.doubt))
        wait_ms = row.trips.wait_ms(options.probe_timeout_ms)
        self._direct_token = voice.timer("direct", now_ms + wait_ms)

    def _choose(self) -> Row | None:
        for _ in range(2):
            while self._next < len(self._round):
                row = self._round[self._next]
                self._next += 1
                if row.present:
                    return row
            self._reshuffle()
        return None

    def _reshuffle(self) -> None:
        for row in self._round:
            row.in_round = row.present
        self._round = [row for row in self._round if row.in_round]
        shuffle(self._voice.rng, self._round)
        self._next = 0

    # ── Answers ──────────────────────────────────────────────────────────────

    def ack(self, nonce: int, sender: bytes, *, now_ms: int) -> bool:
        """Take an ACK, the member's own or brought by a relay; False if it is not for this probe."""
        probe = self._probe
        if probe is None or probe.nonce != nonce:
            return False
        if probe.answered:
            return True
        if sender == probe.row.tag:
            trip_ms = now_ms - probe.started_ms
            probe.row.trips.add(trip_ms)
            self._voice.note("rtt_us", trip_ms * 1000)
        else:
            self._voice.note("probe_indirect_ok")
        self._succeed(probe)
        return True

    def nack(self, nonce: int, sender: bytes) -> None:
        """Take a relay's word that it heard nothing either."""
        probe = self._probe
        if probe is not None and probe.nonce == nonce and len(probe.nacks) < probe.relays:
            probe.nacks[sender] = None

    def stream_answer(self, nonce: int) -> bool:
        """Take an answer over TCP; False if it is not for this probe."""
        probe = self._probe
        if probe is None or probe.nonce != nonce:
            return False
        if not probe.answered:
            self._voice.note("udp_blocked")
            self._succeed(probe)
        return True

    def stream_refused(self, nonce: int) -> None:
        """Take the host's word that no process listens where the member should be."""
        probe = self._probe
        if probe is not None and probe.nonce == nonce:
            probe.refused = True

    def _succeed(self, probe: Probe) -> None:
        probe.answered = True
        self._health.probe_ok()
        self._voice.note("probe_ok")

    # ── Silence ──────────────────────────────────────────────────────────────

    def direct_over(self, token: int, *, now_ms: int) -> None:
        """Ask relays and TCP, if the direct way brought nothing."""
        probe = self._probe
        if token != self._direct_token or probe is None or probe.answered:
            return
        row = probe.row
        if row.address is None or not row.present:
            return
        voice, options = self._voice, self._voice.options

        def fit(other: Row) -> bool:
            return other is not row and other.rank is Rank.ALIVE

        relays = sample(voice.rng, self._members.present, options.relays, fit)
        probe.relays = len(relays)
        request = PingRequest(probe.nonce, row.name, probe.boot, row.address)
        for relay in relays:
            assert relay.address is not None
            voice.send(relay.address, request)
        self._streams.ask(
            "probe",
            row.name,
            probe.boot,
            row.address,
            nonce=probe.nonce,
            deadline_ms=options.stream_ping_ms,
            now_ms=now_ms,
        )

    def is_answered(self, token: int) -> bool:
        """Whether the timer of `token`, which would ask relays, has nothing left to do."""
        probe = self._probe
        return token != self._direct_token or probe is None or probe.answered

    def _conclude(self, *, now_ms: int) -> Failed | None:
        probe, self._probe = self._probe, None
        if probe is None or probe.answered:
            return None
        row = probe.row
        late = now_ms - probe.verdict_ms > self.stall_ms
        same = (row.boot, row.incarnation) == (probe.boot, probe.incarnation)
        if late or not same or not row.present:
            self._voice.note("probe_void")
            return None
        self._health.probe_failed(relays=probe.relays, nacks=len(probe.nacks))
        self._voice.note("probe_failed")
        return Failed(row, probe.boot, probe.incarnation, probe.refused)
