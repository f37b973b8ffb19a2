"""What limits did to requests, counted for whoever scrapes: by limit as it was defined, not by each instance of it.

A request that is over has met several limits, and nobody looks at any of them before the next one is. So it is one
more of those that met the same limits, and these are counted limit by limit when somebody looks.
"""

from collections.abc import Mapping
from typing import Final, Protocol

LIMITS_MAX: Final = 100
"""How many limits are counted apart."""
OTHER: Final = "other"


class Tally:
    """Of one limit: requests by what became of them, units that were charged, and how many of those were owed."""

    __slots__ = ("admitted", "charged", "owed", "refused", "waited")

    def __init__(self) -> None:
        self.admitted = 0
        self.refused = 0
        self.waited = 0
        """Those among both that had to wait for rights."""
        self.charged = 0
        self.owed = 0


class Ended(Protocol):
    """Requests that met the same limits, and are over."""

    def tell(self) -> int:
        """Count those that were not counted yet; return how many they are."""
        ...


class Tallies:
    """Of all limits, and how many requests are under way that any of them applies to."""

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
        """How many of them are under way."""
        self.count()
        return self.begun - self.ended

    def of(self, limit: str) -> Tally:
        """Return the one of that limit."""
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
