"""Overspend check by an owner: whether nodes say to have spent more of a window than there was.

    spent, as the nodes said last   <=   minted, of all owners  +  what may stand with the nodes
    spent by one life of a node     <=   what it was given      +  what may stand with one name

What a node borrowed, or was given by an owner without a majority, is beyond the limit by its mode: it says how much
that was, and it counts as had. The second line is asked only where no other owner gave anything in this window, not
even what came back to it: where this one had the two windows before as well. Nodes say what they spent when they
ask: the last moments of a window are missing, so that what is found is true, and something may be missed.
"""

from typing import Final

from smg_mesh.escrow.limit_model import Life
from smg_mesh.escrow.messages.effects import Difference
from smg_mesh.escrow.owning.window_pool import Pool

_TURNS: Final = 2
"""Owners look one window ahead, and their clocks may be ahead too."""


def reckon(pool: Pool, me: Life) -> Difference | None:
    """Return by how much more was spent than there was, with both sides of the book; None if nothing is wrong."""
    if pool.minted < 0 or not pool.term:
        return None
    customers = sorted(pool.customers.items())
    spent = sum(customer.spent for _, customer in customers)
    loaned = sum(customer.loaned for _, customer in customers)
    more = spent - loaned - pool.minted - pool.stands
    if pool.minted == pool.made and pool.turns >= _TURNS:
        for _, customer in customers:
            had = customer.given - customer.returned + customer.loaned + pool.stands_most
            more = max(more, customer.spent - had)
    if more <= 0:
        return None
    said = tuple((life.name, life.boot, one.spent, one.loaned) for life, one in customers)
    return Difference(more, pool.stands, pool.row(me), said)
