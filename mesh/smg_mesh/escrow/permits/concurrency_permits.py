"""Concurrency permits: what may be open at a time, split over the names of the roster, and lent.

Of `amount` permits the i-th of n names (sorted) has every n-th one from i on: each of them belongs
to one name, and the parts of two rosters that differ by one name never overlap, since no part grows
when a name comes, and when one goes, the others grow by no more than what it had. What a name has
not in use it lends to one that needs it (`permit_exchange`), so what may be open here is its part,
less what it lent, and what it holds of others:

    open here  <=  part - lent + held          lent by one  >=  held of it by the other

When a name goes, others may still have open what it lent to them. So no part grows before the last
of that must be over. And a newcomer gets its part only when all names say that they have no more
open and lent than their part and what they hold (`settled`).

A new life has nothing open: that ended with its process. If it is in the same process, it goes on with what is
open. A life that does not know what earlier ones have lent has nothing until all others have said so, or it must
be over. A part that shrinks below what is open is negative until enough has ended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from smg_mesh.escrow.book_rows import Held
from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.permits.permit_loans import Loans
from smg_mesh.escrow.spendable_share import ASLEEP, Share

OVER_MS: Final = 1_860_000
"""No answer takes longer than half an hour; the rest is for clocks that run apart, and what was just admitted."""
PLACES_MAX: Final = 16
AVAILABLE_MS: Final = 5_000
"""Limits that protect only do not wait longer for what nobody says."""


def permits_of(amount: int, roster: Roster | None, divisor: int, name: str) -> int:
    """Return how many of `amount` permits `name` has when it divides by
    that; 0 if nothing stands with it.
    """
    if roster is None or not divisor or name not in roster.names:
        return 0
    return _part(amount, roster.names.index(name), divisor)


@dataclass(slots=True)
class Ignorance:
    """Gaps in what a process knows of those before it, as long as there are any."""

    since_ms: int
    silent: bool = True
    """Not all names of the roster have said what they hold of this one."""
    silent_alive: bool = True
    """Nor have all that are alive."""
    late: bool = False
    """Nobody waits for them any longer, for a limit that protects only."""
    answered: dict[str, None] = field(default_factory=dict)


class Permits:
    """Permits of one life of a node."""

    def __init__(
        self, me: Life, limits: Limits, *, now_ms: int, roster: Roster | None = None
    ) -> None:
        """Begin as a life that knows all that was lent before it; `roster` is what was on its disk."""
        self.me = me
        self.loans = Loans()
        self.roster: Roster | None = None
        self.ignorance: Ignorance | None = None
        self.others = 0
        """How many names are there to borrow from."""
        self.short: dict[str, None] = {}
        """Keys that were looked for and had nothing free."""
        self._limits = limits
        self._now_ms = now_ms
        self._divisor = 0
        self._retired = False
        self._shares: dict[str, Share] = {}
        self._places: dict[tuple[int, int], int] = {}
        """(place, names) in rosters of before, and until when the part of it is not exceeded."""
        for place in () if roster is None else roster.places:
            self._places[place] = now_ms + OVER_MS

    def divide(self, roster: Roster | None, divisor: int) -> None:
        """Divide by that from now on."""
        before = self._place()
        if before is not None:
            self._remember(before)
        self.roster, self._divisor = roster, divisor
        if roster is not None and roster.names == (self.me.name,):
            self._places.clear()
            self.ignorance = None
        self.refresh()

    def pass_time(self, now_ms: int) -> None:
        """Learn what time it is; what was waited for may be over."""
        self._now_ms = now_ms
        if self.ignorance is None and not self._places:
            return
        over = [place for place, until_ms in self._places.items() if until_ms <= now_ms]
        for place in over:
            del self._places[place]
        aged = self.ignorance is not None and now_ms - self.ignorance.since_ms >= OVER_MS
        if aged:
            self.ignorance = None
        if over or aged:
            self.refresh()

    def places(self) -> tuple[tuple[int, int], ...]:
        """Return what a life that begins now with another roster has to keep in mind: (place, names) of before."""
        here = self._place()
        places = {**self._places, **({} if here is None else {here: 0})}
        return tuple(sorted(places)) if len(places) <= PLACES_MAX else (_least(places),)

    def spread(self, names: int) -> None:
        """Learn that another name keeps in mind that there were so many names."""
        if names and (self.roster is None or names > len(self.roster.names)):
            self._remember((names - 1, names))
            self.refresh()

    def refresh(self) -> None:
        """Go by the limits as they are now; drop those that are gone and have nothing open."""
        for key, share in list(self._shares.items()):
            limit = self._limits.get(key)
            self.fit(share)
            if limit is None and share.spent <= 0:
                share.window = ASLEEP
                share.left = 0
                del self._shares[key]

    def share(self, limit: Limit) -> Share:
        """Return the share of that limit, with this node's part of it."""
        share = self._shares.get(limit.key)
        if share is None:
            share = self._shares[limit.key] = Share(limit)
            share.window = 0
            share.pool = self.others
        self.fit(share)
        if share.left <= 0 and not self._retired:
            self.short[limit.key] = None
        return share

    def peek(self, key: str) -> Share | None:
        """Return the share of a key as it is; None if this node has none."""
        return self._shares.get(key)

    def here(self, key: str) -> Share | None:
        """Return the share of a key without looking for it in vain; None if there is no such limit."""
        share = self._shares.get(key)
        limit = self._limits.get(key)
        if share is None and limit is not None and not limit.window_ms:
            share = self.share(limit)
            self.short.pop(key, None)
        return share

    def mode(self, key: str) -> str:
        """Return the mode of a limit; the strictest of one that is gone."""
        limit = self._limits.get(key)
        return "strict" if limit is None else limit.mode

    def part(self, key: str) -> int:
        """Return how many permits of a limit are this node's own."""
        limit = self._limits.get(key)
        if limit is None or self._retired or self._is_blind(limit.mode):
            return 0
        part = permits_of(limit.amount, self.roster, self._divisor, self.me.name)
        return min((part, *(_part(limit.amount, *place) for place in self._places)))

    def room(self, key: str, *, fresh: bool = True) -> int:
        """Return how many may be open here at a time; less than nothing if too many are lent.

        With `fresh` not on what was not heard of for long, nor what is wanted back.
        """
        return self.part(key) - self.loans.lent_of(key) + self._held(key, fresh=fresh)

    def fit(self, share: Share) -> None:
        """Let a share have what there is room for."""
        limit = self._limits.get(share.key)
        share.amount = limit.amount if limit is not None else 0
        share.left = 0 if self._retired else self.room(share.key) - share.spent

    def fit_all(self) -> None:
        """Let all shares have what there is room for."""
        for share in self._shares.values():
            self.fit(share)

    def settled(self) -> bool:
        """Return whether there are no more open and lent here than this node's part and what it holds."""
        if self.ignorance is not None and self.ignorance.silent:
            return False
        return all(
            (0 if (share := self._shares.get(key)) is None else share.spent)
            <= self.room(key, fresh=False)
            for key in self._keys()
        )

    def inherit(self, before: "Permits") -> None:
        """Go on with what a life before has open in this process; that one has nothing any more."""
        self._shares, before._shares = before._shares, {}
        self.loans, before.loans = before.loans, Loans()
        self.loans.begin_anew()
        self._places |= before._places
        self.ignorance = before.ignorance
        here = before._place()
        if here is not None:
            self._remember(here)
        self.refresh()

    def retire(self) -> None:
        """Let nothing be taken any more."""
        self._retired = True
        for share in self._shares.values():
            share.left = 0
            share.window = ASLEEP
        self._shares.clear()
        self.short.clear()

    def rows(self) -> list[Held]:
        """Return what is open, for the auditor: of this node's part, and what it lent and holds."""
        return [self._row(key) for key in self._keys()]

    def _row(self, key: str) -> Held:
        share = self._shares.get(key)
        room, spent = self.room(key, fresh=False), 0 if share is None else share.spent
        limit = self._limits.get(key)
        return Held(
            key=key,
            window=0,
            name=self.me.name,
            boot=self.me.boot,
            amount=0 if limit is None else limit.amount,
            standing=room,
            borrowed=0,
            given=(),
            returned=(),
            lapsed=0,
            spent=spent,
            owed=0,
            left=room - spent,
            offered=0 if share is None else share.offered,
        )

    def _keys(self) -> Iterator[str]:
        yield from {**self._shares, **self.loans.lent, **self.loans.held}

    def _held(self, key: str, *, fresh: bool) -> int:
        names = () if self.roster is None else self.roster.names
        held = self.loans.held.get(key, {})
        return sum(
            (0 if one.stale else one.level - one.owed) if fresh else one.level
            for name, one in held.items()
            if name in names
        )

    def _is_blind(self, mode: str) -> bool:
        unknown = self.ignorance
        if unknown is None:
            return False
        if mode == "strict":
            return unknown.silent
        return unknown.silent_alive and not (mode == "available" and unknown.late)

    def _place(self) -> tuple[int, int] | None:
        roster = self.roster
        if roster is None or not self._divisor or self.me.name not in roster.names:
            return None
        return roster.names.index(self.me.name), self._divisor

    def _remember(self, place: tuple[int, int]) -> None:
        self._places[place] = self._now_ms + OVER_MS
        if len(self._places) > PLACES_MAX:
            self._places = {_least(self._places): self._now_ms + OVER_MS}


def _least(places: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return a place that has no more than any of these."""
    names = max(count for _, count in places)
    return names - 1, names


def _part(amount: int, place: int, names: int) -> int:
    return max(0, -((place - amount) // names))
