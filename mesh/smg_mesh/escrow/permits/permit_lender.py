"""Permit lender: gives permits, wants and takes them back, and finds out
what lives before it have lent.

It lends half of what is free, and not the last one if it was asked for any itself just before. Of a borrower
that is silent it takes back by the mode of the limit: strict, when all that was admitted on it must be over;
balanced, when it is dead; available, after 5 s. A borrower in a new process says that it has nothing.

A process that does not know what was lent before it asks all names what they hold of it. Once it knows, its disk does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from smg_mesh.escrow.limit_model import Life
from smg_mesh.escrow.messages.messages import (
    ROWS_MAX,
    LentRow,
    LoanAsk,
    LoanGive,
    LoanLook,
    LoanMessage,
    LoanRow,
    LoanTell,
    Minted,
)
from smg_mesh.escrow.permits.concurrency_permits import AVAILABLE_MS, OVER_MS, Ignorance, Permits
from smg_mesh.escrow.permits.permit_loans import WHOLE_KEY, Lent, Watch, row_of
from smg_mesh.escrow.spendable_share import Share

CALM_MS: Final = 100
RENEW_MS: Final = 1_000
STALE_MS: Final = 5_000
"""Unanswered for so long, a borrower admits nothing on what it holds."""
OWN_MS: Final = 250
"""Who was asked for any itself within so long does not lend its last one."""
POKE_MS: Final = 2_000
"""A borrower that was not heard of for so long is asked what it has."""


class Lender:
    """Lender of one life of a node; `watches` are those of all keys that are attended to."""

    def __init__(
        self, me: Life, permits: Permits, watches: Mapping[str, Watch], *, now_ms: int
    ) -> None:
        self.alive: Mapping[str, int] = {}
        self.taken_back: list[str] = []
        """Names that may have open what is lent to others now: to be told and cleared."""
        self._me = me
        self._permits = permits
        self._watches = watches
        self._born_ms = now_ms
        self._gives: dict[str, dict[str, None]] = {}
        self._rows: list[Minted] = []
        self._looks: list[tuple[str, LoanMessage]] = []
        self._looked: dict[str, tuple[int, str]] = {}
        """When a name was asked what it holds, and after which key."""
        self._look_due_ms: int | None = None
        """When somebody has to be asked again."""
        self._noted = False
        self._noted_ms = now_ms - STALE_MS

    @property
    def due_ms(self) -> int | None:
        """Return when a name has to be asked again what lives before this one have lent it."""
        return None if self._permits.ignorance is None else self._look_due_ms

    def written(self, rows: Iterable[Minted]) -> None:
        """Learn what is on disk: what was lent may be said."""
        loans = self._permits.loans
        for row in rows:
            if row.key == WHOLE_KEY:
                self._noted = True
            elif row.key.startswith(WHOLE_KEY):
                name, _, key = row.key[len(WHOLE_KEY) + 1 :].partition("\x1f")
                one = loans.written(row)
                if one is not None and one.answer and one.told:
                    self._answer(key, name, one)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to say, to write or to tell of."""
        return not (self._looks or self._gives or self._rows or self.taken_back)

    def clear(self) -> tuple[list[tuple[str, LoanMessage]], list[Minted]]:
        """Return what is to be said, and what is to be written, since the last time."""
        out, self._looks = self._looks, []
        for name, keys in self._gives.items():
            out += [(name, message) for message in self._give_messages(name, list(keys))]
        self._gives = {}
        rows, self._rows = self._rows, []
        return out, rows

    # ── What is lent ─────────────────────────────────────────────────────────

    def asked(self, ask: LoanAsk, now_ms: int) -> None:
        """Take what a borrower says: believe what it holds, lend it more, and answer."""
        for row in ask.rows:
            if ask.lender_boot != self._me.boot:
                if ask.lender_boot < self._me.boot:
                    self._say_give(row.key, ask.name)
                continue
            share = self._permits.here(row.key)
            if share is None and not row.level and row.key not in self._permits.loans.lent:
                continue
            one = self._permits.loans.lent_to(row.key, ask.name)
            if ask.boot < one.boot:
                continue
            self._believe(row, one, share, ask.boot, now_ms)
            lent = row.wants > 0 and share is not None and self._lend(row, one, share, ask, now_ms)
            if not lent and (row.wants or row.level or row.number != one.number):
                self._answer(row.key, ask.name, one)

    def _believe(
        self, row: LoanRow, one: Lent, share: Share | None, boot: int, now_ms: int
    ) -> None:
        if one.hear(boot, row.number, row.level, now_ms=now_ms) and share is not None:
            self._permits.fit(share)

    def _lend(self, row: LoanRow, one: Lent, share: Share, ask: LoanAsk, now_ms: int) -> bool:
        """Lend what can be spared, if it can be now; it is said when it is on disk."""
        roster = self._permits.roster
        if roster is None or ask.name not in roster.names:
            return False
        if not one.told or one.boot != ask.boot or row.number != one.number:
            return False
        watch = self._watches[row.key]
        watch.look(share, now_ms=now_ms)
        more = min(self._spare(row.key, share, watch, now_ms), row.wants)
        if more <= 0:
            return False
        loans = self._permits.loans
        loans.revision += 1
        one.give(more, loans.revision)
        one.answer, one.tried_ms = True, now_ms
        self._permits.fit(share)
        self._rows.append(row_of(row.key, ask.name, one))
        return True

    def _spare(self, key: str, share: Share, watch: Watch, now_ms: int) -> int:
        """Return how many it would lend now."""
        free = self._free(key, share)
        wanted_here = now_ms - watch.demand_ms < OWN_MS
        return free // 2 if wanted_here else (free + 1) // 2

    def _free(self, key: str, share: Share) -> int:
        """Return how many of its own part are neither open, lent nor waited for; what it holds of others is not lent on."""
        permits = self._permits
        own = permits.part(key) - permits.loans.lent_of(key)
        return max(0, min(share.left, own) - share.wanted)

    def _answer(self, key: str, name: str, one: Lent) -> None:
        """Say how it stands, or as soon as the disk has it."""
        one.answer = not one.told
        if one.told:
            self._say_give(key, name)

    def _say_give(self, key: str, name: str) -> None:
        self._gives.setdefault(name, {})[key] = None

    def _give_messages(self, name: str, keys: Sequence[str]) -> Iterator[LoanGive]:
        by_boot: dict[int, list[LentRow]] = {}
        for key in keys:
            one = self._permits.loans.lent.get(key, {}).get(name)
            share = self._permits.peek(key)
            free = 0 if share is None else self._free(key, share)
            watch = self._watches.get(key)
            if one is None or not one.told:
                row = LentRow(key, 0, 0, 0, free)
            else:
                calls = 0 if watch is None else watch.calls.get(name, 0)
                row = LentRow(key, one.number, one.level, max(0, one.level - calls), free)
            boot = 0 if one is None or not one.told else one.boot
            by_boot.setdefault(boot, []).append(row)
        for boot, rows in by_boot.items():
            for at in range(0, len(rows), ROWS_MAX):
                yield LoanGive(*self._me, boot, tuple(rows[at : at + ROWS_MAX]))

    # ── As time goes by ──────────────────────────────────────────────────────

    def tend(self, key: str, lent: dict[str, Lent], now_ms: int) -> bool:
        """Ask silent borrowers, take back by the mode, and see to what is not on disk yet."""
        hurry = False
        for name, one in lent.items():
            one.heard_ms = one.heard_ms or now_ms
            silent_ms = now_ms - one.heard_ms
            if one.level and self._is_over(self._permits.mode(key), name, silent_ms, now_ms):
                one.take_back()
                self.taken_back.append(name)
                share = self._permits.peek(key)
                if share is not None:
                    self._permits.fit(share)
            if not one.told:
                hurry = True
                if now_ms - one.tried_ms >= RENEW_MS:
                    one.tried_ms = now_ms
                    self._rows.append(row_of(key, name, one))
            elif (
                one.level and name in self.alive and min(silent_ms, now_ms - one.said_ms) >= POKE_MS
            ):
                one.said_ms = now_ms
                self._say_give(key, name)
        return hurry

    def _is_over(self, mode: str, name: str, silent_ms: int, now_ms: int) -> bool:
        if mode == "strict" or now_ms - self._born_ms < STALE_MS:
            return silent_ms >= OVER_MS
        if mode == "balanced":
            return name not in self.alive and silent_ms >= RENEW_MS
        return silent_ms >= STALE_MS

    def call_back(self, key: str, watch: Watch, share: Share, now_ms: int) -> None:
        """Want back what was lent, as far as it is needed here."""
        lent = self._permits.loans.lent.get(key, {})
        short = watch.short_ms == now_ms
        need = max(1, share.wanted - share.left) if short else max(0, -share.left)
        calls: dict[str, int] = {}
        for name, one in sorted(lent.items(), key=lambda pair: -pair[1].level):
            called = min(need, one.level)
            need -= called
            if called:
                calls[name] = called
        if calls == watch.calls and now_ms - watch.called_ms < CALM_MS:
            return
        if calls or watch.calls:
            watch.called_ms = now_ms
            for name in {**calls, **watch.calls}:
                if name in self.alive and name in lent and lent[name].told:
                    self._say_give(key, name)
        watch.calls = calls

    def tidy(self, now_ms: int) -> None:
        """Write what is less by now than the disk says, or more after a session began anew."""
        loans = self._permits.loans
        for key, lent in loans.lent.items():
            for name, one in lent.items():
                late = one.written < one.revision and now_ms - one.tried_ms >= STALE_MS
                if one.told and (one.dirty or late):
                    loans.revision += 1
                    one.revision, one.tried_ms, one.dirty = loans.revision, now_ms, False
                    self._rows.append(row_of(key, name, one))

    # ── What lives before have lent ──────────────────────────────────────────

    def see(self, now_ms: int) -> None:
        """Find out what is not known, and let the disk have it."""
        unknown = self._permits.ignorance
        if unknown is not None:
            self._find_out(unknown, now_ms)
        if not self._noted and (unknown is None or not unknown.silent):
            self._note(now_ms)

    def _find_out(self, unknown: Ignorance, now_ms: int) -> None:
        """Ask all names what they hold of this one, until they have said so."""
        permits, roster = self._permits, self._permits.roster
        if roster is None:
            return
        silent = [
            name for name in roster.names if name not in unknown.answered and name != self._me.name
        ]
        alive = [name for name in silent if name in self.alive]
        late = now_ms - unknown.since_ms >= AVAILABLE_MS
        before = (unknown.silent, unknown.silent_alive, unknown.late)
        unknown.silent, unknown.silent_alive, unknown.late = bool(silent), bool(alive), late
        if before != (unknown.silent, unknown.silent_alive, unknown.late):
            self.taken_back += silent
            permits.refresh()
        self._look_due_ms = now_ms + RENEW_MS if alive else None
        for name in alive:
            asked_ms, after = self._looked.get(name, (now_ms - RENEW_MS, ""))
            if now_ms - asked_ms >= RENEW_MS:
                self._look_at(name, after, now_ms)

    def _look_at(self, name: str, after: str, now_ms: int) -> None:
        self._looked[name] = (now_ms, after)
        self._looks.append((name, LoanLook(*self._me, after)))

    def told(self, tell: LoanTell, now_ms: int) -> None:
        """Take what a name says that it holds, as an answer to having been asked."""
        _, after = self._looked.get(tell.name, (0, ""))
        permits = self._permits
        unknown = permits.ignorance
        if unknown is None or tell.lender_boot != self._me.boot or tell.after_key != after:
            return
        if tell.name in unknown.answered:
            return
        permits.spread(tell.width)
        for row in tell.rows:
            one = permits.loans.lent_to(row.key, tell.name)
            self._believe(row, one, permits.here(row.key), tell.boot, now_ms)
        if tell.more and tell.rows:
            self._look_at(tell.name, tell.rows[-1].key, now_ms)
        else:
            unknown.answered[tell.name] = None
            self._find_out(unknown, now_ms)

    def _note(self, now_ms: int) -> None:
        """Let the disk have all that is lent, and that it is all."""
        if now_ms - self._noted_ms >= STALE_MS:
            self._noted_ms = now_ms
            self._rows += [Minted(WHOLE_KEY, 0, 1), *self._permits.loans.rows()]
