"""Voter: the half of a node that promises slots to owners, and stores the totals that they mint.

A promise is for one slot, to one (name, boot, term), for LEASE_MS from its receipt on this node's
own clock. While it runs no other life gets one, and a term is granted to one life only and never
after a larger one: of two owners of a slot the one with the smaller term can store nothing any more
at a majority. So a total that a majority has stored under a term is known to every later owner, and
lease times only decide who is useful.

A voter that has just begun to live has forgotten:

    its promises            it promises nothing for SILENT_AFTER_BOOT_MS; until then they have run out
    what it had stored      it is *blind* for windows that began before it could vote, and does not store their rows;
                            its vote names the rows it stored, so a holder does not count it for the others
    what is on its disk     windows of LONG_MS and more, if nothing of them is missing there: not blind for those

It stops being blind as time passes, or when it has the records of a majority of the others (see
`voter_recovery`). Limits that are `volatile` are never on disk; for their windows of LONG_MS it is
blind as for shorter ones, for longer ones for ten seconds, and then it forgets for good. A clock
that was far ahead at a boot blinds no voter for long: for windows that begin more than ten seconds
after it learned of it a voter is not blind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from smg_mesh.escrow.election.minted_records import LEVEL_MARK, Record, Records, window_ms_of
from smg_mesh.escrow.election.voter_recovery import Blind, Recovery
from smg_mesh.escrow.limit_model import LEASE_MS, SILENT_AFTER_BOOT_MS, Life, Roster
from smg_mesh.escrow.messages.messages import (
    LeaseAsk,
    LeaseVote,
    Minted,
    RecordsAsk,
    RecordsTell,
    Stored,
)

LONG_MS: Final = 10_000
"""Windows from this length on are on disk before they are voted for, unless they are volatile."""
AHEAD_MS: Final = 1_000
"""Nothing is stored of windows that begin later than this: less than a voter is blind for after its boot."""
OVER_MS: Final = 1_000
"""Clocks may differ by so much before a window counts as over."""
NOBODY: Final = bytes(16)
PROMISED: Final = "promised"
OLD_TERM: Final = "old term"
MONTH_MS: Final = 2_678_400_000
_NEVER_MS: Final = 1 << 62
BLIND_KEY: Final = f"!blind#none/{MONTH_MS}"
"""On disk: of windows that began before this moment something is missing in the records there."""
SIGHT_KEY: Final = f"!sight#none/{MONTH_MS}"
"""On disk: no more, for all moments up to this one."""


class Promise(NamedTuple):
    """Promise of a slot: to which life, under which term, until when."""

    name: str
    boot: int
    term: int


UNKNOWN: Final = Promise("", 0, 0)
"""A life before this one may have promised it. Under a term of which nothing else is known, it was to whoever asks
under it: no two lives do."""
_NO_PROMISES: Final[Mapping[int, tuple[Promise, int]]] = {}


class _Spell(NamedTuple):
    """Something of short windows that began before `short_ms`, on some
    node's wall clock, may be forgotten.

    Until then, on this node's other clock, all are over that may be meant, whatever the wall clock was.
    """

    short_ms: int
    until_ms: int

    def rest_ms(self, now_ms: int) -> int:
        """Return how long it goes on."""
        return 0 if self.until_ms >= _NEVER_MS else max(0, self.until_ms - now_ms)

    def over(self, wall_ms: int) -> "_Spell":
        """Return it from then on: windows to come are not meant."""
        return _Spell(min(self.short_ms, wall_ms), _NEVER_MS)

    def worse(self, told: Blind, now_ms: int) -> "_Spell":
        """Return it with what another voter tells."""
        until_ms = now_ms + max(self.rest_ms(now_ms), told.short_for_ms)
        return _Spell(max(self.short_ms, told.short_ms), until_ms)


class Voter:
    """Voter of one life of one node, for all slots. `roster`, `basis`, `adopted_ms` and
    `founder` are set by its owner.
    """

    def __init__(
        self,
        me: Life,
        *,
        now_ms: int,
        wall_ms: int,
        remembered: Mapping[tuple[str, int], int] | None,
        fresh: bool = False,
        volatile: Callable[[str], bool] = lambda key: False,
    ) -> None:
        """Begin to live with what the disk says: None if there is none, or if something of it is missing.

        `fresh`: without a roster; then an empty memory counts only for a `founder` of the first
        one, for a node that is told that it is in a running one has lost its disk.
        """
        self.roster: Roster | None = None
        self.basis = b""
        self.adopted_ms = 0
        self.founder = False
        self.records = Records()
        self._me = me
        self._volatile = volatile
        self._silent_until_ms = now_ms + SILENT_AFTER_BOOT_MS
        self._volatile_blind_until_ms = now_ms + SILENT_AFTER_BOOT_MS + LONG_MS
        self._remembers = remembered is not None and not (fresh and not remembered)
        self._empty = remembered is not None and not self._remembers
        blind_ms = wall_ms + SILENT_AFTER_BOOT_MS
        long_ms = _blind_before_ms(remembered or {}) if self._remembers else blind_ms
        self._own_ms = _blind_at_some_time_ms(remembered or {}) if self._remembers else blind_ms
        self._begins_empty = self._empty
        self._forgot = _Spell(blind_ms, self._volatile_blind_until_ms)
        """What its own boot took from it, of short windows."""
        self._told = _Spell(0, _NEVER_MS)
        """What those forgot from whom it has its records."""
        self._long_ms = long_ms
        self._written = long_ms if self._remembers else 0
        self._promises: dict[int, tuple[Promise, int]] = {}
        self._last: dict[int, Promise] = {}
        self._before: dict[int, Promise] = {}
        self._recovery = Recovery(me, silent_until_ms=self._silent_until_ms)
        for (key, window), total in sorted((remembered or {}).items()):
            if key in (BLIND_KEY, SIGHT_KEY):
                continue
            self.records.remember(key, window, total, durable=total, now_ms=now_ms)

    def is_later(self, told_ms: int) -> None:
        """Learn how late it was for others when they told it the roster: without a memory it may have voted until then."""
        if self._remembers:
            return
        blind_ms = told_ms + SILENT_AFTER_BOOT_MS
        self._long_ms, self._own_ms = max(self._long_ms, blind_ms), max(self._own_ms, blind_ms)
        self._forgot = self._forgot._replace(short_ms=max(self._forgot.short_ms, blind_ms))

    @property
    def synced(self) -> bool:
        """Whether it has what was stored under the rosters before this one."""
        return self.roster is not None and self._recovery.synced(self.roster, founder=self.founder)

    @property
    def memory_ms(self) -> int:
        """From when on this node's own disk has all that was written on it, whatever others have told since (wall clock);
        0: always.
        """
        return 0 if self.founder and self._begins_empty else self._own_ms

    def asked(
        self, ask: LeaseAsk, *, now_ms: int, wall_ms: int
    ) -> tuple[LeaseVote, tuple[Minted, ...]]:
        """Return the vote, and the rows that must be on disk before it may be sent."""
        self._see_again(now_ms, wall_ms)
        why = self._refusal(ask, now_ms)
        if ask.release:
            self._released(ask)
            why = why or "released"
        if why:
            return self._vote(ask, (), why), ()
        promise = Promise(ask.name, ask.boot, ask.term)
        before = self._last.get(ask.slot)
        if before is not None and before == promise:
            promise = before  # Whoever waits for it to end knows it by its identity.
        elif before is not None:
            self._before[ask.slot] = before
        self._last[ask.slot] = promise
        self._promises[ask.slot] = promise, now_ms + LEASE_MS
        stored: list[Stored] = []
        unwritten: list[Minted] = []
        for row in ask.minted:
            record = self._stored(row, ask.term, now_ms, wall_ms)
            if isinstance(record, Stored):
                stored.append(record)
            elif record is not None:
                stored.append(Stored(row.key, row.window, record.base, record.total))
                if record.durable < record.total and self._on_disk(row.key):
                    unwritten.append(Minted(row.key, row.window, record.total))
        return self._vote(ask, tuple(stored), ""), tuple(unwritten)

    def persisted(self, rows: Iterable[Minted]) -> None:
        """Learn what is on disk now."""
        self.records.persisted(rows)

    def unwritten(self) -> tuple[Minted, ...]:
        """Return what must be on disk beside a roster that is kept there: that something is missing in its records.

        Else a later life would take them for whole. Empty again once it was returned, until something changes.
        """
        long_ms = self._blind_now().long_ms
        if long_ms == self._written or (self._empty and self.roster is None and self.founder):
            return ()
        before_ms, self._written = self._written, long_ms
        key, moment_ms = (BLIND_KEY, long_ms) if long_ms > before_ms else (SIGHT_KEY, before_ms)
        return (Minted(key, moment_ms // MONTH_MS, moment_ms),)

    def promised(self, slot: int, *, now_ms: int) -> Promise | None:
        """Return to which life a slot is promised, while it is; without a
        name while this voter may not say.
        """
        if now_ms < self._silent_until_ms:
            return UNKNOWN
        promise = self._promises.get(slot)
        return promise[0] if promise is not None and now_ms < promise[1] else None

    def given(self, *, now_ms: int) -> Mapping[int, tuple[Promise, int]]:
        """Return what is promised by slot, and until when, if this voter may say it; it changes as votes come."""
        return _NO_PROMISES if now_ms < self._silent_until_ms else self._promises

    def asks(self, *, now_ms: int) -> list[tuple[str, RecordsAsk]]:
        """Return whom to ask for records now, and what: after a boot, and after a change of the roster."""
        if self.roster is None:
            return []
        return self._recovery.asks(self.roster, founder=self.founder, now_ms=now_ms)

    def records_asked(self, ask: RecordsAsk, *, now_ms: int) -> RecordsTell | None:
        """Return a page of what is stored here; None for one who goes by another roster."""
        roster = self.roster
        if roster is None or (ask.roster, ask.roster_version) != (roster.id, roster.version):
            return None
        if self._me.name not in roster.names or now_ms < self._silent_until_ms:
            return None
        blind = self._blind_yet(now_ms)
        return self._recovery.told_to(ask, self.records, self._terms(), blind, synced=self.synced)

    def records_told(self, tell: RecordsTell, *, now_ms: int) -> None:
        """Take a page of what another voter has stored."""
        if self.roster is None or now_ms < self._silent_until_ms:
            return
        for row in self._recovery.accepted(tell, self.roster):
            self.records.remember(row.key, row.window, row.total, durable=0, now_ms=now_ms)
        for slot, term in tell.terms:
            if term > self._seen(slot):
                self._last[slot] = Promise(*UNKNOWN[:2], term)
                self._before.pop(slot, None)
        gathered = self._recovery.gathered(self.roster)
        if gathered is not None:
            long_ms = 0 if gathered.whole else self._blind_now().long_ms
            self._long_ms = max(long_ms, gathered.told.long_ms)
            if gathered.whole:
                self._forgot = self._told = _Spell(0, _NEVER_MS)
            self._told = self._told.worse(gathered.told, now_ms)
            self._remembers = True
        if self._recovery.recovered:
            self._volatile_blind_until_ms = now_ms

    def tidy(self, *, now_ms: int, wall_ms: int) -> None:
        """Forget what no owner can ask for any more; about once a second."""
        self.records.tidy(now_ms=now_ms, wall_ms=wall_ms)

    def _refusal(self, ask: LeaseAsk, now_ms: int) -> str:
        roster = self.roster
        if roster is None or not roster.counts or self._me.name not in roster.names:
            return "not in a roster"
        if (ask.roster, ask.roster_version) != (roster.id, roster.version):
            return "another roster"
        if ask.name not in roster.names:
            return "not in the roster"
        if now_ms < self._silent_until_ms:
            return "just booted"
        promise = self.promised(ask.slot, now_ms=now_ms)
        if promise is not None and promise[:2] != (ask.name, ask.boot):
            return PROMISED
        last = self._last.get(ask.slot)
        if last is None or ask.term > last.term:
            return ""
        same = ask.term == last.term and last[:2] in ((ask.name, ask.boot), UNKNOWN[:2])
        return "" if same else OLD_TERM

    def _released(self, ask: LeaseAsk) -> None:
        """Take a promise back. What was never used counts as never promised: an owner of before may go on."""
        given = Promise(ask.name, ask.boot, ask.term)
        promise = self._promises.get(ask.slot)
        if promise is not None and promise[0] == given:
            del self._promises[ask.slot]
        before = self._before.get(ask.slot)
        if ask.unused and before is not None and self._last.get(ask.slot) == given:
            self._last[ask.slot] = before

    def _stored(self, row: Minted, term: int, now_ms: int, wall_ms: int) -> Record | Stored | None:
        """Store a row, or answer what is asked of a level; None for what this voter may not or cannot store."""
        if LEVEL_MARK in row.key:
            return self._level(row, term, now_ms)
        length_ms = window_ms_of(row.key)
        if length_ms <= 0 or row.window * length_ms > wall_ms + AHEAD_MS:
            return None
        over = (row.window + 3) * length_ms + OVER_MS < wall_ms
        if over and self.records.get(row.key, row.window) is None:
            return None
        if self._is_blind(row.key, row.window * length_ms, length_ms, now_ms):
            return None
        return self.records.store(row, term, now_ms=now_ms)

    def _level(self, row: Minted, term: int, now_ms: int) -> Record | Stored | None:
        if now_ms < self._volatile_blind_until_ms and not self.founder:
            return None
        if row.window > 0:
            return self.records.store(row, term, now_ms=now_ms)
        record = self.records.get(row.key, self.records.level(row.key))
        if record is None:
            return Stored(row.key, 0, 0, 0)
        return Stored(row.key, self.records.level(row.key), record.base, record.total)

    def _is_blind(self, key: str, began_ms: int, length_ms: int, now_ms: int) -> bool:
        if length_ms < LONG_MS:
            return began_ms < self._blind_now().short_ms
        if self._volatile(key):
            if length_ms == LONG_MS:
                return began_ms < self._blind_now().short_ms
            return now_ms < self._volatile_blind_until_ms and began_ms < self._blind_now().short_ms
        return began_ms < self._blind_now().long_ms

    def _blind_now(self) -> Blind:
        short_ms = max(self._forgot.short_ms, self._told.short_ms)
        if self.founder and self._empty and not self._remembers:
            return Blind(short_ms, 0)
        return Blind(short_ms, self._long_ms)

    def _blind_yet(self, now_ms: int) -> Blind:
        for_ms = max(self._forgot.rest_ms(now_ms), self._told.rest_ms(now_ms))
        return self._blind_now()._replace(short_for_ms=for_ms)

    def _see_again(self, now_ms: int, wall_ms: int) -> None:
        """Be blind for no window to come, once short ones have passed: a clock was far ahead that said so."""
        if now_ms >= self._forgot.until_ms:
            self._forgot = self._forgot.over(wall_ms)
        if now_ms >= self._told.until_ms:
            self._told = self._told.over(wall_ms)

    def _on_disk(self, key: str) -> bool:
        return window_ms_of(key) >= LONG_MS and not self._volatile(key)

    def _seen(self, slot: int) -> int:
        last = self._last.get(slot)
        return last.term if last is not None else 0

    def _terms(self) -> Sequence[tuple[int, int]]:
        return [(slot, last.term) for slot, last in sorted(self._last.items())]

    def _vote(self, ask: LeaseAsk, stored: tuple[Stored, ...], why: str) -> LeaseVote:
        roster = self.roster
        return LeaseVote(
            ask.slot,
            ask.term,
            self._me.name,
            self._me.boot,
            not why,
            self._seen(ask.slot),
            ask.sent_ms,
            roster.id if roster is not None else NOBODY,
            roster.version if roster is not None else 0,
            self.basis,
            self.adopted_ms,
            stored,
            why,
        )


def _blind_at_some_time_ms(remembered: Mapping[tuple[str, int], int]) -> int:
    """Return the moment before which something was missing on a disk at some time; 0 for never."""
    return max((total for (name, _), total in remembered.items() if name == BLIND_KEY), default=0)


def _blind_before_ms(remembered: Mapping[tuple[str, int], int]) -> int:
    """Return for windows before which moment a disk says that its records are not whole; 0 for none."""
    moments_ms = {
        key: max((total for (name, _), total in remembered.items() if name == key), default=0)
        for key in (BLIND_KEY, SIGHT_KEY)
    }
    return moments_ms[BLIND_KEY] if moments_ms[BLIND_KEY] > moments_ms[SIGHT_KEY] else 0
