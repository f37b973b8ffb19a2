"""Window pool: what one owner has minted of one window under one term, and to whom it gave of it.

    left  =  made + returned - given          all of this term; with the term, what is left is gone

Short windows are minted whole, before they open. Longer ones come in tranches of half a second of demand or one
per cent of the amount, budgets of minutes and days in smaller ones, the next when half of it is gone, so that a dead
owner takes little with it. What stood with nodes and lapsed, as they say in totals, may be minted again.

A node that asks gets what its requests wait for, and of the rest at most a third of what is left,
as far as what the others may still need of this window is not touched: that is reserved, max-min
fair over reported demand. A need that was asked for and could not be met is met as soon as
something is there again. Totals seen by the asker show what is still on its way to it, so that an
ask that arrives twice is answered once.

What is asked for and neither here nor to be minted is called back from those that hold some of it: what stands with
quiet nodes, also of slices to come. They give back what they do not need (`key_account`).
"""

from collections.abc import Sequence
from typing import Final

from smg_mesh.escrow.book_rows import Minting
from smg_mesh.escrow.limit_model import AMOUNT_MAX, SHORT_MS, Life, Limit, Roster
from smg_mesh.escrow.messages.messages import UNKNOWN, AskRow, GiveRow
from smg_mesh.escrow.owning.max_min_fairness import split_fairly
from smg_mesh.escrow.owning.ownership import Ownership
from smg_mesh.escrow.owning.pool_customer import CALL_AGAIN_MS, Customer
from smg_mesh.escrow.spending.released_slices import RELEASED_MAX_MS
from smg_mesh.escrow.spending.standing_rights import SLICE_MS

_TRANCHES: Final = 100
"""One of so many at least."""
_BUDGET_MS: Final = 120_000
"""What is lost of windows from this length on is lost for long: less of them is minted at once, and more often."""
_BUDGET_TRANCHES: Final = 500
_NEWS_PARTS: Final = 50
"""News of so small a part of the amount is told to those that are at work."""
_HUNGRY_FOR_MS: Final = 1_000
"""A need that is older was met elsewhere, or nobody waits any more."""


class Pool:
    """Pool of one key and window, under one term (0: alone, without a lease)."""

    def __init__(
        self, limit: Limit, window: int, term: int, *, before: "Pool | None" = None
    ) -> None:
        """Begin with nothing; `before` is the pool of the window before, under the same term."""
        self.limit = limit
        self.window = window
        self.term = term
        self.began_ms = window * limit.window_ms
        self.ends_ms = self.began_ms + limit.window_ms
        self.made = 0
        self.minted = -1
        """Of all terms; -1 as long as that is not known."""
        self.ceiling = 0
        self.wished = -1
        """What the lease of now has asked for. A lease that was let go may begin anew under the same term."""
        self.standing = 0
        """What stands with each name."""
        self.stands = self.stands_most = 0
        """What may have stood with all nodes, and with one of them, in this window: for the audit."""
        self.audited = False
        self.turns: int = 0 if before is None else before.turns + 1
        """So many windows before this one had a pool under this term."""
        self.opened = False
        self.is_allowed = False
        """It was worked out what may be minted."""
        self.allowed_ms = -(1 << 62)
        self.roster: Roster | None = None
        """By which `allow` was worked out."""
        self.customers: dict[Life, Customer] = {}
        self.lapsed = 0
        self._balance = 0

    @property
    def left(self) -> int:
        """What may be given now; of a limit that was lowered meanwhile no more than it allows, even below 0."""
        return self._usable + self._balance

    @property
    def names(self) -> Sequence[str]:
        """The names that its rights are divided among."""
        return () if self.roster is None else self.roster.names

    @property
    def short(self) -> bool:
        """Whether it is minted whole, before it opens."""
        return self.limit.window_ms <= SHORT_MS

    def follow(self, owns: Ownership) -> None:
        """Learn what the lease of now has asked for, and what of that is there."""
        key, window = self.limit.key, self.window
        self.wished = owns.wished(key, window)
        self.minted = owns.minted(key, window)
        self.made = owns.made(key, window)

    def allow(self, mintable: int, *, over: bool = False) -> None:
        """Learn what may be minted in all, beside what stands with the nodes now.

        `over`: by the clock here the window is over, or was before that clock jumped back. A node that is still in
        it has the limit of then, not a larger one: of what this pool knew, else the least there was.
        """
        self._stand(mintable)
        if over and not self.is_allowed:
            mintable = max(0, mintable - self.limit.amount + self.limit.least_amount)
        ceiling = min(AMOUNT_MAX, mintable + self.lapsed)
        self.ceiling = min(self.ceiling, ceiling) if over and self.is_allowed else ceiling
        self.is_allowed = True

    def _stand(self, mintable: int) -> None:
        """Remember the most that may have stood with all nodes, and with one: as long as it runs, it may be less."""
        limit, roster = self.limit, self.roster
        versions = ((limit.amount, limit.standing), *limit.older)
        stands = limit.amount - mintable if mintable else max(amount for amount, _ in versions)
        self.stands = max(self.stands, stands)
        if roster is not None:
            least = min(divisor for divisor in (len(roster.names), *roster.divisors) if divisor)
            most = max(int(standing * amount / least) for amount, standing in versions)
            self.stands_most = max(self.stands_most, most)

    def wish(self, *, next_one: bool) -> int | None:
        """Return the total to mint now, once for each; None if there is nothing to wish."""
        if self.short:
            total = self.ceiling
        elif self.minted < 0:
            total = 0
        else:
            tranche = self._tranche()
            hunger = 0 if next_one else sum(c.hungry for c in self.customers.values())
            if self.left - hunger > tranche // 2 or self.wished > self.minted:
                return None
            total = min(self.ceiling, self.minted + max(tranche, hunger - self.left))
        if total <= self.wished or total < self.minted:
            return None
        self.wished = total
        return total

    def _tranche(self) -> int:
        """Return how much of a long window is minted at once: what a dead owner takes with it, and half as much again."""
        demand = self._demand_per_s()
        if self.limit.window_ms < _BUDGET_MS:
            return max(demand // 2, self.limit.amount // _TRANCHES, 1)
        return max(demand // 3, self.limit.amount // _BUDGET_TRANCHES, 1)

    def _demand_per_s(self) -> int:
        return sum(customer.demand for customer in self.customers.values()) // 1000

    def learn(self, life: Life, row: AskRow, sent_ms: int, *, now_ms: int) -> Customer:
        """Take what a node says of itself: totals at their largest, the rest if it is the newest."""
        customer = self.customers.setdefault(life, Customer())
        if row.term == self.term and row.returned > customer.returned:
            self._balance += row.returned - customer.returned
            customer.returned = row.returned
            customer.call_gap_ms = CALL_AGAIN_MS
        if row.lapsed > customer.lapsed:
            customer.call_gap_ms = CALL_AGAIN_MS
            self.lapsed += row.lapsed - customer.lapsed
            self.ceiling += row.lapsed - customer.lapsed
            customer.lapsed = row.lapsed
        if sent_ms >= customer.asked_ms:
            customer.asked_ms = sent_ms
            customer.heard_ms = now_ms
            customer.spoke = True
            customer.demand = row.demand_per_s
            customer.spent, customer.loaned, customer.stands = row.spent, row.loaned, row.stands
            seen = row.given if row.term == self.term else 0
            customer.hungry = max(0, row.wants - max(0, customer.given - seen))
        return customer

    def meet(self, customer: Customer, waits: int, *, wall_ms: int) -> None:
        """Give the node that has just asked what is fair."""
        left = self.left
        needs = customer.hungry
        if left <= 0 or not needs:
            return
        waited = min(needs, waits)
        most = waited + min(needs - waited, max(1, left // 3))
        others = [c for c in self.customers.values() if c is not customer]
        if self.short:
            kept = self._reserved(left, wall_ms=wall_ms)
            fair = left - sum(kept[other] for other in others)
        else:
            fair = split_fairly(left, [needs, *(other.hungry for other in others)])[0]
        given = min(most, left, fair)
        self._give(customer, given)
        if 0 < given < left:
            customer.hungry = 0

    def feed(self, *, now_ms: int, wall_ms: int) -> list[Life]:
        """Give to those whose need could not be met before; return to whom."""
        if self.left <= 0:
            return []
        hungry = []
        for life, customer in self.customers.items():
            if customer.hungry and now_ms - customer.heard_ms > _HUNGRY_FOR_MS:
                customer.hungry = 0
            if customer.hungry:
                hungry.append((life, customer))
        if not hungry:
            return []
        kept = self._reserved(self.left, wall_ms=wall_ms)
        free = self.left - sum(kept.values())
        parts = split_fairly(self.left, [customer.hungry for _, customer in hungry])
        fed = []
        for (life, customer), part in zip(hungry, parts, strict=True):
            given = min(part, self.left, free + kept[customer])
            if given > 0:
                self._give(customer, given)
                free -= max(0, given - kept[customer])
                fed.append(life)
        return fed

    def give_all(self, life: Life) -> int:
        """Give all that is left to one life; return how much that is."""
        amount = max(0, self.left)
        self._give(self.customers.setdefault(life, Customer()), amount)
        return amount

    def open(self, demands: dict[Life, Customer]) -> list[Life]:
        """Give half of it by what was wanted of the window before, beyond what stands; return to whom."""
        self.opened = True
        lives = list(demands)
        window_ms = self.limit.window_ms
        needs = [
            max(0, demands[life].demand * window_ms // 1_000_000 - self.standing) for life in lives
        ]
        fed = []
        for life, part in zip(lives, split_fairly(self.left // 2, needs), strict=True):
            before = demands[life]
            customer = self.customers.setdefault(life, Customer())
            customer.demand = customer.demand or before.demand
            customer.heard_ms = max(customer.heard_ms, before.heard_ms)
            customer.asked_ms = max(customer.asked_ms, before.asked_ms)
            if part and not customer.given:
                self._give(customer, part)
                fed.append(life)
        return fed

    def missing(self) -> int:
        """Return how much was asked for that this owner neither has nor may mint."""
        hungry = sum(customer.hungry for customer in self.customers.values())
        return hungry - max(0, self.left) - self.unminted

    def calls(self, alive: Sequence[Life], *, now_ms: int, every_ms: int) -> list[tuple[Life, int]]:
        """Return whom to ask back for what is missing, and for how much each: fairly, of what they hold.

        Who was called just now is not called again at once, and who has given nothing ever more seldom.
        """
        missing = self.missing()
        if missing <= 0 or self.minted < 0:
            return []
        # What it was given by an owner before is known of those that have spoken only: the others were greeted.
        spoke = {life for life, customer in self.customers.items() if customer.spoke}
        known = [life for life in alive if life in spoke or not self.is_taken_over]
        held_by = {life: self._held_by(life) for life in known if life.name in self.names}
        places = [(life, held) for life, held in held_by.items() if held]
        # What a dead node had released is not known here: so much of what others release does not come back.
        vain = max(0, self.minted - self.ceiling)
        if sum(held for _, held in places) <= vain:
            return []
        # A second's demand at once, and of everybody: whoever has to be asked again keeps requests waiting.
        wanted = missing if self.short else max(missing, self._demand_per_s(), len(places)) + vain
        parts = split_fairly(wanted, [held for _, held in places])
        called = []
        for (life, _), part in zip(places, parts, strict=True):
            customer = self.customers.setdefault(life, Customer())
            heard = customer.spoke and now_ms - customer.heard_ms <= every_ms
            at_work = heard and customer.demand > 0
            if at_work and self.limit.window_ms <= SLICE_MS:
                continue  # it gives back by itself what it does not need
            if part and customer.call(now_ms=now_ms, every_ms=every_ms):
                called.append((life, part))
        return called

    @property
    def is_taken_over(self) -> bool:
        """Whether an owner before this one has minted of this window: it knew what nodes have, and this one does not."""
        return self.minted > self.made

    def behind(self, free: int, *, since_ms: int) -> list[Life]:
        """Return who is at work and was told of clearly more than can be spent of this window yet: `free`."""
        step = self.limit.amount // _NEWS_PARTS
        return [
            life
            for life, customer in self.customers.items()
            if customer.heard_ms >= since_ms and customer.told_free - free > step
        ]

    def free(self, alive: Sequence[Life]) -> int:
        """Return what can be spent of this window yet, by all that live: what is here, and what they hold."""
        held = sum(self._held_by(life) for life in alive if life.name in self.names)
        return min(self.limit.amount, max(0, self.left) + self.unminted + held)

    def _silent(self, alive: Sequence[Life]) -> int:
        """Return what stands with names that are not heard: so much is missing in the next window as well."""
        heard = {life.name for life in alive}
        silent = sum(1 for name in self.names if name not in heard)
        return min(self.limit.amount, silent * self.standing)

    def _held_by(self, life: Life) -> int:
        """Return what one life may have; nothing of the window that another life of its name was in."""
        customer = self.customers.get(life)
        if customer is not None and customer.spoke:
            return customer.holds(self.standing)
        known = any(other.name == life.name and other != life for other in self.customers)
        standing = 0 if known else self.standing
        return standing if customer is None else customer.holds(standing)

    def row_for(self, life: Life, alive: Sequence[Life] = (), *, called: int = 0) -> GiveRow:
        """Return what to say to that node: its total, and what may still be there for any.

        `called`: so much of what it does not need is wanted back.
        """
        customer = self.customers.get(life)
        window_ms = self.limit.window_ms
        known = self.minted >= 0 or self.turns > 0 or not self.term
        free = self.free(alive) if known else UNKNOWN
        if self.limit.window_ms > RELEASED_MAX_MS:
            free = -1  # what others hold of budgets does not come here
        if customer is not None:
            customer.told_free = free
        return GiveRow(
            term=self.term,
            key=self.limit.key,
            window=self.window,
            given=customer.given if customer is not None else 0,
            left=max(0, self.left) + self.unminted,
            valid_ms=min(window_ms, SLICE_MS) if window_ms else SLICE_MS,
            free=free,
            spent=customer.spent if customer is not None else 0,
            lost=self._silent(alive),
            called=called,
        )

    @property
    def unminted(self) -> int:
        """What may be minted still."""
        return max(0, self.ceiling - max(0, self.minted))

    def row(self, me: Life) -> Minting:
        """Return what the auditor gets; what limit and roster do not allow any more is in it as lapsed, below 0."""
        return Minting(
            key=self.limit.key,
            window=self.window,
            name=me.name,
            boot=me.boot,
            term=self.term,
            amount=self.limit.amount,
            minted=self.made,
            lapsed=max(self._usable, -self._balance) - self.made,
            given=tuple(
                (life.name, life.boot, customer.given, customer.returned)
                for life, customer in sorted(self.customers.items())
            ),
            left=max(0, self.left),
        )

    @property
    def _usable(self) -> int:
        """What was minted here, as far as limit and roster still allow it."""
        made, allowed = self.made, self.ceiling
        if self.minted > made:
            allowed -= self.minted - made
        return made if made < allowed else max(0, allowed)

    def _give(self, customer: Customer, amount: int) -> None:
        if amount <= 0:
            return
        assert amount <= self.left
        customer.given += amount
        customer.hungry = max(0, customer.hungry - amount)
        self._balance -= amount

    def _reserved(self, left: int, *, wall_ms: int) -> dict[Customer, int]:
        """Return for each customer its fair part of the window that it has not got and can still use, of what is left."""
        customers = list(self.customers.values())
        window_ms = self.limit.window_ms
        if not self.short or not window_ms:
            return dict.fromkeys(customers, 0)
        rest_ms = max(0, min(window_ms, self.ends_ms - wall_ms))
        having = [self.standing + c.given - c.returned for c in customers]
        wanting = [c.demand * window_ms // 1_000_000 for c in customers]
        fair = split_fairly(left + sum(having), wanting)
        needs = [
            min(max(0, part - has), c.demand * rest_ms // 1_000_000)
            for c, part, has in zip(customers, fair, having, strict=True)
        ]
        # What others have and will not need is not here yet: no more is reserved than there is.
        return dict(zip(customers, split_fairly(left, needs), strict=True))
