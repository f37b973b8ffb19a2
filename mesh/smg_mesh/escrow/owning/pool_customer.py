"""Pool customer: what one life of a node said of a window to its owner, and was given of it."""

from typing import Final

CALL_AGAIN_MS: Final = 100
"""Who was called and still has something is called again after this, and then ever more seldom."""


class Customer:
    """Customer of a pool: what one life of a node said, and was given."""

    __slots__ = (
        "asked_ms",
        "call_gap_ms",
        "called_ms",
        "demand",
        "given",
        "heard_ms",
        "hungry",
        "lapsed",
        "loaned",
        "returned",
        "spent",
        "spoke",
        "stands",
        "told_free",
    )

    def __init__(self) -> None:
        self.spoke = False
        """It said something of this window, and will say by itself what it does not need of it."""
        self.given = 0
        self.returned = 0
        self.lapsed = 0
        self.demand = 0
        """In thousandths per second."""
        self.hungry = 0
        """Asked for, and not given."""
        self.asked_ms = 0
        """When it asked last, on its own clock."""
        self.heard_ms = 0
        self.spent = 0
        """As it said last; what was reserved and not used comes back, so it may shrink."""
        self.loaned = 0
        self.called_ms = -1
        """When it was called for what it does not need."""
        self.call_gap_ms = CALL_AGAIN_MS
        self.stands = -1
        """What stands with it in all of the window, and what it has of owners before, as it said; -1 if it did not."""
        self.told_free = -1
        """What it was told can be spent yet."""

    def call(self, *, now_ms: int, every_ms: int) -> bool:
        """Return whether it is to be called now; not again at once, and ever more seldom, `every_ms` in the end."""
        if 0 <= self.called_ms > now_ms - self.call_gap_ms:
            return False
        if self.called_ms >= 0:
            self.call_gap_ms = min(every_ms, 2 * self.call_gap_ms)
        self.called_ms = now_ms
        return True

    def holds(self, standing: int) -> int:
        """Return what it has and has not spent, as it said last; so much stands with it unless it said otherwise."""
        if self.stands >= 0:
            standing = self.stands
        has = standing + self.given + self.loaned - self.returned - self.lapsed - self.spent
        return max(0, has)
