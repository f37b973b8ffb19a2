"""Key account of a spender: its window, how fast it spends, what it needs and what is too much.

A window, or a slice of a long one, is a *turn*:

    at its start    what stands with the node is there, and debt is paid of it
    low             less than 10 ms of demand is left: it asks for 30 ms of demand, and a round trip more; for up to a
                    second's, where that is a 256th of what the owner has left
    30, 60, 80 %    what exceeds 1.3 times the need of the rest, and a little, goes back to the owner
    at its end      short windows: void; long ones: what stood lapses, what was given and is old goes back

When its owner calls, because another node has nothing left, what is too much goes back at once, and what is still to
come in a long window is released, from its end backwards (see `released_slices`).

Limits that are small for so many nodes are not asked for ahead: only what requests wait for is.

The window never goes back by one, as long as this node lives: a clock that is set back a little finds the
window that is already open and goes on in it. A clock that jumps farther is followed; in windows it has been in
this node has what it had, or nothing. A node that slept through windows missed them.
"""

from typing import Final

from smg_mesh.escrow.limit_model import AMOUNT_MAX, Limit, window_of
from smg_mesh.escrow.messages.messages import AskRow, GiveRow
from smg_mesh.escrow.spendable_share import ASLEEP
from smg_mesh.escrow.spending.account_pages import (
    NEVER_MS,
    RETRY_MS,
    RETURNS_PERCENT,
    AccountPages,
)
from smg_mesh.escrow.spending.check_interval import CALM_MS, PACE_MIN_MS, enough_ms
from smg_mesh.escrow.spending.standing_rights import SLICE_MS
from smg_mesh.escrow.spending.window_page import Page

AHEAD_MS: Final = 30
"""So much demand is asked for at once."""
PLENTY_AHEAD_MS: Final = 1_000
"""So much at most is asked for at once of an owner that has plenty left: asking is what rights cost a node."""
_PLENTY: Final = 256
"""So small a part of what it has left may be asked for: what then stands here unused is missed by nobody."""
LOW_MS: Final = 10
"""Less demand than this in hand, and the node asks."""
_AHEAD_MIN: Final = 3
_IDLE_MS: Final = 5_000
_RETRY_MAX_MS: Final = 400
_EMPTY_RETRY_MS: Final = 300
"""An owner without rights hears from us so often, and gives by itself when it has some again."""
_ROUND_TRIP_MAX_MS: Final = 500


class Account(AccountPages):
    """Account of one key; `share` is what admission sees of it."""

    def enter(self, limit: Limit, *, wall_ms: int) -> None:
        """Be awake in the window and slice of that moment, with what stands there; debt is paid first."""
        share, window = self.share, window_of(wall_ms, limit.window_ms)
        page = self.page
        if page is not None and 0 < page.window - window <= 1 and share.window != ASLEEP:
            window = page.window
        if page is None or page.window != window:
            page = self._turn_page(window, limit)
        elif share.window == ASLEEP:
            page.open(share)
            self._offered_mark = share.offered
        self.limit = limit
        share.amount = limit.amount
        page.amount = max(page.amount, limit.amount)
        before = share.left
        page.accrue(share, self._footing, limit, wall_ms=wall_ms)
        if share.pool > 0:
            share.pool = max(0, share.pool - (share.left - before))
        users = self._footing.users
        minted = limit.amount - users * limit.standing_right(users, began_ms=page.began_ms)
        self._ahead = minted >= _AHEAD_MIN * users
        self._turn_began_ms = page.began_ms + page.slice_at(wall_ms) * SLICE_MS
        self._turn_ms = page.turn_ms(wall_ms) if limit.window_ms else NEVER_MS
        self._back_ms = page.began_ms - limit.window_ms if limit.window_ms else -NEVER_MS
        share.next_ms = page.next_ms(self._right())
        self._returns_done = -1
        self._next_return(after_ms=wall_ms)
        share.wants_more = False
        self.due_ms = 0
        self._pay()

    def turn(self, *, now_ms: int, wall_ms: int) -> None:
        """Go over into the next slice or window, or fall asleep if it was not used for a while."""
        share, page, limit = self.share, self.page, self.limit
        assert page is not None
        same = limit is not None and window_of(wall_ms, share.window_ms) == page.window
        if same:
            before = share.left
            page.lapse(share)
            if share.pool >= 0:
                share.pool += before - share.left
            if now_ms >= self._good_until_ms:
                self.give_back(share.left, now_ms=now_ms)
        idle = now_ms - self.active_ms >= _IDLE_MS and not share.debt and not share.wanted
        if limit is None or idle:
            if same:
                self.give_back(share.left, now_ms=now_ms)
            self.sleep()
        else:
            self.enter(limit, wall_ms=wall_ms)

    def turn_again(self, now_ms: int, wall_ms: int) -> bool:
        """Let it enter its slice once more, since what stands may stand now; return whether it does not stand yet."""
        if self.page is None or not self.page.is_behind(wall_ms):
            return False
        self._turn_ms = -1
        self._unsaid = True
        self.due_ms = now_ms
        return True

    def sleep(self) -> None:
        """Let nothing be charged until this share is asked for again."""
        share, page = self.share, self.page
        if page is None or share.window == ASLEEP:
            return
        page.close(share)
        share.left = share.low = 0
        share.window = ASLEEP
        share.wants_more = False

    def look(self, now_ms: int, wall_ms: int) -> bool:
        """Measure; return whether the turn is over, or something is to be said or given back."""
        share = self.share
        if wall_ms >= self._turn_ms or wall_ms < self._back_ms:
            return True
        offered = share.offered
        passed = now_ms - self._measured_ms
        if passed > 0 and (offered != self._offered_mark or self._demand):
            came = offered - self._offered_mark
            if came:
                self._offered_mark = offered
                self.active_ms = self._used_ms = now_ms
            weight = passed / (passed + self._ease_ms)
            demand = self._demand + (max(0, came) * 1000.0 / passed - self._demand) * weight
            self._demand = demand if demand > 0.001 else 0.0
            share.low = (
                int(demand * (LOW_MS + self._round_trip_ms) / 1000) + 1 if self._ahead else 0
            )
        self._measured_ms = now_ms
        if share.debt:
            self._pay()
        if share.spent != self._told_spent and self._reports(now_ms):
            self._unsaid = True
        if wall_ms >= self._returns_ms or self._unsaid or self._unheard:
            return True
        if share.wanted > share.left or share.debt:
            return True
        return share.left < share.low and self._demand > 0.0

    def plan(self, now_ms: int, wall_ms: int) -> None:
        """Work out when it must be looked at again, unless its share calls before.

        That is before it can be low, so that it is known how fast it is used, and together with others.
        """
        share, most_ms = self.share, self._pace_ms
        sure_ms = enough_ms(share, self._demand, most_ms) if self._ahead else most_ms
        due_ms = now_ms + (sure_ms if sure_ms >= CALM_MS else most_ms)
        due_ms -= due_ms % CALM_MS
        asking = self._unsaid or self._unheard or share.debt or share.left < share.low
        if (asking or share.wanted > share.left) and self.try_ms < due_ms:
            due_ms = max(now_ms + PACE_MIN_MS, self.try_ms)
        border_ms = self._returns_ms if self._returns_ms < self._turn_ms else self._turn_ms
        if border_ms - wall_ms < due_ms - now_ms:
            due_ms = max(now_ms + 1, now_ms + border_ms - wall_ms)
        self.due_ms = due_ms

    def over(self, wall_ms: int) -> bool:
        """Return whether the turn of this account ended before that moment."""
        return wall_ms >= self._turn_ms or wall_ms < self._back_ms

    def follow(self, owner: str) -> None:
        """Learn which node this one takes for the owner of the slot; empty: none."""
        share = self.share
        if owner != self.owner:
            self.owner = owner
            self.try_ms = 0
            self._gap_ms = RETRY_MS
            share.pool = -1
        if not owner:
            share.pool = 0 if self._footing.founded else -1
            borrows = self.page is not None and self.page.borrowed
            share.state = "borrowed" if borrows else "standing"
        elif self.way == (0, owner) and not self._footing.majority:
            share.state = "alone"
        elif share.state != "exact":
            share.state = "exact"

    def trim(self, *, now_ms: int, wall_ms: int) -> None:
        """Give back what exceeds the need of the rest of this turn, if it is time for that."""
        if wall_ms < self._returns_ms or self.limit is None:
            return
        share = self.share
        if share.offered and self._returns_done == len(RETURNS_PERCENT) - 1:
            self._unsaid = True
        keep = self._needs(wall_ms)
        if share.left > keep:
            if not self._hears(now_ms):
                self._unsaid = True
                return
            self.give_back(share.left - keep, now_ms=now_ms)
        self._next_return(after_ms=wall_ms)

    def give_back(self, amount: int, *, now_ms: int) -> None:
        """Move so much to the owner, if there is one that will hear of it."""
        if amount <= 0 or self.page is None or not self._hears(now_ms):
            return
        self.page.give_back(self.way, amount, self.share)
        if self.share.pool >= 0:
            self.share.pool += amount
        self._unsaid = True

    def called(self, units: int, *, now_ms: int, wall_ms: int) -> None:
        """Give back what is not needed here, and release what is to come, as far as so much is wanted elsewhere.

        Who is asked itself keeps what it expects to need; in short windows it is known best at the usual times.
        """
        share, page, limit = self.share, self.page, self.limit
        if page is None or limit is None or share.window != page.window:
            return
        self.look(now_ms, wall_ms)
        expected = self._expects(wall_ms)
        footing = self._footing
        accrues = footing.released.may(limit.window_ms)
        if expected and not accrues:
            return
        self._unsaid = True
        spare = max(0, share.left - expected)
        self.give_back(spare, now_ms=now_ms)
        if units <= spare or not accrues:
            return
        right = self._right()
        kept = 0 if self._wants() else self._expected_in(max(0, page.ends_ms - self._turn_ms))
        slices = page.slices_for(units - spare, right, kept)
        footing.released.plan(share.key, page.window, slices, now_ms=now_ms)

    def released(self, window: int) -> None:
        """Let the slices of a window lapse of which it is on disk now that they are released."""
        page = self._page_of(window)
        if page is not None and self.limit is not None:
            self._unsaid |= page.release(self._footing, self.limit) > 0
            if page is self.page:
                self.share.next_ms = page.next_ms(self._right())

    def asks(self, *, now_ms: int) -> AskRow | None:
        """Return what to say to the owner now, if anything."""
        page, share = self.page, self.share
        if page is None or not self.owner or now_ms < self.try_ms:
            return None
        asleep = share.window == ASLEEP
        wants = 0 if asleep else self._wants()
        if not wants and not self._unsaid and not self._unheard:
            return None
        given, returned = page.ways.get(self.way, (0, 0))
        self._asked_ms, self._asked_for = now_ms, wants
        self._told_spent = page.spent if asleep else share.spent
        self._told = (page.window, self.way)
        self.try_ms = now_ms + max(self._gap_ms, 2 * self._round_trip_ms + 10)
        self._gap_ms = min(_RETRY_MAX_MS, 2 * self._gap_ms)
        share.wants_more = False
        self._unheard |= self._unsaid
        self._unsaid = False
        return AskRow(
            term=self.way[0],
            key=share.key,
            window=page.window,
            given=given,
            returned=returned,
            spent=page.spent if asleep else share.spent,
            demand_per_s=int(self._demand * 1000),
            lapsed=page.lapsed,
            wants=min(AMOUNT_MAX, wants),
            waits=min(AMOUNT_MAX, wants, share.wanted + share.debt),
            loaned=page.loaned,
            stands=min(AMOUNT_MAX, self._stands(page)),
        )

    def _stands(self, page: Page) -> int:
        """Return what this node has of a window in all, but for what the owner of now gave it and got back."""
        standing = page.standing + page.coming(self._right())
        return max(0, standing + page.besides(self.way))

    def take(self, owner: str, row: GiveRow, asked_ms: int, *, now_ms: int) -> bool:
        """Learn what an owner gave and has left; return whether there is more now to charge."""
        way = (row.term, owner)
        newer = asked_ms > self._answered_ms or row.term > self.way[0]
        current = newer or (asked_ms == self._answered_ms and way == self.way)
        if current:
            self._heard_from(way, row, asked_ms, now_ms=now_ms)
        page, share = self._page_of(row.window), self.share
        if page is None:
            return False
        if current and page is self.page and self.owes(owner, row):
            self._unsaid = True
        new = page.take(way, row.given)
        if page is not self.page or share.window == ASLEEP:
            page.left += new
            return False
        share.left += new
        if current and row.free >= 0:
            self._lost = row.lost
            share.pool = max(0, row.free - (share.spent - row.spent) - share.left)
        if new:
            # Of an owner before: the one of now has to hear of it.
            self._unsaid |= not current
            self._good_until_ms = max(asked_ms, now_ms - _ROUND_TRIP_MAX_MS) + row.valid_ms
            self._pay()
        return new > 0

    def _heard_from(
        self, way: tuple[int, str], row: GiveRow, asked_ms: int, *, now_ms: int
    ) -> None:
        if asked_ms == self._asked_ms and asked_ms > self._answered_ms:
            measured = min(_ROUND_TRIP_MAX_MS, max(0, now_ms - asked_ms))
            self._round_trip_ms = (3 * self._round_trip_ms + measured) // 4
        self.way = way
        self._heard_ms = now_ms
        page = self.page
        if page is not None and row.window == page.window:
            self._owner_left = row.left
            if row.free == -1:
                self.share.pool = row.left
        if asked_ms >= self._asked_ms:
            self._unheard = False
            self._gap_ms = RETRY_MS
            nothing = not row.left and self._asked_for
            self.try_ms = now_ms + _EMPTY_RETRY_MS if nothing else now_ms
        self._answered_ms = max(self._answered_ms, asked_ms)

    def _wants(self) -> int:
        share = self.share
        needs = share.wanted + share.debt
        if self._ahead and self._demand:
            ahead = int(self._demand * (AHEAD_MS + 2 * self._round_trip_ms) / 1000)
            plenty = min(int(self._demand * PLENTY_AHEAD_MS / 1000), self._owner_left // _PLENTY)
            if share.left < share.low:
                needs += max(_AHEAD_MIN, ahead, plenty)
        return max(0, needs - share.left)
