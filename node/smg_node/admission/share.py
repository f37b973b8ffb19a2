"""Charging: all shares that a request meets, or none, in one step and without a wait. Pure.

This is the hot path of every request that any limit applies to. It asks no clock (the node's tick says which window
is open), takes no lock and makes nothing.
"""

from collections.abc import Sequence

from smg_node.admission.ports import Share


def admit(shares: Sequence[Share], cost: int) -> Share | None:
    """Charge all shares, or none; return the first that is too small."""
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
    """Put back what was charged to that window and not used; if it is over, nobody can use it any more."""
    if share.window == window:
        share.left += amount
        share.spent -= amount
