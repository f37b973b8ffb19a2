"""Treasury: the owner's half of a node: mints what does not stand with nodes, gives it by demand.

A key is in use as long as a node asks. For such keys the owner mints the next window before it opens; at
the border it gives half of a short one by the demand of the window before, and keeps the rest for those that
ask. When a node wants more than is left here, it calls those that hold some: what they do not need comes back.
Nodes at work are told when clearly less can be spent than they were told before: clients are told of it.

Nothing is given without a look at the lease first, and nothing for windows that lie farther from this node's
clock than the next. A pool is kept until its window is long over, since the totals in it are what makes
a repeated ask harmless; a window that was forgotten is never minted again by this life.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

from smg_mesh.escrow.book_rows import Minting
from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.limit_model import Life, Limit, Roster, slot_of, window_of
from smg_mesh.escrow.messages.effects import Difference
from smg_mesh.escrow.messages.messages import (
    ROWS_MAX,
    AskRow,
    GiveRow,
    RightsAsk,
    RightsGive,
    Stored,
)
from smg_mesh.escrow.owning import pool_rounds
from smg_mesh.escrow.owning.key_book import NEVER_MS, Agenda, Book
from smg_mesh.escrow.owning.life_sightings import Sightings
from smg_mesh.escrow.owning.overspend_check import reckon
from smg_mesh.escrow.owning.ownership import Ownership
from smg_mesh.escrow.owning.treasury_timing import (
    AHEAD_MS,
    ALLOWED_FOR_MS,
    AUDIT_MS,
    GONE_MAX,
    HOT_MS,
    KEPT_MS,
    KEPT_WINDOWS,
    LOOK_MS,
    NEWS_FOR_MS,
    NEWS_MS,
    SERVE_MS,
    STEP_MS,
)
from smg_mesh.escrow.owning.window_pool import Pool
from smg_mesh.escrow.spending.lived_time import LivedTime
from smg_mesh.escrow.spending.standing_rights import SLICE_MS
from smg_mesh.escrow.spending.visited_windows import Visited

Gives = dict[Life, list[GiveRow]]


class Treasury:
    """Treasury of one life of a node, for all slots; it has pools where this node is the owner."""

    def __init__(self, me: Life, limits: Limits, *, lived: LivedTime | None = None) -> None:
        """`lived` says which windows were over by the clock of this node, though it may be back in them."""
        self._me = me
        self._limits = limits
        self._lived = lived or LivedTime(None, now_ms=0, wall_ms=0)
        self._books: dict[str, Book] = {}
        self._hot: dict[str, Book] = {}
        self._agenda = Agenda()
        self._differences: list[Difference] = []
        self._roster: Roster | None = None
        self._apart_ms = 0
        """How far the wall clock is from the other one."""
        self._gone: OrderedDict[str, Visited] = OrderedDict()
        """What was forgotten of keys that nobody asks for any more."""
        self._asked_ms: dict[Life, int] = {}
        self._sightings = Sightings()
        self._kept: list[GiveRow] = []
        """What this node gives itself, of terms that are over."""
        self._alone_ms = -1
        """Since when this node is the best of a side without a majority (wall clock)."""
        self._forget_ms = 0

    def asked(
        self,
        ask: RightsAsk,
        *,
        ownership: Callable[[int], Ownership | None],
        alone: bool,
        roster: Roster | None,
        now_ms: int,
        wall_ms: int,
        alive: Sequence[Life] = (),
    ) -> RightsGive | None:
        """Take what a node says of itself, and return what it is given for it.

        `ownership(slot)` is the lease of a slot as far as this node has one. `alone`: this node is the best
        candidate of a side without a majority, and owns keys of mode `available` without a lease.
        """
        life = Life(ask.name, ask.boot)
        self._lived.see(now_ms=now_ms, wall_ms=wall_ms)
        if not alone:
            self._alone_ms = -1
        elif self._alone_ms < 0:
            self._alone_ms = wall_ms
        self._asked_ms[life] = max(ask.sent_ms, self._asked_ms.get(life, 0))
        rows = []
        for row in ask.rows:
            limit = self._limits.get(row.key)
            if limit is None or not limit.window_ms:
                continue
            if abs(row.window - window_of(wall_ms, limit.window_ms)) > 1:
                continue
            owns = ownership(slot_of(row.key))
            pool = self._pool_for(limit, row.window, owns, roster, now_ms=now_ms, wall_ms=wall_ms)
            if pool is not None:
                self._answer(pool, life, row, ask.sent_ms, now_ms=now_ms, wall_ms=wall_ms)
                if not pool.short:
                    leased = owns if pool.term else None
                    self._mint(pool, leased, roster, now_ms=now_ms, wall_ms=wall_ms)
                rows.append(pool.row_for(life, alive))
                if pool_rounds.tells_news(limit) and pool.behind(
                    rows[-1].free, since_ms=now_ms - NEWS_FOR_MS
                ):
                    self._agenda.stir(self._books[row.key], now_ms + NEWS_MS)
        if not rows:
            return None
        return RightsGive(self._me.name, life.boot, ask.sent_ms, tuple(rows))

    def tick(
        self,
        *,
        ownership: Callable[[int], Ownership | None],
        alive: Sequence[Life],
        roster: Roster | None,
        now_ms: int,
        wall_ms: int,
    ) -> list[tuple[Life, RightsGive]]:
        """Wish for what has to be minted, open windows, give to those who wait, forget what is over.

        Looks at the books that are due, and at no others.
        """
        gives: Gives = {}
        self._lived.see(now_ms=now_ms, wall_ms=wall_ms)
        self._sightings.see(alive, wall_ms)
        if roster is not self._roster or abs(wall_ms - now_ms - self._apart_ms) > STEP_MS:
            self._roster, self._apart_ms = roster, wall_ms - now_ms
            self.changed(now_ms=now_ms)
        for book in self._agenda.due(now_ms):
            limit = self._limits.get(book.key)
            quiet_ms = max(HOT_MS, 2 * min(limit.window_ms, SLICE_MS)) if limit else 0
            if limit is None or now_ms - book.heard_ms > quiet_ms:
                self._hot.pop(book.key, None)
                continue
            self._look_after(
                book, limit, ownership, alive, roster, gives, now_ms=now_ms, wall_ms=wall_ms
            )
        if now_ms >= self._forget_ms:
            self._forget_ms = now_ms + 1_000
            self._forget(alive, ownership, wall_ms)
        kept, self._kept = self._kept, []
        said = [(self._me, give) for give in self._gives(self._me, kept, 0)]
        for life, rows in gives.items():
            said += [(life, give) for give in self._gives(life, rows, self._asked_ms.get(life, 0))]
        return said

    def stored(self, rows: Iterable[Stored], owns: Ownership, *, now_ms: int, wall_ms: int) -> None:
        """Learn that a voter has stored something under the term of now: with a majority of them it may be given."""
        term = owns.term(now_ms=now_ms)
        for row in rows:
            book = self._hot.get(row.key)
            pool = book.pools.get((row.window, term)) if book is not None else None
            if book is None or pool is None or wall_ms < pool.began_ms:
                continue
            new = owns.made(row.key, row.window) != pool.made
            if new or owns.minted(row.key, row.window) != pool.minted:
                self._agenda.stir(book, now_ms)

    def inherited(self, slot: int, *, now_ms: int) -> None:
        """Learn that this node is the owner of a slot now, or is not any more."""
        for book in self._hot.values():
            if book.slot == slot:
                self._agenda.stir(book, now_ms)

    def changed(self, *, now_ms: int) -> None:
        """Learn that limits, roster or clock are others than before: everything is looked at."""
        for book in self._hot.values():
            self._agenda.stir(book, now_ms)

    def due_ms(self) -> int | None:
        """Return when the next tick is needed; None when there is no pool in use."""
        return self._agenda.next_ms()

    def differences(self) -> list[Difference]:
        """Return what did not add up in windows that are over, each once."""
        found, self._differences = self._differences, []
        return found

    def rows(self) -> list[Minting]:
        """Return the last windows of every key under every term of this node, oldest first."""
        pools = [pool for book in self._books.values() for pool in book.pools.values()]
        return [pool.row(self._me) for pool in pools]

    def minted(self, key: str, window: int) -> int:
        """Return what there is of a window in all, -1 where this node does not know."""
        pool = self._newest(key, window)
        return pool.minted if pool is not None else -1

    def pool(self, key: str, window: int) -> int:
        """Return what is left here to be given; -1 where this node is not the owner."""
        pool = self._newest(key, window)
        return pool.left + pool.unminted if pool is not None else -1

    def _look_after(
        self,
        book: Book,
        limit: Limit,
        ownership: Callable[[int], Ownership | None],
        alive: Sequence[Life],
        roster: Roster | None,
        gives: Gives,
        *,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """Do for one key what is to be done now, and say when to look at it again."""
        self._agenda.stir(book, now_ms + LOOK_MS)
        owns = ownership(book.slot)
        if owns is None or not owns.term(now_ms=now_ms):
            self._kept += pool_rounds.kept_rows(book, self._me, wall_ms=wall_ms)
            return
        if limit.older:
            self._agenda.stir(book, now_ms + ALLOWED_FOR_MS)
        window = window_of(wall_ms, limit.window_ms)
        pool = self._pool_for(limit, window, owns, roster, now_ms=now_ms, wall_ms=wall_ms)
        if pool is not None:
            rows = pool_rounds.due_rows(
                pool,
                book.demands,
                alive,
                self._sightings.after(pool.began_ms - limit.window_ms),
                now_ms=now_ms,
                wall_ms=wall_ms,
            )
            for life, row in rows:
                gives.setdefault(life, []).append(row)
        border_ms = (window + 1) * limit.window_ms - wall_ms
        if border_ms <= AHEAD_MS:
            self._agenda.stir(book, now_ms + border_ms)
            self._pool_for(limit, window + 1, owns, roster, now_ms=now_ms, wall_ms=wall_ms)
        else:
            self._agenda.stir(book, now_ms + border_ms - AHEAD_MS)

    def _newest(self, key: str, window: int) -> Pool | None:
        book = self._books.get(key)
        if book is None:
            return None
        terms = [term for at, term in book.pools if at == window]
        return book.pools[window, max(terms)] if terms else None

    def _pool_for(
        self,
        limit: Limit,
        window: int,
        owns: Ownership | None,
        roster: Roster | None,
        *,
        now_ms: int,
        wall_ms: int,
    ) -> Pool | None:
        term = owns.term(now_ms=now_ms) if owns is not None else 0
        if roster is None or not (term or self._may_alone(limit, window, wall_ms)):
            return None
        book = self._books.get(limit.key)
        if book is None:
            forgotten = self._gone.pop(limit.key, None)
            book = self._books[limit.key] = Book(limit.key, forgotten or Visited())
        pool = book.pools.get((window, term))
        if pool is None:
            if window in book.forgotten:
                return None
            before = book.pools.get((window - 1, term))
            pool = book.pools[window, term] = Pool(limit, window, term, before=before)
            book.sweep_ms = min(book.sweep_ms, pool.ends_ms + AUDIT_MS)
        if pool.limit is not limit and pool.limit != limit:
            pool.limit = limit
            pool.roster = None
        self._mint(pool, owns if term else None, roster, now_ms=now_ms, wall_ms=wall_ms)
        return pool

    def _mint(
        self,
        pool: Pool,
        owns: Ownership | None,
        roster: Roster | None,
        *,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        assert roster is not None
        limit = pool.limit
        old = bool(limit.older) and now_ms - pool.allowed_ms >= ALLOWED_FOR_MS
        if old or pool.roster is not roster:
            pool.allowed_ms, pool.roster = now_ms, roster
            pool.standing = limit.standing_right(len(roster.names), began_ms=pool.began_ms)
            basis, began_ms = self._limits.basis(), pool.began_ms
            over = wall_ms >= pool.ends_ms or self._lived.has_passed(pool.ends_ms)
            # What others went by in a window that is over is known to the pool that was there then, and to no other.
            votes = owns if pool.is_allowed or not over else None
            current = votes.current(basis, began_ms=began_ms) if votes is not None else ()
            mintable = limit.mintable(roster, current, began_ms=began_ms)
            pool.allow(mintable, over=over)
        if owns is None:
            pool.made = pool.minted = max(pool.made, pool.ceiling)
            return
        pool.follow(owns)
        total = pool.wish(next_one=wall_ms < pool.began_ms)
        if total is not None:
            urgent = wall_ms >= pool.began_ms and pool.left <= 0
            owns.mint(limit.key, pool.window, total, urgent=urgent)

    def _may_alone(self, limit: Limit, window: int, wall_ms: int) -> bool:
        if self._alone_ms < 0 or limit.mode != "available":
            return False
        border_ms = window * limit.window_ms
        if limit.window_ms > SLICE_MS:
            border_ms += max(0, wall_ms - border_ms) // SLICE_MS * SLICE_MS
        return border_ms >= self._alone_ms

    def _answer(
        self, pool: Pool, life: Life, row: AskRow, sent_ms: int, *, now_ms: int, wall_ms: int
    ) -> None:
        book = self._books[row.key]
        book.heard_ms = now_ms
        if row.key not in self._hot:
            self._hot[row.key] = book
            self._agenda.stir(book, now_ms)
        before = pool.left
        customer = pool.learn(life, row, sent_ms, now_ms=now_ms)
        more = pool.left > before
        book.demands[life] = customer
        pool.meet(customer, row.waits, wall_ms=wall_ms)
        if more or customer.hungry:
            self._agenda.stir(book, now_ms + SERVE_MS)
        if pool.missing() > 0:
            self._agenda.stir(book, now_ms)

    def _gives(self, life: Life, rows: list[GiveRow], asked_ms: int) -> list[RightsGive]:
        parts = [tuple(rows[at : at + ROWS_MAX]) for at in range(0, len(rows), ROWS_MAX)]
        return [RightsGive(self._me.name, life.boot, asked_ms, part) for part in parts]

    def _forget(
        self, alive: Sequence[Life], ownership: Callable[[int], Ownership | None], wall_ms: int
    ) -> None:
        """Reckon up and forget windows that are over, of books for which it is time."""
        for key, book in list(self._books.items()):
            if wall_ms < book.sweep_ms:
                continue
            book.sweep_ms = NEVER_MS
            for (window, term), pool in list(book.pools.items()):
                self._sweep(book, window, term, pool, ownership(book.slot), wall_ms)
            book.demands = {life: c for life, c in book.demands.items() if life in alive}
            if not book.pools and key not in self._hot:
                del self._books[key]
                self._gone[key] = book.forgotten
                if len(self._gone) > GONE_MAX:
                    self._gone.popitem(last=False)
            elif not book.pools:
                book.sweep_ms = wall_ms + KEPT_MS
        self._asked_ms = {life: at for life, at in self._asked_ms.items() if life in alive}

    def _sweep(
        self, book: Book, window: int, term: int, pool: Pool, owns: Ownership | None, wall_ms: int
    ) -> None:
        kept_ms = min(KEPT_MS, KEPT_WINDOWS * pool.limit.window_ms)
        if not pool.audited and wall_ms >= pool.ends_ms + AUDIT_MS:
            pool.audited = True
            # Where somebody went by definitions that are unknown here, more may have stood.
            basis, began_ms = self._limits.basis(), pool.began_ms
            known = owns.current(basis, began_ms=began_ms) if owns is not None else frozenset()
            alike = all(life.name in known for life in pool.customers)
            difference = reckon(pool, self._me) if alike else None
            if difference is not None:
                self._differences.append(difference)
        if wall_ms >= pool.ends_ms + kept_ms:
            del book.pools[window, term]
            book.forgotten.add(window)
            return
        next_ms = pool.ends_ms + (kept_ms if pool.audited else min(kept_ms, AUDIT_MS))
        book.sweep_ms = min(book.sweep_ms, next_ms)
