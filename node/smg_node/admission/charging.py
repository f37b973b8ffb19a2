"""Charging: all shares that a request meets, or none, in one step and without a wait. Pure.

This is the hot path of every request that any limit applies to. It asks no clock (the node's tick says which window
is open), takes no lock and makes nothing. Nearly always there is enough of everything, so each share is charged as it
is looked at; where one has too little, or little is left of it, those before are put back and all begins anew.
"""

from collections.abc import Sequence

from smg_node.admission.ports import Share


def admit(shares: Sequence[Share], cost: int) -> Share | None:
    """Charge all shares, or none; return the first that is too small."""
    for share in shares:
        left = share.left - cost
        if left < share.low:
            _put_back(shares, share, cost)
            return admit_warily(shares, cost)
        share.left = left
        share.spent += cost
        share.offered += cost
    return None


def admit_warily(shares: Sequence[Share], cost: int) -> Share | None:
    """Do as `admit`, with a look at all of them first."""
    for share in shares:
        if share.left < cost:
            return share
    for share in shares:
        share.left = left = share.left - cost
        share.spent += cost
        share.offered += cost
        if left < share.low:
            share.wants_more = True
    return None


def _put_back(shares: Sequence[Share], last: Share, cost: int) -> None:
    """Undo what was charged to those before `last`."""
    for share in shares:
        if share is last:
            return
        share.left += cost
        share.spent -= cost
        share.offered -= cost


def take(share: Share, most: int) -> int:
    """Charge a share as much of `most` as it has; return how much that was."""
    taken = min(most, share.left)
    if taken > 0:
        share.left -= taken
        share.spent += taken
        share.offered += taken
    if share.left < share.low or taken < most:
        share.wants_more = True
    return max(0, taken)


def give_back(share: Share, window: int, amount: int) -> None:
    """Put back what was charged to that window and not used; does nothing if the window is over."""
    if share.window == window:
        share.left += amount
        share.spent -= amount
