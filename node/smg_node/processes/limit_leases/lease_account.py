"""Lease account: what one data process holds of one limit, as its control process counts it. Pure.

What is lent was charged to the node's share in the window of that moment: it is spent, until it comes back in the
same one. A limit without windows has one term as long as the link lasts: what is open there counts on.
"""

from typing import Final

import msgspec

from smg_node.admission.charging import give_back
from smg_node.admission.ports import Share
from smg_node.processes.limit_leases.lease_messages import LeaseGrant

_NEVER_MS: Final = -(1 << 62)


class Lease:
    """Account of one process and one limit."""

    __slots__ = ("lent", "recalled", "recalled_ms", "share", "term", "window")

    def __init__(self, share: Share, term: int) -> None:
        self.share = share
        self.window = share.window
        self.term = term
        self.lent = 0
        """So much of this term has not come back."""
        self.recalled = False
        """It was asked back, and nothing was said to that."""
        self.recalled_ms = _NEVER_MS

    def fits(self, share: Share) -> bool:
        """Whether it is of this share, in the window it is in now."""
        if self.share is share and self.window == share.window:
            return True
        # What is open counts on in the share that it was charged to, whatever was said of the limit since.
        return not self.share.window_ms and self.lent > 0

    def lend(self, amount: int) -> None:
        """Charge so much to the node's share, for this process."""
        if not amount:
            return
        share = self.share
        assert share.left >= amount > 0, "nobody lends what is not there"
        share.left -= amount
        share.spent += amount
        if share.left < share.low:
            share.wants_more = True
        self.lent += amount

    def take_back(self, amount: int) -> None:
        """Book the return of so much; no more than was lent."""
        amount = min(amount, self.lent)
        self.lent -= amount
        give_back(self.share, self.window, amount)

    def adopt(self, held: int) -> None:
        """Set what is open there, whatever was counted: the process's report is authoritative."""
        share, more = self.share, held - self.lent
        share.left -= more
        share.spent += more
        self.lent = held

    def word(self, given: int, *, answers: bool = True, dry: bool = False) -> LeaseGrant:
        """Return its present grant. Where it is `dry`, nothing is left for the asking process, here
        or elsewhere.
        """
        share = self.share
        pool = share.pool
        if dry:
            pool = 0
        elif pool >= 0:
            pool += max(0, share.left)
        return LeaseGrant(
            key=share.key,
            term=self.term,
            given=given,
            amount=share.amount,
            window_ms=share.window_ms,
            window=self.window,
            ends_ms=share.ends_ms,
            pool=pool,
            state=share.state,
            debt=share.debt,
            dry=dry,
            answers=answers,
            next_ms=share.next_ms,
        )

    def recall(self, now_ms: int) -> LeaseGrant:
        """Return the grant that asks for what is not in use."""
        self.recalled = True
        self.recalled_ms = now_ms
        return msgspec.structs.replace(self.word(0, answers=False), recall=True)
