"""Book rows: what a node records of a window for the auditor, as a spender and as an owner.

Each row is one side of a book, and both sides are kept in totals:

    Held      spent - owed + left + returned + lapsed  =  given + standing + borrowed
    Minting   left + given - returned                  =  minted + lapsed

What one side has written and the other has not yet is in flight. `auditor` adds up.
"""

from typing import ClassVar, TypeAlias

import msgspec


class Held(msgspec.Struct, frozen=True, array_like=True):
    """Spender's row: what one life of a node had of one window, and what became of it."""

    kind: ClassVar[str] = "held"
    """What `smg-admin limits show` and its route call a row of this class."""
    key: str
    window: int
    name: str
    boot: int
    amount: int
    """Of the limit as this node goes by it in this window."""
    standing: int
    """What stood with it so far; of a long window what has accrued."""
    borrowed: int
    given: tuple[tuple[int, int], ...]
    """(term, total), as far as it arrived here."""
    returned: tuple[tuple[int, int], ...]
    """(term, total), as this node says; a total to no owner (the end of its term) counts as well."""
    lapsed: int
    """Of what stood with it: not spent in time."""
    spent: int
    owed: int
    """Spent without a right to: answers that became longer than expected."""
    left: int
    offered: int = 0
    """What was asked for, refused or not."""


class Minting(msgspec.Struct, frozen=True, array_like=True):
    """Owner's row: what one owner did with one window under one term."""

    kind: ClassVar[str] = "minting"
    """What `smg-admin limits show` and its route call a row of this class."""
    key: str
    window: int
    name: str
    boot: int
    term: int
    amount: int
    minted: int
    """By this owner under this term."""
    lapsed: int
    """Never above zero: what was minted and is withheld, because limit or roster allow less by now."""
    given: tuple[tuple[str, int, int, int], ...]
    """(name, boot, given, returned), both totals as this owner says and knows them."""
    left: int


Row: TypeAlias = Held | Minting
