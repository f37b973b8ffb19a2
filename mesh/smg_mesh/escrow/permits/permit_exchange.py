"""Permit exchange: a node that is short asks others for free permits, and
gives back what it does not need.

    short      asks one name at a time, first one with some free; what it once lent, it wants back
    gives back what it has not needed for a second, and what is wanted back as soon as it is free
    renews     says every second what it holds, while it holds anything; unanswered for 5 s, it admits nothing on that

The other half is the `Lender`. Nothing is sent and no node is woken while none is short and nothing
is lent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.limit_model import Life, Roster
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
from smg_mesh.escrow.permits.concurrency_permits import OVER_MS, Ignorance, Permits
from smg_mesh.escrow.permits.permit_lender import CALM_MS, RENEW_MS, STALE_MS, Lender
from smg_mesh.escrow.permits.permit_loans import Borrowed, Peer, Watch
from smg_mesh.escrow.spendable_share import Share

TICK_MS: Final = 25
AGAIN_MS: Final = 500
"""Who has nothing free is asked again after that."""
ANSWER_MS: Final = 200
"""Nobody waits longer for an answer before another one is asked."""
QUIET_MS: Final = 600_000
"""So long after the last word no packet is under way any more."""
_NEED: Final = 1.3
_TELL_ROWS: Final = 4
"""Of keys that are as long as keys may be; shorter ones come in as many pages."""


class Lending:
    """Permit exchange of one life of a node; what is to be said and
    written is fetched with `clear`.
    """

    def __init__(
        self,
        me: Life,
        limits: Limits,
        *,
        roster: Roster | None,
        remembered: Mapping[tuple[str, int], int] | None,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """Begin with what is on disk."""
        self._me = me
        self._permits = self.permits = Permits(me, limits, now_ms=now_ms, roster=roster)
        loans = self._permits.loans
        if not loans.recall(remembered or {}):
            self._permits.ignorance = Ignorance(now_ms)
        # A disk that could not be read may say more later, of less than this.
        loans.revision = max(loans.revision, wall_ms << 10)
        self._watches: dict[str, Watch] = {}
        self._lender = Lender(me, self._permits, self._watches, now_ms=now_ms)
        self._alive: dict[str, int] = {}
        self._asks: dict[str, dict[str, int]] = {}
        self._tells: list[tuple[str, LoanMessage]] = []
        self._busy = self._has_loans()
        self._due_ms = now_ms
        self._ticked_ms = now_ms - TICK_MS
        self._tidied_ms = now_ms

    # ── Inputs ───────────────────────────────────────────────────────────────

    def members(self, alive: Sequence[Life], *, now_ms: int) -> None:
        """Learn which members live, or that the roster is another one."""
        self._alive = {life.name: life.boot for life in alive if life.name != self._me.name}
        for name, boot in self._alive.items():
            self._permits.loans.see(name, boot)
        self._lender.alive = self._alive
        self._permits.others = len(self._others())
        self._lender.see(now_ms)

    def founded(self) -> None:
        """Learn that no life before this one can have lent anything."""
        self._permits.ignorance = None

    def heard(self, message: LoanMessage, *, now_ms: int) -> None:
        """Take what another name says; of lives before its last one nothing counts."""
        loans = self._permits.loans
        self._permits.pass_time(now_ms)
        loans.see(message.name, message.boot)
        if message.boot < loans.lives[message.name]:
            return
        self._busy = True
        match message:
            case LoanAsk():
                for row in message.rows:
                    self._watch(row.key, now_ms)
                self._lender.asked(message, now_ms)
            case LoanGive():
                self._given(message, now_ms)
            case LoanLook():
                self._looked_at(message)
            case LoanTell():
                self._lender.told(message, now_ms)

    def written(self, rows: Iterable[Minted]) -> None:
        """Learn what is on disk: what was lent may be said."""
        self._lender.written(rows)

    def tick(self, *, now_ms: int) -> None:
        """Do what is due."""
        permits, loans = self._permits, self._permits.loans
        permits.pass_time(now_ms)
        self._lender.see(now_ms)
        if not (permits.short or self._busy) or now_ms < self._next_ms():
            return
        self._ticked_ms = now_ms
        hurry = False
        for key in list({**permits.short, **self._watches, **loans.lent, **loans.held}):
            hurry = self._tend(key, now_ms) or hurry
        self._due_ms = now_ms + (TICK_MS if hurry else CALM_MS)
        self._busy = bool(self._watches) or self._has_loans()
        if now_ms - self._tidied_ms >= RENEW_MS:
            self._tidied_ms = now_ms
            self._lender.tidy(now_ms)
            loans.forget(quiet_ms=QUIET_MS, now_ms=now_ms)

    def due_ms(self) -> int | None:
        """Return when the next tick is needed; None while no key is short and nothing is lent."""
        dues = [self._next_ms()] if self._permits.short or self._busy else []
        if self._lender.due_ms is not None:
            dues.append(self._lender.due_ms)
        return min(dues, default=None)

    def inherited(self) -> None:
        """Learn that a life before in this process has left what it had lent and held."""
        self._busy = True

    def farewell(self) -> None:
        """Give back what is not in use: this node has no rights from now on."""
        for key, held in self._permits.loans.held.items():
            share = self._permits.peek(key)
            spent = 0 if share is None else share.spent
            self._give_back(key, held, self._permits.room(key, fresh=False) - spent)

    @property
    def silent(self) -> bool:
        """Whether `clear` would return nothing."""
        return not (self._asks or self._tells) and self._lender.silent

    def clear(self) -> tuple[list[tuple[str, LoanMessage]], list[Minted], list[str]]:
        """Return what is to be said and to be written since the last time, and of whom something was taken back."""
        out, rows = self._lender.clear()
        out += self._tells
        for name, wants in self._asks.items():
            out += [(name, message) for message in self._ask_messages(name, list(wants.items()))]
        self._asks, self._tells = {}, []
        taken, self._lender.taken_back = self._lender.taken_back, []
        return out, rows, taken

    # ── What is borrowed ─────────────────────────────────────────────────────

    def _given(self, give: LoanGive, now_ms: int) -> None:
        loans = self._permits.loans
        for row in give.rows:
            mine = give.borrower_boot == self._me.boot
            peer = self._watch(row.key, now_ms).peers.setdefault(give.name, Peer())
            peer.free, peer.heard_ms, peer.waits = row.free, now_ms, False
            one = loans.held.get(row.key, {}).get(give.name)
            if one is None and mine and (row.number or row.level):
                one = loans.held_from(row.key, give.name)
            if one is not None:
                self._hold(row, one, mine=mine, now_ms=now_ms)
            has = (0, 0) if one is None else (one.number, one.level)
            differs = has[0] == row.number and has[1] != row.level
            if differs or (not mine and (row.number or row.level or has[1])):
                self._say_ask(row.key, give.name)

    def _hold(self, row: LentRow, one: Borrowed, *, mine: bool, now_ms: int) -> None:
        if mine:
            one.take(row.number, row.level)
            if one.number == row.number:
                one.owed = max(0, one.level - row.keep)
        one.heard_ms, one.stale = now_ms, False
        share = self._permits.here(row.key)
        if share is not None:
            self._permits.fit(share)

    def _say_ask(self, key: str, name: str, wants: int = 0) -> None:
        keys = self._asks.setdefault(name, {})
        keys[key] = max(wants, keys.get(key, 0))

    def _ask_messages(self, name: str, wants: Sequence[tuple[str, int]]) -> Iterator[LoanAsk]:
        loans = self._permits.loans
        rows = []
        for key, want in wants:
            one = loans.held.get(key, {}).get(name)
            number, level = (0, 0) if one is None else (one.number, one.level)
            rows.append(LoanRow(key, number, level, want))
        boot = loans.lives.get(name, 0)
        for at in range(0, len(rows), ROWS_MAX):
            yield LoanAsk(*self._me, boot, tuple(rows[at : at + ROWS_MAX]))

    def _looked_at(self, look: LoanLook) -> None:
        loans = self._permits.loans
        keys = sorted(key for key, held in loans.held.items() if look.name in held)
        keys = [key for key in keys if key > look.after_key]
        rows = tuple(
            LoanRow(key, one.number, one.level, 0)
            for key in keys[:_TELL_ROWS]
            for one in (loans.held[key][look.name],)
        )
        width = max((names for _, names in self._permits.places()), default=0)
        more = len(keys) > len(rows)
        tell = LoanTell(*self._me, look.boot, width, look.after_key, more, rows)
        self._tells.append((look.name, tell))

    def _tend_held(self, key: str, held: dict[str, Borrowed], now_ms: int) -> bool:
        """Go on with what is held: renew it, stop where its lender is silent, and give back what is wanted back."""
        share = self._permits.peek(key)
        fit = False
        for name, one in held.items():
            if one.level and not one.stale and now_ms - one.heard_ms >= STALE_MS:
                one.stale = fit = True
            if one.level and now_ms - one.heard_ms >= OVER_MS:
                one.lower(one.level)
            if one.level and now_ms - one.said_ms >= RENEW_MS and name in self._alive:
                one.said_ms = now_ms
                self._say_ask(key, name)
        if fit and share is not None:
            self._permits.fit(share)
        owed = sum(one.owed for one in held.values() if not one.stale)
        if owed:
            free = owed + min(0, 0 if share is None else share.left)
            for name, one in held.items():
                less = 0 if one.stale else max(0, min(one.owed, free))
                if less:
                    one.lower(less)
                    free -= less
                    self._say_ask(key, name)
            if share is not None:
                self._permits.fit(share)
        return any(one.owed for one in held.values())

    def _give_back(self, key: str, held: dict[str, Borrowed], surplus: int) -> None:
        """Give back so much of what is held, of the one first who lent most."""
        for name, one in sorted(held.items(), key=lambda pair: -pair[1].level):
            less = max(0, min(surplus, one.level))
            if less:
                surplus -= less
                one.lower(less)
                self._say_ask(key, name)
        share = self._permits.peek(key)
        if share is not None:
            self._permits.fit(share)

    # ── One key ──────────────────────────────────────────────────────────────

    def _tend(self, key: str, now_ms: int) -> bool:
        """See to one key; return whether it should be looked at again soon."""
        loans, permits = self._permits.loans, self._permits
        lent, held = loans.lent.get(key, {}), loans.held.get(key, {})
        watch, share = self._watch(key, now_ms), permits.peek(key)
        watch.look(share, now_ms=now_ms)
        looked_for = permits.short.pop(key, False) is None
        hurry = self._lender.tend(key, lent, now_ms)
        hurry = self._tend_held(key, held, now_ms) or hurry
        if share is None:
            self._give_back(key, held, sum(one.level for one in held.values()))
        else:
            hurry = self._seek(key, watch, share, now_ms, looked_for=looked_for) or hurry
            self._lender.call_back(key, watch, share, now_ms)
        if now_ms - watch.since_ms >= RENEW_MS:
            if share is not None and held:
                need = int(_NEED * max(watch.peak, watch.peak_before)) + 2
                self._give_back(key, held, permits.room(key, fresh=False) - need)
            watch.since_ms, watch.peak_before, watch.peak = now_ms, watch.peak, 0
        idle = now_ms - max(watch.short_ms, watch.demand_ms) >= 2 * RENEW_MS
        if (
            idle
            and not any(one.level for one in lent.values())
            and not any(one.level for one in held.values())
        ):
            del self._watches[key]
            if share is not None:
                share.pool = permits.others
        return hurry

    def _seek(self, key: str, watch: Watch, share: Share, now_ms: int, *, looked_for: bool) -> bool:
        """Ask another name, if this node is short; return whether it is."""
        room = max(0, share.left + share.spent)
        needy = looked_for or share.wanted > 0
        low = room // 10 if needy or now_ms - watch.demand_ms < RENEW_MS else 0
        others = self._others()
        if share.left - share.wanted >= max(low, 1 if needy else 0):
            share.pool = max(share.pool, len(others))
            return False
        watch.short_ms = now_ms
        hope, best = 0, ""
        for name in others:
            peer = watch.peers.setdefault(name, Peer())
            waits = peer.waits and now_ms - peer.asked_ms < ANSWER_MS
            open_to = peer.free > 0 or peer.free < 0 or now_ms - peer.heard_ms >= AGAIN_MS
            if waits or open_to:
                hope += max(1, peer.free)
            if open_to and not waits and (not best or _before(peer, watch.peers[best])):
                best = name
        share.pool = hope
        if best and now_ms - watch.asked_ms >= TICK_MS:
            watch.asked_ms = now_ms
            peer = watch.peers[best]
            peer.asked_ms, peer.waits = now_ms, True
            wants = max(0, share.wanted - max(0, share.left)) + max(1, room // 4)
            self._say_ask(key, best, wants)
        return True

    def _next_ms(self) -> int:
        return self._ticked_ms + TICK_MS if self._permits.short else self._due_ms

    def _has_loans(self) -> bool:
        loans = self._permits.loans
        return any(
            one.level or one.dirty or not one.told
            for lent in loans.lent.values()
            for one in lent.values()
        ) or any(one.level for held in loans.held.values() for one in held.values())

    def _watch(self, key: str, now_ms: int) -> Watch:
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = Watch(now_ms)
            share = self._permits.peek(key)
            watch.offered = 0 if share is None else share.offered
        return watch

    def _others(self) -> list[str]:
        roster = self._permits.roster
        names = () if roster is None else roster.names
        return [name for name in self._alive if name in names]


def _before(one: Peer, other: Peer) -> bool:
    """Return whether the first is asked before the other: who has most, else who was not asked for longest."""
    return (-max(0, one.free), one.asked_ms) < (-max(0, other.free), other.asked_ms)
