"""Report of one limit for operators: its owner, what was minted, and
what became of it on this node.
"""

import msgspec


class Report(msgspec.Struct, frozen=True):
    """Report of one limit in the window of this moment, as this node knows it.

    `minted`, `pool` and `given` are known to the owner only, and -1 or empty elsewhere.
    """

    key: str
    window: int
    amount: int
    state: str
    """exact, standing, borrowed or alone"""
    owner: str
    """Whom this node takes for the owner; empty if there is nobody."""
    term: int
    """Of this node as the owner; 0 if it is not."""
    roster: tuple[str, ...]
    roster_version: int
    minted: int
    pool: int
    given: tuple[tuple[str, int], ...]
    """(name, what it was given and has not returned), by name."""
    standing: int
    borrowed: int
    spent: int
    left: int
    debt: int
    not_adopted: tuple[str, ...]
    """Names that are not known to go by this version of the limits; known to the owner only."""
