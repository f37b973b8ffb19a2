"""Auditor: adds up the books of all nodes for a window: nothing overspent, and nothing held twice.

For one key and window there are rows of lives (`Held`) and of owners' terms (`Minting`). What is checked:

    one life      spent - owed + left + returned + lapsed  =  given + standing + borrowed
    one term      left + given - returned                  =  minted + lapsed
    between them  a life has of a term at most what its owner gave, and an owner back at most what was returned
    all           spent - owed + left + pools + in flight  <=  amount + borrowed

What one side wrote and the other did not yet is in flight. Rows of the dead count as they last were. What lapsed
of what stood with a node may be minted by the owner it was told to: it is in the sum once, there or in flight.
Rows that were collected one after the other, from nodes that go on, do not show all that: `overspent` asks only
whether more was spent than there is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from smg_mesh.escrow.book_rows import Held, Minting, Row


class Place(NamedTuple):
    """Key and window that a sum is of."""

    key: str
    window: int


@dataclass(frozen=True, slots=True)
class Fault:
    """One sum that does not add up, with the rows that show it."""

    place: Place
    what: str
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Sum:
    """Sum of one key and window over all rows that there are of it."""

    place: Place
    amount: int = 0
    """The largest that anybody goes by."""
    standing: int = 0
    borrowed: int = 0
    minted: int = 0
    spent: int = 0
    owed: int = 0
    shares: int = 0
    pools: int = 0
    in_flight: int = 0
    lapsed: int = 0
    held: list[Held] = field(default_factory=list)
    mintings: list[Minting] = field(default_factory=list)

    @property
    def total(self) -> int:
        """What was spent with a right to, and all rights there still are."""
        return self.spent - self.owed + self.shares + self.pools + self.in_flight


def add_up(rows: Iterable[Row]) -> list[Sum]:
    """Return a sum for each key and window, ordered by both."""
    sums: dict[Place, Sum] = {}
    for row in rows:
        place = Place(row.key, row.window)
        _add(sums.setdefault(place, Sum(place)), row)
    for one in sums.values():
        one.in_flight = _in_flight(one)
    return [sums[place] for place in sorted(sums)]


def audit(rows: Iterable[Row]) -> list[Fault]:
    """Return everything that does not add up, by key and window; rows of one moment, of every life and term."""
    return [fault for one in add_up(rows) for fault in _faults(one)]


def overspent(rows: Iterable[Row]) -> list[Fault]:
    """Return where more was spent than there is; for rows that were collected one after the other."""
    return [
        Fault(one.place, _exceeds("spent", one.spent - one.owed, one), _all_rows(one))
        for one in add_up(rows)
        if one.spent - one.owed > one.amount + one.borrowed
    ]


def _add(one: Sum, row: Row) -> None:
    one.amount = max(one.amount, row.amount)
    if isinstance(row, Minting):
        one.mintings.append(row)
        one.minted += row.minted
        one.pools += row.left
        return
    one.held.append(row)
    one.standing += row.standing
    one.borrowed += row.borrowed
    one.spent += row.spent
    one.owed += row.owed
    one.shares += row.left
    one.lapsed += row.lapsed


def _in_flight(one: Sum) -> int:
    """Return what was given and has not come, and what was given back and has not come."""
    given, returned = _books(one)
    held = {(row.name, row.boot): row for row in one.held}
    flying = 0
    for (name, boot, term), total in given.items():
        row = held.get((name, boot))
        here = 0 if row is None else dict(row.given).get(term, 0)
        back = 0 if row is None else dict(row.returned).get(term, 0)
        flying += max(0, total - here) + max(0, back - returned[name, boot, term])
    return flying


def _books(one: Sum) -> tuple[dict[tuple[str, int, int], int], dict[tuple[str, int, int], int]]:
    """Return what owners gave, and got back, by life and term."""
    given: dict[tuple[str, int, int], int] = {}
    returned: dict[tuple[str, int, int], int] = {}
    for minting in one.mintings:
        for name, boot, gave, back in minting.given:
            given[name, boot, minting.term] = gave
            returned[name, boot, minting.term] = back
    return given, returned


def _faults(one: Sum) -> list[Fault]:
    faults = [
        Fault(one.place, f"{row.name} has {_has(row)} of {_got(row)}", (row,))
        for row in one.held
        if _has(row) != _got(row)
    ]
    faults += [
        Fault(one.place, f"{row.name} gave {_gave(row)} of {_made(row)}", (row,))
        for row in one.mintings
        if _gave(row) != _made(row)
    ]
    faults += _between(one)
    if one.total > one.amount + one.borrowed:
        faults.append(Fault(one.place, _exceeds("there is", one.total, one), _all_rows(one)))
    return faults


def _between(one: Sum) -> list[Fault]:
    given, returned = _books(one)
    faults = []
    for row in one.held:
        backs = dict(row.returned)
        for term, total in row.given:
            key = (row.name, row.boot, term)
            if total > given.get(key, 0):
                text = (
                    f"{row.name} was given {total} under {term}, and its owner {given.get(key, 0)}"
                )
                faults.append(Fault(one.place, text, _all_rows(one)))
            if returned.get(key, 0) > backs.get(term, 0):
                text = f"{row.name} returned {backs.get(term, 0)}, its owner got {returned[key]}"
                faults.append(Fault(one.place, text, _all_rows(one)))
    return faults


def _has(row: Held) -> int:
    back = sum(total for _, total in row.returned)
    return row.spent - row.owed + row.left + back + row.lapsed


def _got(row: Held) -> int:
    return sum(total for _, total in row.given) + row.standing + row.borrowed


def _gave(row: Minting) -> int:
    return row.left + sum(given - returned for _, _, given, returned in row.given)


def _made(row: Minting) -> int:
    return row.minted + row.lapsed


def _exceeds(what: str, total: int, one: Sum) -> str:
    more = f", of which {one.borrowed} may be borrowed" if one.borrowed else ""
    return f"{what} {total} of {one.amount + one.borrowed}{more}"


def _all_rows(one: Sum) -> tuple[Row, ...]:
    return (*one.held, *one.mintings)
