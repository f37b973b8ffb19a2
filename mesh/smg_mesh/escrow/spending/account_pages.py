"""Account pages: state of a key account: its windows, its share, and what it expects of them.

`key_account` says what it does with them.
"""

from collections.abc import Callable
from typing import Final

from smg_mesh.escrow.book_rows import Held
from smg_mesh.escrow.limit_model import Life, Limit, slot_of
from smg_mesh.escrow.messages.messages import GiveRow
from smg_mesh.escrow.spendable_share import ASLEEP, Share
from smg_mesh.escrow.spending.check_interval import pace_ms
from smg_mesh.escrow.spending.node_footing import Footing
from smg_mesh.escrow.spending.released_slices import RELEASED_MAX_MS
from smg_mesh.escrow.spending.standing_rights import SLICE_MS
from smg_mesh.escrow.spending.visited_windows import Visited
from smg_mesh.escrow.spending.window_page import Page

RETURNS_PERCENT: Final = (30, 60, 80)
SPARE: Final = 1.3
_KEEP_MAX: Final = 5
"""So many units beyond the expected need are kept; fewer of small limits."""
RETRY_MS: Final = 25
_HEARD_FOR_MS: Final = 2_000
"""An owner that answered within this time is there to take things back."""
_PAST_MAX: Final = 3
_REPORT_PARTS: Final = 25
"""Of windows that are told of: news of so small a part of the amount, divided by the nodes, is told to the owner."""
_REPORT_MS: Final = 1_000
"""Or so often, while something is spent."""
_QUIET_MS: Final = 2_000
"""Where nothing was asked for in so long, nothing is expected."""
NEVER_MS: Final = 1 << 62


class AccountPages:
    """State of the account of one key; `share` is what admission sees of it."""

    def __init__(
        self,
        limit: Limit,
        footing: Footing,
        visited: Visited,
        call: Callable[[], object],
        *,
        now_ms: int,
    ) -> None:
        """Windows that were `visited` have been forgotten since; `call` is called when its share becomes low."""
        self.limit: Limit | None = limit
        self.share = Share(limit, call)
        self.slot = slot_of(limit.key)
        self.visited = visited
        self.page: Page | None = None
        self.early: Page | None = None
        self.past: list[Page] = []
        self.active_ms = now_ms
        self.expires = False
        """It is in line to be forgotten."""
        self.due_ms = now_ms
        """When it must be looked at again."""
        self.owner = ""
        """Whom this node takes for the owner."""
        self.way = (0, "")
        """(term, owner) that returns go to."""
        self._owner_left = 0
        """What the owner itself had left."""
        self._told_spent = 0
        self._told: tuple[int, tuple[int, str]] = (-1, (0, ""))
        """The window and the way of the last ask."""
        self._lost = 0
        """What stands with nodes that are not heard, as the owner said last."""
        self._unsaid = False
        """There is something that the owner has not been told."""
        self._unheard = False
        """It was told, and has not answered."""
        self._footing = footing
        self._demand = 0.0
        self._ease_ms = min(2_000.0, max(100.0, limit.window_ms / 5))
        self._pace_ms = pace_ms(limit.window_ms)
        self._offered_mark = 0
        self._debt_mark = 0
        self._measured_ms = now_ms
        self._used_ms = now_ms - _QUIET_MS
        """When something was asked for last."""
        self._turn_ms = -1
        self._back_ms = NEVER_MS
        self._returns_ms = NEVER_MS
        self._turn_began_ms = 0
        self._returns_done = 0
        self._ahead = True
        self._round_trip_ms = 5
        self._asked_ms = -1
        self._asked_for = 0
        self._answered_ms = -1
        self._heard_ms = -NEVER_MS
        self._good_until_ms = NEVER_MS
        self.try_ms = 0
        self._gap_ms = RETRY_MS

    def rows(self, me: Life) -> list[Held]:
        """Return its windows for the auditor, oldest first."""
        if self.page is not None and self.share.window != ASLEEP:
            self.page.close(self.share)
        pages = [*self.past, self.page, self.early]
        shown = [page for page in pages if page is not None and not (page.void and not page.spent)]
        return [page.row(self.share.key, me) for page in shown]

    def page_of(self, window: int) -> Page | None:
        """Return its page of a window, if it has one."""
        pages = (self.page, *self.past, self.early)
        return next((page for page in pages if page is not None and page.window == window), None)

    def ends_ms(self) -> int:
        """Return when its last window is over (wall clock)."""
        pages = [page for page in (self.page, self.early) if page is not None]
        return max((page.ends_ms for page in pages), default=0)

    def owes(self, owner: str, row: GiveRow) -> bool:
        """Return whether it has not told that owner yet what it has of this window, and clients are told of such."""
        lent = SLICE_MS <= self.share.window_ms <= RELEASED_MAX_MS
        return lent and self._told != (row.window, (row.term, owner))

    def _turn_page(self, window: int, limit: Limit) -> Page:
        share = self.share
        if self.page is not None:
            if share.window != ASLEEP:
                self.page.close(share)
            self.past = [*self.past, self.page][-_PAST_MAX:]
        known = [page for page in (*self.past, self.early) if page and page.window == window]
        page = known[0] if known else Page(window, limit.window_ms)
        if page is self.early or (self.early is not None and self.early.window < window):
            self.early = None
        if page in self.past:
            self.past.remove(page)
        elif window in self.visited:
            page.void = True
            page.left = 0
        self.visited.add(window)
        self.page = page
        page.open(share)
        share.pool = self._expected()
        self._owner_left = -1
        self._told_spent = share.spent
        self._offered_mark = share.offered
        self._good_until_ms = NEVER_MS
        self._unsaid = self._unheard = False
        self.try_ms = 0
        self._gap_ms = RETRY_MS
        return page

    def _page_of(self, window: int) -> Page | None:
        page = self.page
        if page is None or page.window == window:
            return page if page is not None else None
        known = next((page for page in self.past if page.window == window), None)
        if known is not None:
            return known
        if window == page.window + 1:
            if self.early is None or self.early.window != window:
                self.early = Page(window, self.share.window_ms)
                self.early.void = window in self.visited
            return self.early
        return None

    def _right(self) -> int:
        """Return what stands in all of this window, as far as that is known for its next slice; below 0 if nothing may."""
        page, limit = self.page, self.limit
        if page is None or limit is None:
            return 0
        return self._footing.right(limit, began_ms=page.began_ms, turn_ms=page.next_turn_ms)

    def _expected(self) -> int:
        """Return what there will be elsewhere of a window that has just begun, as far as was heard of the one before."""
        share = self.share
        if share.window_ms > RELEASED_MAX_MS:
            return -1
        if not self.owner or self._heard_ms == -NEVER_MS or share.state != "exact":
            return -1
        return max(0, share.amount - self._lost - share.left - share.spent)

    def _expects(self, wall_ms: int) -> int:
        """Return how much is asked for here in the rest of this turn, if it goes on as before; nothing where it does not."""
        return self._expected_in(max(0, self._turn_ms - wall_ms)) + self.share.wanted

    def _expected_in(self, for_ms: int) -> int:
        """Return how much is asked for here in so much time; a burst that is over says nothing of the time to come."""
        if self._measured_ms - self._used_ms >= _QUIET_MS:
            return 0
        return int(SPARE * self._demand * for_ms / 1000)

    def _needs(self, wall_ms: int) -> int:
        """Return how much is needed here for the rest of this turn, and a little."""
        little = min(_KEEP_MAX, 1 + self.share.amount // 200) if self._ahead else 0
        return self._expects(wall_ms) + little

    def _hears(self, now_ms: int) -> bool:
        return bool(self.owner) and (
            self.way[1] == self.owner and now_ms - self._heard_ms <= _HEARD_FOR_MS
        )

    def _reports(self, now_ms: int) -> bool:
        """Return whether it is time to tell the owner what was spent, for what clients are told elsewhere."""
        share = self.share
        if share.window_ms < SLICE_MS or self._unheard:
            return False
        step = share.amount // (_REPORT_PARTS * max(1, self._footing.users))
        news = share.spent - self._told_spent
        return news > step or now_ms - self._heard_ms >= _REPORT_MS

    def _pay(self) -> None:
        share, page = self.share, self.page
        assert page is not None
        page.owed += max(0, share.debt - self._debt_mark)
        paid = min(share.left, share.debt)
        share.left -= paid
        share.spent += paid
        share.debt -= paid
        self._debt_mark = share.debt

    def _next_return(self, *, after_ms: int) -> None:
        length = self._turn_ms - self._turn_began_ms
        while self._turn_ms < NEVER_MS and self._returns_done < len(RETURNS_PERCENT) - 1:
            self._returns_done += 1
            percent = RETURNS_PERCENT[self._returns_done]
            self._returns_ms = self._turn_began_ms + length * percent // 100
            if self._returns_ms > after_ms:
                return
        self._returns_ms = NEVER_MS
