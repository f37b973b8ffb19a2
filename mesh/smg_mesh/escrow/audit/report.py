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
    right: int = 0
    """What stands with each name of the roster in a whole window; 0 of a limit without windows."""
    newcomers: tuple[str, ...] = ()
    """Names of the roster that nothing stands with yet."""
    coming: int = 0
    """Of what stands with this node: what it has not yet, and will have before the window ends."""
    missing: int = 0
    """Of what stands with this name: what this life will not have, since it began in this window."""
    received: tuple[tuple[int, int], ...] = ()
    """(term, what this node was given under it and has not returned), as its own book has it."""
    made: int = -1
    """Of `minted`: by this owner under this term; known to the owner only."""
    withheld: int = 0
    """What neither stands with this node nor may be minted by it, as some may go by older limits or rosters."""
    stranded: tuple[tuple[str, int], ...] = ()
    """(name, what its earlier lives were given and have not returned); known to the owner only."""
