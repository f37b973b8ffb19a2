"""Matched limit: one limit as this node meets it, its share, and what clients were told of it. Pure."""

from typing import Final

from smg_node.admission.header_values import HeaderValues, limit_name
from smg_node.admission.headers import HEARD, UNKNOWN, Least
from smg_node.admission.limit_counters import Tally
from smg_node.admission.ports import Match, Share, Unit

_ASLEEP: Final = -1
"""In place of the window of a share that nobody used for a while."""
_LENT_MS: Final = 120_000
"""In windows up to here all that nobody has spent can be got at any node."""
_SHORT_MS: Final = 10_000
"""In windows up to here whatever was told stands until the next one."""


class MatchedLimit:
    """One limit on this node; all requests that meet it share the object."""

    __slots__ = (
        "_amount",
        "_window",
        "key",
        "least",
        "name",
        "open",
        "share",
        "tally",
        "unit",
        "window_ms",
    )

    def __init__(self, match: Match, share: Share, tally: Tally) -> None:
        self.key = match.key
        self.unit: Unit = match.unit
        self.window_ms = match.window_ms
        self.name = limit_name(match.key.partition("#")[0], match.unit, match.window_ms)
        self.share = share
        self.tally = tally
        self.open = 0
        """Answers under way that are charged to it."""
        self._window = -1
        self._amount = 0
        self.least = Least()
        """Of the window that was told of last."""

    def told(self, now_ms: int, *, most: int | None = None) -> HeaderValues:
        """Return what is reported to a client now; what remains is at most `most`.

        In a window it does not rise; in a long one, not from what an owner reported. What only this
        node knows is reported there, and forgotten: it may be nothing while most of a day's budget
        is there.
        """
        share = self.share
        remaining = self.remains(most=most)
        reset_ms = max(0, share.ends_ms - now_ms) if self.window_ms else 0
        return HeaderValues(
            self.name,
            self.unit,
            share.state,
            share.amount,
            remaining,
            reset_ms,
            now_ms + reset_ms,
        )

    def remains(self, *, most: int | None = None) -> int:
        """Return what is reported to a client as remaining now; as `told`."""
        share = self.share
        heard = share.pool >= 0 and share.state in HEARD
        remaining = share.left + share.pool if heard else share.left
        if 0 < self.window_ms <= _LENT_MS and share.pool < 0 and share.state == "exact":
            # Its owner has not spoken yet of this window, or there is none yet: others may have spent nothing of it.
            remaining = share.amount - share.spent
        if share.debt > 0:
            # Paid from what its owner has left, or from the windows to come. Had it been reported as nothing, nothing would
            # be reported until the window ends, though a day's budget may be there.
            remaining = remaining - share.debt if heard and share.pool else 0
        if most is not None:
            remaining = min(remaining, most)
        remaining = max(0, min(remaining, share.amount))
        if not self.window_ms:
            return remaining
        return self._fallen(remaining, heard=heard, refused=most is not None)

    def _fallen(self, remaining: int, *, heard: bool, refused: bool) -> int:
        """Return what remains of this window: no more than was reported before, unless the limit
        was raised.
        """
        share, short = self.share, self.window_ms <= _SHORT_MS
        # One that sleeps says nothing of windows: it may wake up in the same one.
        if share.window not in (self._window, _ASLEEP) or share.amount > self._amount:
            self._window = share.window
            # Code that still holds the former one finds nothing in it.
            self.least.units = UNKNOWN
            self.least = Least()
        self._amount = share.amount
        least = self.least
        least.units = min(least.units, share.amount)
        if least.units != UNKNOWN:
            waits = share.pool < 0 and not refused and not short
            remaining = least.units if waits else min(remaining, least.units)
        if short or (heard and share.window >= 0 and (share.pool == 0 or not refused)):
            least.units = remaining
        return remaining
