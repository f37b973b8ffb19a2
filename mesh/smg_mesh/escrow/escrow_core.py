"""Escrow core: all rights of one node: data and time in, effects out, in order.

Its driver and a simulator call it in the same way.

The parts (`escrow_parts`) know nothing of each other; here they are put together:

    spending_ledger  what this node may spend, and what it asks for
    treasury         what it owns, mints and gives
    voter            what it promised, and stores for owners
    slot_leases      what it wants to own, slot by slot
    roster_keeper    which names vote
    outbox           packets that wait for the disk
    permit_exchange  what of its permits others have, and it of theirs

Messages of a node to itself take the same way, without a packet. A vote leaves only after what it stores is on disk.

No node is asked, and none is woken, unless rights are wanted: a key is in use here, or an ask came
in. Which node to ask follows from this node's own voter: the one it promised the slot to, else the
one with the best claim.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.audit.report_builder import report_of
from smg_mesh.escrow.book_rows import Row
from smg_mesh.escrow.escrow_parts import OWN_TICK_MS, Parts
from smg_mesh.escrow.limit_model import ROSTER_SLOT, Life, slot_of
from smg_mesh.escrow.messages.effects import Effect, Note
from smg_mesh.escrow.messages.messages import (
    EscrowError,
    LeaseAsk,
    LeaseVote,
    LoanAsk,
    LoanGive,
    LoanLook,
    LoanTell,
    Message,
    RecordsAsk,
    RecordsTell,
    RightsAsk,
    RightsGive,
    decode,
)
from smg_mesh.escrow.messages.speaker import speaker
from smg_mesh.escrow.spendable_share import Share

TEND_MS: Final = 100
"""While records are gathered, after a boot and after a change of the roster."""
ALONE_MS: Final = 60_000
"""While this node is the roster, and sees nobody who could want to be in it."""
TIDY_MS: Final = 1_000
NOTHING: Final = bytes(8)
"""The basis while nothing is defined."""


class Escrow(Parts):
    """Rights of one life of one node; every method returns what is to be done, in order."""

    # ── Inputs ───────────────────────────────────────────────────────────────

    def handle(self, data: bytes, sender: str, *, now_ms: int, wall_ms: int) -> list[Effect]:
        """Take a packet of a member; what makes no sense is counted and has no other effect."""
        if self._retired:
            return []
        self._now_ms = now_ms
        try:
            messages = decode(data)
        except EscrowError:
            return [Note("rights_refused", detail="wire")]
        for message in messages:
            if speaker(message) not in (sender, ""):
                self._desk.note("rights_refused", "name")
                continue
            self._take(message, sender, now_ms, wall_ms)
        return self._done(now_ms, wall_ms)

    def tick(self, *, now_ms: int, wall_ms: int) -> list[Effect]:
        """Do what is due; see `due_ms`."""
        if self._retired:
            return []
        self._now_ms = now_ms
        soon, self._soon = self._soon, False
        self._roll(now_ms, wall_ms)
        if self._voter.basis != NOTHING:
            self._desk.write_down(self.lived.unwritten(spends=self._ledger.spends), now_ms)
        if now_ms >= self._tend_due_ms and self._voter.basis != NOTHING:
            self._tend(now_ms, wall_ms)
        self._give(now_ms, wall_ms)
        self._lending.tick(now_ms=now_ms)
        if soon or now_ms - self._owned_ms >= OWN_TICK_MS + len(self._leases) // 4:
            self._owned_ms = now_ms
            self._own(now_ms, wall_ms)
        if now_ms - self._tidied_ms >= TIDY_MS:
            self._tidied_ms = now_ms
            self._voter.tidy(now_ms=now_ms, wall_ms=wall_ms)
            self._desk.write_down(self._voter.unwritten(), now_ms)
            self._desk.tidy(now_ms)
        return self._done(now_ms, wall_ms)

    def due_ms(self) -> int | None:
        """Return when the next tick is needed (monotonic); None: not before something else happens."""
        if self._retired:
            return None
        if self._soon:
            return self._now_ms
        dues = [self._ledger.due_ms(self._now_ms), self._treasury.due_ms(), self._lending.due_ms()]
        if self._leases or self._ledger.moved:
            dues.append(self._own_due_ms())
        if self._voter.basis != NOTHING:
            dues.append(self._tend_due_ms)
        return min([due_ms for due_ms in dues if due_ms is not None], default=None)

    def hear(self, *, now_ms: int) -> None:
        """Learn when it was that a share has called."""
        self._now_ms = now_ms
        self._ledger.hear(now_ms)

    def members(self, alive: Sequence[Life], left: Sequence[str], *, now_ms: int) -> None:
        """Learn which members live, sorted, this node among them, and which said goodbye."""
        self._sight.see(alive)
        self._keeper.members(alive, left, now_ms=now_ms)
        self._lending.members(alive, now_ms=now_ms)
        self._tend_due_ms = now_ms

    def persisted(self, token: int, *, now_ms: int, wall_ms: int) -> list[Effect]:
        """Learn that what `Persist`, `KeepRoster` or `KeepFounding` said is on disk."""
        if self._retired:
            return []
        self._now_ms = now_ms
        waits = self._desk.written(token)
        self.lived.written(() if waits is None else waits.rows)
        self._ledger.written(() if waits is None else waits.rows, now_ms=now_ms)
        self._lending.written(() if waits is None else waits.rows)
        if waits is not None and waits.roster is not None:
            self._keeper.kept(waits.roster, wall_ms=wall_ms)
            self._tend_due_ms = now_ms
        if waits is not None and waits.founding is not None:
            for to, message in self._keeper.founding_kept(waits.founding):
                self._say(to, message, now_ms, wall_ms)
        if waits is not None and waits.vote is not None:
            self._voter.persisted(waits.rows)
            self._say(waits.to, waits.vote, now_ms, wall_ms)
        return self._done(now_ms, wall_ms)

    def limits_changed(self, *, now_ms: int, wall_ms: int) -> None:
        """Learn that definitions are others than before."""
        if (basis := self._limits.basis()) != self._voter.basis:
            self._adopt(basis, wall_ms)
        self._treasury.changed(now_ms=now_ms)
        self._ledger.changed()
        self._now_ms = now_ms
        self._soon = True

    # ── What spends ──────────────────────────────────────────────────────────

    def share(self, key: str, *, now_ms: int, wall_ms: int) -> Share | None:
        """Return what may be charged now, awake; nothing once this life is over. None if there is no such limit."""
        limit = self._limits.get(key)
        if limit is None:
            return None
        if self._retired:
            return Share(limit)
        self._now_ms = now_ms
        return self._ledger.share(limit, now_ms=now_ms, wall_ms=wall_ms)

    def want(self, share: Share, cost: int) -> None:
        """Let the next tick ask for so much at least; a request waits for it."""
        share.wanted = max(share.wanted, cost)
        share.wants_more = True
        self._ledger.hurry()
        self._soon = True

    def leave(self, *, now_ms: int, wall_ms: int) -> list[Effect]:
        """Let others own at once what this node owned, and have no rights any more."""
        for ask in self._leases.release(now_ms=now_ms):
            for name in () if self.roster is None else self.roster.names:
                if name != self.me.name:
                    self._desk.send(name, ask)
        self._lending.farewell()
        self._lend(now_ms)
        self.retire()
        return self._desk.clear()

    def inherit(self, before: "Escrow") -> None:
        """Go on with the requests that a life before has open in this process, before that one retires."""
        self._ledger.inherit(before._ledger)
        self._lending.inherited()

    def retire(self) -> None:
        """Have no rights any more: every share is empty for ever."""
        self._retired = True
        self._ledger.retire()

    # ── What it is ───────────────────────────────────────────────────────────

    def report(self, key: str, *, wall_ms: int) -> Report | None:
        """Return what this node can say of a limit; None if there is no such limit."""
        limit = self._limits.get(key)
        if limit is None:
            return None
        slot = slot_of(key)
        return report_of(
            limit,
            ledger=self._ledger,
            treasury=self._treasury,
            owner=self._owner(slot),
            term=self._leases.term(slot, now_ms=self._now_ms),
            roster=self.roster,
            current=self._leases.current(slot, self._voter.basis, began_ms=wall_ms),
            wall_ms=wall_ms,
        )

    def rows(self) -> Sequence[Row]:
        """Return both halves of this node's book: the last windows of every key it touched."""
        return [*self._ledger.rows(), *self._treasury.rows()]

    # ── Messages ─────────────────────────────────────────────────────────────

    def _take(self, message: Message, sender: str, now_ms: int, wall_ms: int) -> None:
        """Let the part that it concerns take a message; of this node itself too."""
        match message:
            case LeaseAsk():
                self._noticed(sender, message.roster, message.roster_version, now_ms)
                self._lease_asked(message, sender, now_ms, wall_ms)
            case LeaseVote():
                self._noticed(sender, message.roster, message.roster_version, now_ms)
                self._voted(message, now_ms, wall_ms)
            case RightsAsk():
                self._rights_asked(message, sender, now_ms, wall_ms)
            case RightsGive():
                if message.boot == self.me.boot:
                    if not self._votes:
                        slots = {slot_of(row.key) for row in message.rows}
                        self._whereabouts.heard(slots, message.owner, now_ms=now_ms)
                    self._ledger.given(message, now_ms=now_ms, wall_ms=wall_ms)
            case RecordsAsk():
                if (told := self._voter.records_asked(message, now_ms=now_ms)) is not None:
                    self._desk.send(sender, told)
            case RecordsTell():
                self._voter.records_told(message, now_ms=now_ms)
            case LoanAsk() | LoanGive() | LoanLook() | LoanTell():
                self._lending.heard(message, now_ms=now_ms)
            case _:
                self._keeper.settled = self._lending.permits.settled()
                for to, answer in self._keeper.heard(message, now_ms=now_ms, wall_ms=wall_ms):
                    self._say(to, answer, now_ms, wall_ms)

    def _say(self, to: str, message: Message, now_ms: int, wall_ms: int) -> None:
        """Send a message, or take it at once if it is to this node."""
        if to == self.me.name:
            self._take(message, to, now_ms, wall_ms)
        else:
            self._desk.send(to, message)

    def _noticed(self, name: str, roster: bytes, version: int, now_ms: int) -> None:
        if name != self.me.name:
            for to, message in self._keeper.noticed(name, roster, version, now_ms=now_ms):
                self._desk.send(to, message)

    def _lease_asked(self, ask: LeaseAsk, sender: str, now_ms: int, wall_ms: int) -> None:
        vote, rows = self._voter.asked(ask, now_ms=now_ms, wall_ms=wall_ms)
        if rows:
            self._desk.wait_for_rows(sender, vote, rows, now_ms)
        else:
            self._say(sender, vote, now_ms, wall_ms)
        self._leases.promised(ask.slot, now_ms=now_ms)

    def _voted(self, vote: LeaseVote, now_ms: int, wall_ms: int) -> None:
        if self._leases.voted(vote, now_ms=now_ms):
            self._treasury.inherited(vote.slot, now_ms=now_ms)
        holder = self._leases.get(vote.slot)
        if vote.stored and holder is not None:
            self._treasury.stored(vote.stored, holder, now_ms=now_ms, wall_ms=wall_ms)

    def _rights_asked(self, ask: RightsAsk, sender: str, now_ms: int, wall_ms: int) -> None:
        slots = {slot_of(row.key): None for row in ask.rows}
        self._soon = self._leases.want(slots, now_ms=now_ms) or self._soon
        alone = not self._sight.majority and all(
            self._sight.best(slot) == self.me.name for slot in slots
        )
        give = self._treasury.asked(
            ask,
            ownership=self._leases.get,
            alone=alone,
            roster=self.roster,
            now_ms=now_ms,
            wall_ms=wall_ms,
            alive=self._sight.alive,
        )
        if give is not None:
            self._say(sender, give, now_ms, wall_ms)

    # ── One tick ─────────────────────────────────────────────────────────────

    def _roll(self, now_ms: int, wall_ms: int) -> None:
        """Windows roll, what is too much goes back, and what is wanted is asked for."""
        asks = self._ledger.tick(
            now_ms=now_ms, wall_ms=wall_ms, owners=self._owner, majority=self._sight.majority
        )
        for to, ask in asks:
            self._say(to, ask, now_ms, wall_ms)

    def _give(self, now_ms: int, wall_ms: int) -> None:
        """Let windows open, wish for what is to be minted, and give what was."""
        for life, give in self._treasury.tick(
            ownership=self._leases.get,
            alive=self._sight.alive,
            roster=self.roster,
            now_ms=now_ms,
            wall_ms=wall_ms,
        ):
            self._say(life.name, give, now_ms, wall_ms)
        self._desk.tell(self._treasury.differences())

    def _own_due_ms(self) -> int:
        """Return when leases have to be looked at again."""
        least_ms = self._owned_ms + OWN_TICK_MS + len(self._leases) // 4
        if self._ledger.moved:
            return least_ms
        return max(least_ms, self._leases.due_ms(roster_too=self._roster_too))

    def _own(self, now_ms: int, wall_ms: int) -> None:
        """Be, stay, become or cease to be the owner of what is wanted."""
        self._leases.want(self._ledger.slots(), now_ms=now_ms)
        roster_too = self._keeper.wants_lease
        for ask in self._leases.step(roster_too=roster_too, now_ms=now_ms, wall_ms=wall_ms):
            for name in () if self.roster is None else self.roster.names:
                self._say(name, ask, now_ms, wall_ms)
            if ask.release:
                self._treasury.inherited(ask.slot, now_ms=now_ms)

    def _tend(self, now_ms: int, wall_ms: int) -> None:
        """See to the roster, and to what this node's voter has forgotten."""
        said = self._keeper.step(
            term=self._leases.term(ROSTER_SLOT, now_ms=now_ms),
            synced=self._voter.synced,
            now_ms=now_ms,
            wall_ms=wall_ms,
        )
        for to, message in said:
            self._say(to, message, now_ms, wall_ms)
        for name, records in self._voter.asks(now_ms=now_ms):
            self._desk.send(name, records)
        self._follow(now_ms=now_ms, wall_ms=wall_ms)
        alone = self._keeper.confirmed and self._sight.alone
        due_ms = now_ms + ALONE_MS if alone else self._keeper.due_ms(now_ms=now_ms)
        self._tend_due_ms = max(now_ms + TEND_MS, due_ms)
        if self.roster is not None and not self._voter.synced:
            self._tend_due_ms = min(self._tend_due_ms, now_ms + TEND_MS)

    # ── What follows from it ─────────────────────────────────────────────────

    def _done(self, now_ms: int, wall_ms: int) -> list[Effect]:
        """Return what was said, after what follows from it was done."""
        self._follow(now_ms=now_ms, wall_ms=wall_ms)
        self._roster_too = self._keeper.wants_lease
        unkept = self._keeper.unkept
        if unkept is not None:
            self._desk.write_down(self._voter.unwritten(), now_ms)
            places = self._lending.permits.places()
            self._desk.keep_roster(msgspec.structs.replace(unkept, places=places), now_ms)
        if (founding := self._keeper.unkept_founding) is not None:
            self._desk.keep_founding(founding, now_ms)
        self._lend(now_ms)
        self._desk.write_down(self._ledger.unwritten(now_ms=now_ms), now_ms)
        return self._desk.clear()

    def _lend(self, now_ms: int) -> None:
        """Say and write what is due of what is lent."""
        if self._lending.silent:
            return
        said, rows, taken = self._lending.clear()
        for name in taken:
            self._desk.note("permits_taken_back", name)
        for to, message in said:
            self._desk.send(to, message)
        self._desk.write_down(rows, now_ms)
