"""Window page: what one node had of one window of one key, in totals: the page of its book for it.

    spent + left + returned + lapsed  =  given + standing + borrowed

While the window is open its `left`, `spent` and `offered` are those of the share; on the page they
stand when it is closed. In windows that accrue, what stands is spent before what was given, since
it lapses: what is unspent at the end of a slice belongs to no node until the owner mints it again. So does what
would have accrued in slices to come and is released.
"""

from typing import Final

from smg_mesh.escrow.book_rows import Held
from smg_mesh.escrow.limit_model import Life, Limit
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.node_footing import NOTHING, Footing
from smg_mesh.escrow.spending.standing_rights import SLICE_MS, Accrual, slices_of

_TERMS_MAX: Final = 16
"""Owners of one window; a cluster that changes them faster gets no more rights in it."""


class Page:
    """Page of one window. `void`: this node has been in it and has forgotten what
    it had: there is nothing more.
    """

    __slots__ = (
        "_borrows",
        "_fresh",
        "_kept",
        "_loaned",
        "_next_slice",
        "_slices",
        "_spent_mark",
        "_stands",
        "amount",
        "began_ms",
        "borrowed",
        "ends_ms",
        "lapsed",
        "left",
        "offered",
        "owed",
        "spent",
        "void",
        "ways",
        "window",
    )

    def __init__(self, window: int, window_ms: int) -> None:
        self.window = window
        self.began_ms = window * window_ms
        self.ends_ms = self.began_ms + window_ms
        self.amount = 0
        self.ways: dict[tuple[int, str], list[int]] = {}
        """(term, owner): [given, returned]"""
        self.lapsed = 0
        self.borrowed = 0
        self.left = 0
        self.spent = 0
        self.offered = 0
        self.owed = 0
        self.void = False
        self._slices = self._kept = slices_of(window_ms)
        self._stands = Accrual(self._slices)
        self._borrows = Accrual(self._slices)
        self._fresh = 0
        self._loaned = 0
        self._spent_mark = 0
        self._next_slice = 0

    @property
    def standing(self) -> int:
        """What stood with the node so far."""
        return self._stands.total

    @property
    def loaned(self) -> int:
        """What is beyond the limit, by its mode: borrowed, or given by an owner without a majority."""
        alone = sum(given for (term, _), (given, _) in self.ways.items() if not term)
        return self.borrowed + alone

    def besides(self, way: tuple[int, str]) -> int:
        """Return what the node has got and not given back, other than standing rights and loans, of owners but that one."""
        ways = [(one, totals) for one, totals in self.ways.items() if one != way]
        return sum((given if one[0] else 0) - returned for one, (given, returned) in ways)

    def slice_at(self, wall_ms: int) -> int:
        """Return the number of the slice that a moment of this window lies in."""
        if self._slices == 1:
            return 0
        return max(0, min(self._slices - 1, (wall_ms - self.began_ms) // SLICE_MS))

    def turn_ms(self, wall_ms: int) -> int:
        """Return when the slice of that moment ends, or the window."""
        if self._slices == 1:
            return self.ends_ms
        return min(self.ends_ms, self.began_ms + (self.slice_at(wall_ms) + 1) * SLICE_MS)

    @property
    def next_turn_ms(self) -> int:
        """When the next slice begins of which nothing stands so far; of the last one, when that began."""
        return self.began_ms + min(self._next_slice, self._slices - 1) * SLICE_MS

    def is_behind(self, wall_ms: int) -> bool:
        """Return whether the slice of that moment has not been looked at."""
        return self._next_slice <= self.slice_at(wall_ms)

    def lapse(self, share: Share) -> None:
        """Let go of what stood with the node in the slice that is over, and of what it borrowed for it."""
        unspent = self._fresh + self._loaned - max(0, share.spent - self._spent_mark)
        unspent = max(0, min(share.left, unspent))
        loan = min(self._loaned, unspent)
        share.left -= unspent
        self.borrowed -= loan
        self.lapsed += unspent - loan
        self._fresh = self._loaned = 0
        self._spent_mark = share.spent

    def accrue(self, share: Share, footing: Footing, limit: Limit, *, wall_ms: int) -> None:
        """Let stand what stands up to this moment; slices that passed unseen go by unspent."""
        now = self.slice_at(wall_ms)
        if now < self._next_slice or self.void or not (footing.is_known and footing.has_part):
            return  # what does not stand yet may stand a moment later: the slice is not over
        turn_ms = self.began_ms + now * SLICE_MS
        right = footing.right(limit, began_ms=self.began_ms, turn_ms=turn_ms)
        first = max(self._next_slice, -((self.began_ms - footing.since_ms(turn_ms)) // SLICE_MS))
        self._fresh = 0
        kept = footing.released.kept(share.key, self.window, limit.window_ms)
        if kept < 0:
            return
        self._kept = kept = min(self._kept, kept)
        self._next_slice = now + 1
        if right != NOTHING:
            if first < min(now, kept):
                self.lapsed += self._stands.add(right, slices=min(now, kept) - first)
            if now < kept:
                self._fresh = self._stands.add(right)
        loan = footing.loan(limit, began_ms=self.began_ms, turn_ms=turn_ms)
        self._loaned = self._borrows.add(loan) if loan else 0
        self.borrowed += self._loaned
        self._spent_mark = share.spent
        share.left += self._fresh + self._loaned

    def slices_for(self, units: int, right: int, kept: int) -> int:
        """Return how many slices have to be released in all, from the last one on, for so many units more; as many as
        there are, but for those that so many units are `kept` of, if those do not suffice.
        """
        stands = self._stands
        coming = self._kept - self._next_slice
        if kept:
            coming -= stands.slices_for(kept, right)
        needed = stands.slices_for(units, right)
        return self._slices - self._kept + max(0, min(coming, needed))

    def release(self, footing: Footing, limit: Limit) -> int:
        """Let what is released on disk stand now, and lapse; return how much that is."""
        kept = footing.released.kept(limit.key, self.window, limit.window_ms)
        if kept < 0 or not self._next_slice:
            return 0  # it is not known yet what stands at all: what is written stands never
        first, until = max(self._next_slice, kept), self._kept
        if kept >= until or self.void:
            return 0
        self._kept = kept
        if first >= until:
            return 0
        right = footing.right(
            limit, began_ms=self.began_ms, turn_ms=self.began_ms + first * SLICE_MS
        )
        # Lives before may have been in slices to come, by a clock that was ahead.
        last_ms = self.began_ms + (until - 1) * SLICE_MS
        if right == NOTHING or footing.since_ms(last_ms) > self.began_ms + first * SLICE_MS:
            return 0
        released = self._stands.add(right, slices=until - first)
        self.lapsed += released
        return released

    def coming(self, right: int) -> int:
        """Return how much will accrue in this window yet, at that right for all of it."""
        return 0 if self.void else self._stands.coming(right, slices=self._kept - self._next_slice)

    def next_ms(self, right: int) -> int:
        """Return when the next unit accrues here, at that right for all of the window; 0 if none does (wall clock)."""
        more = self._stands.slices_for(1, right)
        at = self._next_slice + more - 1
        return self.began_ms + at * SLICE_MS if more > 0 and at < self._kept else 0

    def take(self, way: tuple[int, str], total: int) -> int:
        """Learn that an owner gave so much in all; return what is new."""
        if self.void or (way not in self.ways and len(self.ways) >= _TERMS_MAX):
            return 0
        totals = self.ways.setdefault(way, [0, 0])
        new = max(0, total - totals[0])
        totals[0] += new
        return new

    def give_back(self, way: tuple[int, str], amount: int, share: Share) -> None:
        """Move so much of what is left to that owner: from here on it is not ours."""
        assert 0 <= amount <= share.left
        self.ways.setdefault(way, [0, 0])[1] += amount
        share.left -= amount
        rest = max(0, self._fresh - max(0, share.spent - self._spent_mark))
        self._fresh -= min(rest, amount)

    def close(self, share: Share) -> None:
        """Write down what the share says."""
        self.left, self.spent, self.offered = share.left, share.spent, share.offered

    def open(self, share: Share) -> None:
        """Let the share say what is written here."""
        share.left, share.spent, share.offered = self.left, self.spent, self.offered
        share.window, share.ends_ms = self.window, self.ends_ms

    def row(self, key: str, me: Life) -> Held:
        """Return the page for the auditor, as it is written."""
        ways = sorted(self.ways.items())
        return Held(
            key=key,
            window=self.window,
            name=me.name,
            boot=me.boot,
            amount=self.amount,
            standing=self.standing,
            borrowed=self.borrowed,
            given=tuple((term, totals[0]) for (term, _), totals in ways),
            returned=tuple((term, totals[1]) for (term, _), totals in ways),
            lapsed=self.lapsed,
            spent=self.spent + self.owed,
            owed=self.owed,
            left=self.left,
            offered=self.offered,
        )
