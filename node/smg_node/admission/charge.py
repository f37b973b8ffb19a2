"""What one request holds of one limit on tokens: reserved when it enters, more while it goes on, settled at its end. Pure.

    held    rights that were taken from this node's share, each for the window of its moment
    owed    used without a right: the share's debt, paid from the windows to come
    used    what the tokens so far count

While an answer goes on, `held + owed >= used`; at its end what is held and was not used goes back.
"""

from smg_node.admission.matching import Tariff
from smg_node.admission.ports import Share
from smg_node.admission.share import give_back, take


class Charge:
    """One of them, for `reserved` units that have just been charged to the share."""

    __slots__ = ("_parts", "held", "owed", "tariff")

    def __init__(self, tariff: Tariff, share: Share, reserved: int) -> None:
        self.tariff = tariff
        self.held = reserved
        self.owed = 0
        tariff.measure.open += 1
        self._parts = [(share, share.window, reserved)]

    def covers(self, used: int) -> bool:
        """Whether so much may be used; more is reserved where that is not far."""
        tariff, spare = self.tariff, self.held + self.owed - used
        if spare >= tariff.early:
            return True
        # Where little is left, nobody may hold what others need to come to their end.
        measure = tariff.measure
        fair = (measure.share.left + max(0, measure.share.pool)) // measure.open
        fair = max(fair, tariff.least)
        early = min(tariff.early, fair)
        if spare < early:
            self._take(max(min(tariff.step, fair), early - spare))
        return used <= self.held + self.owed

    def overdraw(self, used: int) -> None:
        """Let so much have been used, whether there was a right to it or not."""
        missing = used - self.held - self.owed
        if missing <= 0:
            return
        missing -= self._take(missing)
        if missing > 0:
            measure = self.tariff.measure
            measure.share.debt += missing
            measure.share.offered += missing
            measure.tally.owed += missing
            self.owed += missing

    def settle(self, used: int) -> None:
        """End with so much used: the rest goes back, the latest first, as far as its window is still open."""
        self.overdraw(used)
        self.tariff.measure.open -= 1
        self.tariff.measure.tally.charged += used
        unused = min(self.held, self.held + self.owed - used)
        self.held -= unused
        while unused > 0:
            share, window, amount = self._parts.pop()
            part = min(amount, unused)
            give_back(share, window, part)
            unused -= part

    def _take(self, most: int) -> int:
        share = self.tariff.measure.share
        taken = take(share, most)
        if taken:
            self.held += taken
            self._parts.append((share, share.window, taken))
        return taken
