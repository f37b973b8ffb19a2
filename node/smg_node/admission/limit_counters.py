"""Limit counters for scrapes: requests by outcome, units charged and owed, per defined limit.

Counts are by limit as it was defined, not by each instance of it. A finished request has met
several limits, and nothing reads them before the next scrape. So it adds one to the group of those
that met the same limits, and groups are spread over limits when a scrape reads.
"""

from collections.abc import Mapping
from typing import Final, Protocol

LIMITS_MAX: Final = 100
"""How many limits are counted apart."""
OTHER: Final = "other"


class Tally:
    """Counts of one limit: requests by outcome, units that were charged, and how many of those were
    owed.
    """

    __slots__ = ("admitted", "charged", "owed", "refused", "waited")

    def __init__(self) -> None:
        self.admitted = 0
        self.refused = 0
        self.waited = 0
        """Those among both that had to wait for rights."""
        self.charged = 0
        self.owed = 0


class Ended(Protocol):
    """Finished requests that met the same limits."""

    def tell(self) -> int:
        """Count those that were not counted yet; return their number."""
        ...


class Tallies:
    """Counts of all limits, and the number of open requests that any limit applies to."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self.begun = 0
        """Requests that any limit applies to."""
        self.ended = 0
        """Those of them that are over, without those that somebody has to tell."""
        self.late: list[Ended] = []
        """Those who have something to tell, each once."""

    def count(self) -> None:
        """Let all limits have counted all requests that are over."""
        late, self.late = self.late, []
        for one in late:
            self.ended += one.tell()

    @property
    def open(self) -> int:
        """Number of open requests that a limit applies to."""
        self.count()
        return self.begun - self.ended

    def of(self, limit: str) -> Tally:
        """Return the counts of that limit."""
        known = self._tallies.get(limit)
        if known is not None:
            return known
        if len(self._tallies) >= LIMITS_MAX:
            limit = OTHER
        return self._tallies.setdefault(limit, Tally())

    def requests(self) -> Mapping[tuple[str, ...], float]:
        """Return how many requests there were, by limit and outcome."""
        self.count()
        found: dict[tuple[str, ...], float] = {}
        for limit, tally in self._tallies.items():
            found[limit, "admitted"] = tally.admitted
            found[limit, "refused"] = tally.refused
            found[limit, "waited"] = tally.waited
        return found

    def charged(self) -> Mapping[tuple[str, ...], float]:
        """Return how many units were charged, by limit."""
        self.count()
        return {(limit,): tally.charged for limit, tally in self._tallies.items()}

    def owed(self) -> Mapping[tuple[str, ...], float]:
        """Return how many of them had no right when they were used, by limit."""
        return {(limit,): tally.owed for limit, tally in self._tallies.items()}
