"""What may be open at a time: permits of limits without windows, split over the names of the roster.

Of `amount` permits the i-th of n names (sorted) has every n-th one from i on: all of them are somebody's, and the
parts of two rosters that differ by one name never overlap, since nobody's part grows when a name comes, and
when one goes, the others grow by no more than what it had. So there are never more open than the limit says,
whoever is cut off, and no message is needed; a node that is busier than others cannot use their part.

A new life has its whole part at once: what an earlier one had open ended with its process. If it is in the same
process, it goes on with what is open. A part that
shrinks below what is open is negative until enough has ended.
"""

from smg_mesh.escrow.definitions import Limits
from smg_mesh.escrow.rows import Held
from smg_mesh.escrow.share import ASLEEP, Share
from smg_mesh.escrow.words import Life, Limit, Roster


def permits_of(amount: int, roster: Roster | None, divisor: int, name: str) -> int:
    """Return how many of `amount` permits `name` has, who divides by that; 0 for whom nothing stands with."""
    if roster is None or not divisor or name not in roster.names:
        return 0
    return max(0, -((roster.names.index(name) - amount) // divisor))


class Permits:
    """One per life of a node."""

    def __init__(self, me: Life, limits: Limits) -> None:
        self._me = me
        self._limits = limits
        self._roster: Roster | None = None
        self._divisor = 0
        self._retired = False
        self._shares: dict[str, Share] = {}
        self._parts: dict[str, int] = {}

    def divide(self, roster: Roster | None, divisor: int) -> None:
        """Divide by that from now on."""
        self._roster, self._divisor = roster, divisor
        self.refresh()

    def refresh(self) -> None:
        """Go by the limits as they are now; drop those that are gone and have nothing open."""
        for key, share in list(self._shares.items()):
            self._fit(share, self._limits.get(key))
            if self._limits.get(key) is None and share.spent <= 0:
                share.window = ASLEEP
                share.left = 0
                del self._shares[key]
                del self._parts[key]

    def share(self, limit: Limit) -> Share:
        """Return the share of that limit, with this node's part of it."""
        share = self._shares.get(limit.key)
        if share is None:
            share = self._shares[limit.key] = Share(limit)
            share.window = 0
            share.pool = 0
        self._fit(share, limit)
        return share

    def peek(self, key: str) -> Share | None:
        """Return the share of a key as it is; None if this node has none."""
        return self._shares.get(key)

    def inherit(self, before: "Permits") -> None:
        """Go on with what a life before has open in this process; that one has nothing any more."""
        self._shares, before._shares = before._shares, {}
        self._parts, before._parts = before._parts, {}
        self.refresh()

    def retire(self) -> None:
        """Let nothing be taken any more."""
        self._retired = True
        for share in self._shares.values():
            share.left = 0
            share.window = ASLEEP
        self._shares.clear()
        self._parts.clear()

    def rows(self) -> list[Held]:
        """Return what is open, for the auditor."""
        return [
            Held(
                key=key,
                window=0,
                name=self._me.name,
                boot=self._me.boot,
                amount=share.amount,
                standing=self._parts[key],
                borrowed=0,
                given=(),
                returned=(),
                lapsed=0,
                spent=share.spent,
                owed=0,
                left=self._parts[key] - share.spent,
                offered=share.offered,
            )
            for key, share in self._shares.items()
        ]

    def _fit(self, share: Share, limit: Limit | None) -> None:
        amount = limit.amount if limit is not None else 0
        share.amount = amount
        part = permits_of(amount, self._roster, self._divisor, self._me.name)
        part = 0 if self._retired else part
        self._parts[share.key] = part
        share.left = part - share.spent
