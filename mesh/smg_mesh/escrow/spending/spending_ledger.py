"""Spending ledger: what this node was given, what stands with it, and what it gave back.

Admission charges shares, and a share calls when it is low; `tick` looks at those that called, and
at all that are awake a few times a second, and says what is to be asked. Keys that were not used
for a while sleep: they cost nothing until they are wanted, or until their owner, which has nothing
left, calls for what stands here unused. Asks to one owner are put together and leave at most every
25 ms.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final

from smg_mesh.escrow.book_rows import Held
from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.limit_model import Life, Limit, Roster, window_of
from smg_mesh.escrow.messages.messages import ROWS_MAX, AskRow, Minted, RightsAsk, RightsGive
from smg_mesh.escrow.permits.concurrency_permits import Permits
from smg_mesh.escrow.spendable_share import ASLEEP, Share
from smg_mesh.escrow.spending.key_account import Account
from smg_mesh.escrow.spending.lived_time import LivedTime
from smg_mesh.escrow.spending.node_footing import Footing
from smg_mesh.escrow.spending.released_slices import ReleasedSlices
from smg_mesh.escrow.spending.standing_forecast import Forecast, forecast_of
from smg_mesh.escrow.spending.visited_windows import Visited

TICK_MS: Final = 5
"""Who calls is looked at on this beat: what leaves every 25 ms is not late because somebody called in between."""
TOGETHER_MS: Final = 25
"""Asks to one owner leave at most so often."""
_REST_MS: Final = 1_000
"""While all sleep, what is over is forgotten so often, if somebody ticks at all."""
_KEPT_MS: Final = 60_000
"""Windows that are over are shown to auditors for so long at most."""
_DROPPED_MAX: Final = 20_000
_NEVER_MS: Final = 1 << 62


class Ledger:
    """Ledger of one life of a node."""

    def __init__(
        self,
        me: Life,
        limits: Limits,
        *,
        now_ms: int,
        wall_ms: int,
        lived: LivedTime | None = None,
        released: ReleasedSlices | None = None,
        permits: Permits | None = None,
        called: Callable[[], object] | None = None,
    ) -> None:
        """When a share is low, `called` is called; its owner, which has a clock,
        then says when that was: `hear`.
        """
        self._me = me
        self._limits = limits
        self._footing = Footing(now_ms=now_ms, wall_ms=wall_ms, lived=lived, released=released)
        self._permits = Permits(me, limits, now_ms=now_ms) if permits is None else permits
        self._accounts: dict[str, Account] = {}
        self._awake: dict[str, Account] = {}
        self._line: list[tuple[int, int, Account]] = []
        """Those that are awake, by when they must be looked at. Who is in it twice is so at its own `due_ms` only."""
        self._lined_up = count()
        self._calls: list[Account] = []
        """Those whose share became low since."""
        self._called: Final = called
        self._slots: list[int] | None = []
        """Theirs, once somebody has asked for them."""
        self._expiring: list[tuple[int, str]] = []
        self._dropped: OrderedDict[str, Visited] = OrderedDict()
        """The windows of keys that were forgotten."""
        self._owners: Callable[[int], str] = _nobody
        self._retired = False
        self._ready = False
        """Whether what stands may stand, as it was at the last tick."""
        self._leave_ms: dict[str, int] = {}
        self._due_ms = self._ticked_ms = now_ms

    def follow(
        self, roster: Roster | None, divisor: int, *, wall_ms: int, founder: bool = False
    ) -> None:
        """Divide what stands by that from the next window on (long windows: from the next slice); 0: none.

        `founder`: this life has begun the roster with others.
        """
        # In windows that a clock that jumped back comes to again, it may have gone by another one.
        wall_ms = self._footing.latest_ms(wall_ms)
        share = 0 if roster is None else roster.divisor(self._me.name)
        self._footing.released.follow(roster, share, founder=founder, wall_ms=wall_ms)
        self._footing.divide(roster, divisor, wall_ms=wall_ms, founder=founder)
        self._permits.divide(roster, divisor)
        if not self._ready:
            self.hurry()

    def changed(self) -> None:
        """Learn that limits are others than before: permits are at once, windows when they turn."""
        self._permits.refresh()

    def share(self, limit: Limit, *, now_ms: int, wall_ms: int) -> Share:
        """Return the share of that limit, awake and in the window of now."""
        if not limit.window_ms:
            return self._permits.share(limit)
        known = self._accounts.get(limit.key)
        if known is not None and known.share.window != ASLEEP and not known.over(wall_ms):
            # Nothing begins to stand, so nobody has to look at the clocks: the next tick does.
            known.active_ms = now_ms
            return known.share
        self._footing.clocks(now_ms=now_ms, wall_ms=wall_ms)
        account = self._wake(limit, now_ms=now_ms, wall_ms=wall_ms)
        if account.over(wall_ms) and account.share.window != ASLEEP:
            account.limit = limit
            account.active_ms = now_ms
            account.turn(now_ms=now_ms, wall_ms=wall_ms)
            self._line_up(account)
        account.active_ms = now_ms
        return account.share

    def peek(self, key: str) -> Share | None:
        """Return the share of a key as it is, without waking it; None if this node has none."""
        account = self._accounts.get(key)
        return account.share if account is not None else self._permits.peek(key)

    def tick(
        self, *, now_ms: int, wall_ms: int, owners: Callable[[int], str], majority: bool
    ) -> list[tuple[str, RightsAsk]]:
        """Roll windows, return what is too much, and say what is to be asked of whom.

        `owners(slot)` is the name of the owner as far as this node knows (also its own name), or empty.
        Asks to this node itself are among them: hand those to its own `Treasury`.
        """
        if now_ms < self._due_ms:
            return []
        self._owners = owners
        self._ticked_ms = now_ms
        self._footing.clocks(now_ms=now_ms, wall_ms=wall_ms)
        self._footing.see(majority=majority, now_ms=now_ms)
        self._get_ready(now_ms, wall_ms)
        told: dict[str, list[AskRow]] = {}
        line, lined_up = self._line, self._lined_up
        for account in self._to_be_looked_at(now_ms):
            account.share.wants_more = False
            if account.look(now_ms, wall_ms):
                self._attend(account, told, now_ms=now_ms, wall_ms=wall_ms)
            account.plan(now_ms, wall_ms)
            if account.share.window != ASLEEP:
                heappush(line, (account.due_ms, next(lined_up), account))
        while line and line[0][0] != line[0][2].due_ms:
            heappop(line)
        self._due_ms = line[0][0] if line else now_ms + _REST_MS
        self._forget(wall_ms)
        return [(owner, ask) for owner in told for ask in self._asks(owner, told[owner], now_ms)]

    def given(self, give: RightsGive, *, now_ms: int, wall_ms: int) -> list[Share]:
        """Take what an owner gave; return the shares that have more now, for requests that wait."""
        if give.boot != self._me.boot:
            return []
        self._footing.clocks(now_ms=now_ms, wall_ms=wall_ms)
        more = []
        for row in give.rows:
            account = self._accounts.get(row.key)
            if account is None or account.share.window == ASLEEP:
                limit = self._limits.get(row.key)
                if limit is None or not limit.window_ms:
                    continue
                asked = row.called or (account is not None and account.owes(give.owner, row))
                if account is not None and row.left and not asked:
                    # An answer to what it gave back before it fell asleep; nobody calls for what stands here.
                    account.take(give.owner, row, give.asked_ms, now_ms=now_ms)
                    continue
                if row.window != window_of(wall_ms, limit.window_ms):
                    continue
                account = self._wake(limit, now_ms=now_ms, wall_ms=wall_ms)
            if account.take(give.owner, row, give.asked_ms, now_ms=now_ms):
                more.append(account.share)
            if row.called:
                account.active_ms = now_ms
                if not account.owner:
                    account.follow(give.owner)
                account.called(row.called, now_ms=now_ms, wall_ms=wall_ms)
            if account.due_ms > now_ms:
                account.due_ms = now_ms
                self._line_up(account)
        return more

    def unwritten(self, *, now_ms: int) -> tuple[Minted, ...]:
        """Return what must be on disk before it is said: what this node releases, and since when it is in the roster."""
        return self._footing.released.unwritten(now_ms=now_ms)

    def written(self, rows: Sequence[Minted], *, now_ms: int) -> None:
        """Learn what is on disk now."""
        for row in rows:
            account = self._accounts.get(self._footing.released.written(row))
            if account is not None and account.limit is not None:
                account.released(row.window)
                if account.share.window != ASLEEP:
                    account.due_ms = now_ms
                    self._line_up(account)

        if not self._ready:
            self.hurry()

    def slots(self) -> Sequence[int]:
        """Return the slots of keys in use, in order: this node wants an owner for them."""
        if self._slots is None:
            self._slots = sorted({account.slot for account in self._awake.values()})
        return self._slots

    @property
    def moved(self) -> bool:
        """Whether other slots may be in use than when they were last asked for."""
        return self._slots is None

    @property
    def spends(self) -> bool:
        """Whether there is something that may be charged by windows."""
        return bool(self._awake)

    def due_ms(self, now_ms: int) -> int | None:
        """Return when the next tick is needed; None when nothing is awake."""
        return max(now_ms + 1, self._due_ms) if self._awake else None

    def hear(self, now_ms: int) -> None:
        """Let those that called be looked at with the next beat."""
        if self._calls:
            beats = max(1, -(-(now_ms - self._ticked_ms) // TICK_MS))
            self._due_ms = min(self._due_ms, self._ticked_ms + beats * TICK_MS)

    def hurry(self) -> None:
        """Let the next tick look at what is wanted, however soon it comes."""
        self._due_ms = 0

    def inherit(self, before: "Ledger") -> None:
        """Go on with what a life before has open in this process; not with its windows."""
        self._permits.inherit(before._permits)

    def retire(self) -> None:
        """Let nothing be charged any more: this life of the node is over."""
        self._retired = True
        self._permits.retire()
        for account in self._awake.values():
            account.sleep()
        self._awake.clear()
        self._line.clear()
        self._calls.clear()
        self._slots = None

    def forecast(self, limit: Limit, window: int, *, right: int, wall_ms: int) -> Forecast:
        """Return what of such a standing right will come to this node in a window yet."""
        account, page = self._accounts.get(limit.key), None
        forgotten = self._dropped.get(limit.key, ())
        if account is not None:
            page, forgotten = account.page_of(window), account.visited
        if page is None and window in forgotten:
            return Forecast(0, right, 0)
        return forecast_of(limit, window, page, self._footing, right=right, wall_ms=wall_ms)

    def rows(self) -> list[Held]:
        """Return the last windows of every key, oldest first."""
        rows = [row for account in self._accounts.values() for row in account.rows(self._me)]
        return [*rows, *self._permits.rows()]

    def _wake(self, limit: Limit, *, now_ms: int, wall_ms: int) -> Account:
        account = self._accounts.get(limit.key)
        if account is None:
            visited = self._dropped.pop(limit.key, None) or Visited()
            made = Account(limit, self._footing, visited, lambda: self._call(made), now_ms=now_ms)
            account = self._accounts[limit.key] = made
        if account.share.window == ASLEEP and not self._retired:
            account.active_ms = now_ms
            account.enter(limit, wall_ms=wall_ms)
            account.follow(self._owner_of(account))
            self._awake[limit.key] = account
            self._line_up(account)
            self._slots = None
        return account

    def _call(self, account: Account) -> None:
        self._calls.append(account)
        if self._called is not None:
            self._called()

    def _line_up(self, account: Account) -> None:
        """Have an account looked at when it is due."""
        heappush(self._line, (account.due_ms, next(self._lined_up), account))
        self._due_ms = min(self._due_ms, max(account.due_ms, self._ticked_ms + TICK_MS))

    def _get_ready(self, now_ms: int, wall_ms: int) -> None:
        """Let all that is awake enter its slice once more when what stands may stand now, and might not before."""
        ready, self._ready = self._ready, self._footing.is_ready
        for account in self._awake.values() if self._ready and not ready else ():
            if account.turn_again(now_ms, wall_ms):
                self._line_up(account)

    def _to_be_looked_at(self, now_ms: int) -> list[Account]:
        """Return the accounts that are due; one that called is, unless
        it has asked already and waits.
        """
        calls, self._calls = self._calls, []
        for account in calls:
            due_ms = max(now_ms, account.try_ms)
            if account.share.wants_more and due_ms < account.due_ms:
                account.due_ms = due_ms
                heappush(self._line, (due_ms, next(self._lined_up), account))
        line, accounts = self._line, []
        while line and line[0][0] <= now_ms:
            due_ms, _, account = heappop(line)
            if due_ms == account.due_ms and account.share.window != ASLEEP:
                account.due_ms = _NEVER_MS
                accounts.append(account)
        return accounts

    def _attend(
        self, account: Account, told: dict[str, list[AskRow]], *, now_ms: int, wall_ms: int
    ) -> None:
        key = account.share.key
        owner = self._owner_of(account)
        if account.over(wall_ms):
            account.limit = self._limits.get(key)
            account.turn(now_ms=now_ms, wall_ms=wall_ms)
            if account.share.window == ASLEEP:
                self._put_to_rest(account)
        account.follow(owner)
        account.trim(now_ms=now_ms, wall_ms=wall_ms)
        if not owner or now_ms < self._leave_ms.get(owner, 0):
            return
        row = account.asks(now_ms=now_ms)
        if row is not None:
            told.setdefault(owner, []).append(row)

    def _asks(self, owner: str, rows: list[AskRow], now_ms: int) -> list[RightsAsk]:
        if owner != self._me.name:
            self._leave_ms[owner] = now_ms + TOGETHER_MS
        parts = [tuple(rows[at : at + ROWS_MAX]) for at in range(0, len(rows), ROWS_MAX)]
        return [RightsAsk(*self._me, sent_ms=now_ms, rows=part) for part in parts]

    def _owner_of(self, account: Account) -> str:
        limit = account.limit
        if self._footing.borrowing and limit is not None and limit.mode != "available":
            return ""
        return self._owners(account.slot)

    def _put_to_rest(self, account: Account) -> None:
        key = account.share.key
        del self._awake[key]
        self._slots = None
        if not account.expires:
            account.expires = True
            kept_ms = min(_KEPT_MS, 4 * account.share.window_ms)
            heappush(self._expiring, (account.ends_ms() + kept_ms, key))

    def _forget(self, wall_ms: int) -> None:
        """Drop keys that sleep and whose windows are over for long; remember which windows those were."""
        while self._expiring and self._expiring[0][0] <= wall_ms:
            _, key = heappop(self._expiring)
            account = self._accounts.get(key)
            assert account is not None
            if key in self._awake:
                account.expires = False
                continue
            if account.share.debt or account.ends_ms() >= wall_ms:
                heappush(self._expiring, (max(wall_ms, account.ends_ms()) + _KEPT_MS, key))
                continue
            del self._accounts[key]
            self._dropped[key] = account.visited
            if len(self._dropped) > _DROPPED_MAX:
                self._dropped.popitem(last=False)


def _nobody(_: int) -> str:
    return ""
