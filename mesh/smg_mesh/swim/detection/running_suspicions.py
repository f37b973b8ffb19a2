"""Running suspicions: reminders, the last chance, and what a stall of this node does to them.

A doubt is one member's guess, and the doubted can always answer it: a few of the members that hear
of the doubt remind it at once, and all of them at a quarter, a half and three quarters of the time,
with a ping that carries the claim, because its refutation may have missed us. When the time is over
it gets a last chance: six such pings over one probe timeout and one ping over TCP. Any answer, and
the doubt begins anew; so does a doubt about a member whose own packets arrive meanwhile, a few
times. Nothing is ever cancelled: a timer that is not the suspicion's last one is stale.
"""

from typing import Final

from smg_mesh.swim.detection.tcp_pings import StreamPings
from smg_mesh.swim.dissemination.packet_sender import PacketSender
from smg_mesh.swim.members.member_row import Row
from smg_mesh.swim.members.member_table import Members
from smg_mesh.swim.members.suspicion_timeout import (
    LastChance,
    Suspicion,
    base_ms,
    confirmations_wanted,
)
from smg_mesh.swim.messages import Ping

CHANCE_PINGS: Final = 6
"""At 40 % loss a ping and its answer get through once in three times."""
HEARD_MAX: Final = 3
"""Who talks but hears nothing, not even this doubt, has to die in the end."""
REMINDING: Final = 8
"""Of all who hear of a doubt about so many remind the suspect at once."""


class RunningSuspicions:
    """The suspicions of all rows."""

    def __init__(
        self, voice: PacketSender, members: Members, streams: StreamPings, *, stall_ms: int
    ) -> None:
        self._voice = voice
        self._members = members
        self._streams = streams
        self._stall_ms = stall_ms
        self._running: dict[str, Row] = {}

    def __len__(self) -> int:
        return len(self._running)

    @property
    def base_ms(self) -> int:
        """The shortest suspicion of a member that does not flap."""
        options = self._voice.options
        count = self._members.count
        return base_ms(options.suspicion_mult, count, options.probe_interval_ms)

    def start(self, row: Row, accuser: str, *, now_ms: int) -> None:
        """Begin a doubt about the row's present state; one about an earlier state ends."""
        options = self._voice.options
        patience = row.flaps.patience(options.flap_half_life_ms, now_ms=now_ms)
        suspicion = Suspicion(
            row.order,
            now_ms,
            round(self.base_ms * patience),
            confirmations_wanted(options.suspicion_mult, self._members.count),
            {accuser: None},
        )
        row.suspicion = suspicion
        self._running[row.name] = row
        self._schedule(row, suspicion, now_ms=now_ms)

    def remind(self, row: Row) -> None:
        """Ping a suspect of whose doubt we have just heard, as one of a few that do."""
        if self._voice.rng.random() * self._members.count < REMINDING:
            self._ping(row, self._voice.nonce())

    def confirm(self, row: Row, accuser: str, *, now_ms: int) -> bool:
        """Count another accuser of the same state; False if that is nothing new."""
        suspicion = row.suspicion
        if suspicion is None or not suspicion.confirm(accuser):
            return False
        self._voice.note("confirmed")
        if suspicion.chance is None:
            self._schedule(row, suspicion, now_ms=now_ms)
        return True

    def hasten(self, row: Row, *, now_ms: int) -> None:
        """Doubt no longer than needed: its host says that no process listens there."""
        suspicion = row.suspicion
        if suspicion is None or suspicion.hastened:
            return
        suspicion.hastened = True
        self._voice.note("hastened")
        if suspicion.chance is None:
            self._schedule(row, suspicion, now_ms=now_ms)

    def drop(self, row: Row) -> None:
        """End the doubt, if there is one."""
        row.suspicion = None
        self._running.pop(row.name, None)

    def _schedule(self, row: Row, suspicion: Suspicion, *, now_ms: int) -> None:
        due_ms = suspicion.expires_ms
        reminder_ms = suspicion.next_reminder_ms
        if reminder_ms is not None and reminder_ms < due_ms:
            due_ms = reminder_ms
        # A confirmation or a stall may have let that time pass already.
        suspicion.due_ms = max(now_ms, due_ms)
        suspicion.token = self._voice.timer("doubt", suspicion.due_ms, row.name)

    def tick(self, row: Row, token: int, *, now_ms: int) -> bool:
        """Do what is due; True if the last chance passed unanswered and the member is dead."""
        suspicion = row.suspicion
        if suspicion is None or token != suspicion.token:
            return False
        if now_ms - suspicion.due_ms > self._stall_ms:
            self.restart(row, now_ms=now_ms)
            return False
        chance = suspicion.chance
        if chance is not None:
            return self._next_chance(row, suspicion, chance, now_ms=now_ms)
        if now_ms < suspicion.expires_ms:
            suspicion.reminders += 1
            self._ping(row, self._voice.nonce())
            self._schedule(row, suspicion, now_ms=now_ms)
        elif not self._spare_heard(row, suspicion, now_ms=now_ms):
            self._last_chance(row, suspicion, now_ms=now_ms)
        return False

    def _spare_heard(self, row: Row, suspicion: Suspicion, *, now_ms: int) -> bool:
        """Begin the doubt anew if the suspect was heard since it began: what is lost are our words.

        A node whose packets hardly get out is not answered, but hears those it doubts.
        """
        if row.heard_ms is None or row.heard_ms <= suspicion.started_ms:
            return False
        if suspicion.heard >= HEARD_MAX:
            return False
        suspicion.heard += 1
        self._begin_anew(row, suspicion, now_ms=now_ms)
        return True

    def _last_chance(self, row: Row, suspicion: Suspicion, *, now_ms: int) -> None:
        chance = LastChance(self._voice.nonce(), now_ms)
        suspicion.chance = chance
        self._ping(row, chance.nonce)
        if row.address is not None:
            self._streams.ask(
                "chance",
                row.name,
                row.boot,
                row.address,
                nonce=chance.nonce,
                deadline_ms=self._voice.options.probe_timeout_ms,
                now_ms=now_ms,
            )
        self._schedule_chance(row, suspicion, chance)

    def _next_chance(
        self, row: Row, suspicion: Suspicion, chance: LastChance, *, now_ms: int
    ) -> bool:
        if chance.pings == CHANCE_PINGS:
            return not self._spare_heard(row, suspicion, now_ms=now_ms)
        chance.pings += 1
        self._ping(row, chance.nonce)
        self._schedule_chance(row, suspicion, chance)
        return False

    def _schedule_chance(self, row: Row, suspicion: Suspicion, chance: LastChance) -> None:
        span_ms = self._voice.options.probe_timeout_ms
        suspicion.due_ms = chance.started_ms + span_ms * chance.pings // CHANCE_PINGS
        suspicion.token = self._voice.timer("doubt", suspicion.due_ms, row.name)

    def _ping(self, row: Row, nonce: int) -> None:
        if row.address is not None:
            self._voice.send(row.address, Ping(nonce, row.name, row.boot, row.doubt))

    def spare(self, row: Row, nonce: int, *, now_ms: int) -> bool:
        """Take an answer to the last chance: the doubt begins anew; False if it is none."""
        suspicion = row.suspicion
        if suspicion is None or suspicion.chance is None or suspicion.chance.nonce != nonce:
            return False
        self._begin_anew(row, suspicion, now_ms=now_ms)
        return True

    def _begin_anew(self, row: Row, suspicion: Suspicion, *, now_ms: int) -> None:
        self._voice.note("spared")
        suspicion.spare(now_ms=now_ms)
        self._schedule(row, suspicion, now_ms=now_ms)

    def restart(self, row: Row, *, now_ms: int) -> None:
        """Begin the doubt anew from now."""
        if row.suspicion is not None:
            row.suspicion.restart(now_ms=now_ms)
            self._schedule(row, row.suspicion, now_ms=now_ms)

    def stalled(self, *, now_ms: int) -> None:
        """Begin anew every doubt that was due while our eyes were shut; let none end at once."""
        adjusted_ms = now_ms + self._voice.options.probe_interval_ms
        for row in self._running.values():
            suspicion = row.suspicion
            if suspicion is None:
                continue
            if suspicion.chance is not None or suspicion.expires_ms <= now_ms:
                suspicion.restart(now_ms=now_ms)
            elif suspicion.due_ms > adjusted_ms:
                continue
            suspicion.not_before_ms = adjusted_ms
            self._schedule(row, suspicion, now_ms=now_ms)
