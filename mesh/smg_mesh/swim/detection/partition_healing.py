"""Partition healing: pings dead members for a day and longer, so that
any partition heals by itself.

Every few seconds one random dead member gets a ping with what is held against it. If it lives, it
refutes in its answer, both sides open an exchange, each learns the other's rows, and every member
that is falsely held dead is told so once, and refutes. After a day a row is forgotten; where it used to
listen is greeted for another week, as seeds are.
"""

from typing import Final

from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.members.member_table import Members
from smg_mesh.swim.messages import Accusation, Address, Ping
from smg_mesh.swim.random_draws import sample

PER_MEMBER_MS: Final = 500
SPAN_MIN_MS: Final = 1_000
SPAN_MAX_MS: Final = 5_000
TOLD_SPAN_MS: Final = 1_000
"""A member is told what is held against it at most once in that time."""


class Healer:
    """Looks at the dead, tells the living, and drops what is too old."""

    def __init__(self, voice: PacketSender, members: Members) -> None:
        self._voice = voice
        self._members = members
        self._token = 0

    def start(self, *, now_ms: int) -> None:
        """Set the timer of the next look."""
        span_ms = min(max(PER_MEMBER_MS * self._members.count, SPAN_MIN_MS), SPAN_MAX_MS)
        self._token = self._voice.timer("heal", now_ms + span_ms)

    def tick(self, token: int, *, now_ms: int) -> None:
        """Look at one of the dead, drop rows whose time is over, and set the timer again."""
        if token != self._token:
            return
        voice = self._voice
        if forgotten := self._members.sweep(now_ms=now_ms):
            voice.note("forgotten", forgotten)
        for row in sample(voice.rng, self._members.dead, 1, lambda row: True):
            assert row.address is not None
            voice.note("healing")
            voice.send(row.address, Ping(voice.nonce(), row.name, row.boot, row.doubt))
        grave = self._members.next_grave(now_ms=now_ms)
        if grave is not None and not voice.leaving:
            voice.introduce(grave, answer=True)
        self.start(now_ms=now_ms)

    def tell(self, row: Row, to: Address | None, *, now_ms: int) -> None:
        """Tell the process at `to` what is held against that name, once a second."""
        if to is None or (row.told_ms is not None and now_ms - row.told_ms < TOLD_SPAN_MS):
            return
        row.told_ms = now_ms
        self._voice.note("told")
        self._voice.send(to, Accusation(row.claim()))
