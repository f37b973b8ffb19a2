"""Announcer: tells subscribers of members that came, changed or died;
flapping ones after a hold-down.

The table believes a claim at once. Subscribers hear of a newcomer, of a death and of a new life at
once too; but a member that came back inside one boot has to hold out first: when its time is over it
is pinged directly, and announced after three answers in a row. So a sick member that dies and
returns every few seconds is announced down once, and up when it is well. A doubt begins its time anew.
"""

from typing import Final

from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.effects import (
    MemberChanged,
    MemberDown,
    MemberLeft,
    MemberRefuted,
    MemberSuspected,
    MemberUp,
)
from smg_mesh.swim.members.flap_damping import Hold, hold_down_ms
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.messages import Ping, Rank

_BACK_OFF_MAX: Final = 4
"""A held member that does not answer is asked after 2, 4, … 16 intervals."""


class Announcer:
    """Turns what happens to rows into events."""

    def __init__(self, voice: PacketSender) -> None:
        self._voice = voice
        self._held: dict[str, Row] = {}

    def up(self, row: Row) -> None:
        """Announce a member that may be counted on from now."""
        returned = row.was_announced
        self._release(row)
        row.announced = row.was_announced = True
        self._voice.out.append(MemberUp(row.member(), returned))

    def new_life(self, row: Row) -> None:
        """Announce a later boot of a known name."""
        if not row.announced:
            self.up(row)
        else:
            self._voice.out.append(MemberChanged(row.member(), restarted=True))

    def changed(self, row: Row) -> None:
        """Announce another address or other meta."""
        if row.announced:
            self._voice.out.append(MemberChanged(row.member(), restarted=False))

    def suspected(self, row: Row, why: str) -> None:
        """Announce a doubt."""
        if row.announced:
            self._voice.out.append(MemberSuspected(row.member(), why))

    def refuted(self, row: Row, *, now_ms: int) -> None:
        """Announce that a doubt was answered; a member that is held begins its hold-down anew."""
        if row.announced:
            self._voice.out.append(MemberRefuted(row.member()))
        if row.hold is not None:
            self._begin_hold(row, row.hold.span_ms, now_ms=now_ms)

    def down(self, row: Row, why: str) -> None:
        """Announce a death, of a member that was announced."""
        if self._withdraw(row):
            self._voice.out.append(MemberDown(row.member(), why))

    def left(self, row: Row) -> None:
        """Announce a goodbye, of a member that was announced."""
        if self._withdraw(row):
            self._voice.out.append(MemberLeft(row.member()))

    def _withdraw(self, row: Row) -> bool:
        announced, row.announced = row.announced, False
        self._release(row)
        return announced

    def _release(self, row: Row) -> None:
        row.hold = None
        self._held.pop(row.name, None)

    # ── Hold-down ────────────────────────────────────────────────────────────

    def hold(self, row: Row, *, now_ms: int) -> None:
        """Let a member that came back hold out before it is announced."""
        voice, options = self._voice, self._voice.options
        penalty = row.flaps.add(options.flap_half_life_ms, now_ms=now_ms)
        voice.note("flap")
        voice.note("held")
        span_ms = hold_down_ms(penalty, options.hold_down_ms, options.hold_down_max_ms)
        self._begin_hold(row, span_ms, now_ms=now_ms)

    def _begin_hold(self, row: Row, span_ms: int, *, now_ms: int) -> None:
        row.hold = Hold(span_ms)
        self._held[row.name] = row
        row.hold.token = self._voice.timer("hold", now_ms + span_ms, row.name)

    def tick(self, row: Row, token: int, *, now_ms: int) -> None:
        """Ping a member whose hold-down is over."""
        hold, options = row.hold, self._voice.options
        if hold is None or token != hold.token or row.address is None or not row.present:
            return
        if hold.nonce is not None:
            hold.answers = 0
            hold.misses = min(_BACK_OFF_MAX, hold.misses + 1)
        hold.nonce = self._voice.nonce()
        self._voice.send(row.address, Ping(hold.nonce, row.name, row.boot, row.doubt))
        wait_ms = options.probe_interval_ms * (1 << hold.misses)
        hold.token = self._voice.timer("hold", now_ms + wait_ms, row.name)

    def ack(self, row: Row, nonce: int) -> bool:
        """Take the member's own answer, maybe the last it owed; False if it is none of those."""
        hold = row.hold
        if hold is None or hold.nonce != nonce:
            return False
        hold.nonce = None
        hold.answers += 1
        hold.misses = 0
        if row.rank is Rank.ALIVE and hold.answers >= self._voice.options.hold_down_answers:
            self.up(row)
        return True

    def stalled(self) -> None:
        """Count no miss for answers that may wait in our socket."""
        for row in self._held.values():
            if row.hold is not None:
                row.hold.nonce = None
