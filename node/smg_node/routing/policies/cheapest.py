"""Cheapest: the target of a route that is expected to cost the fewest dollars for this request. Pure.

Of those that cost the same the one that is expected to answer soonest is taken, and of these a conversation takes
always the same one, by weight. Targets without a known price come last.
"""

from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.costs import about, rate
from smg_node.routing.policies.weighted import Weighted
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool
from smg_node.routing.target_costs import (
    UNPRICED,
    AnswerLengths,
    expected_dollars,
    expected_seconds,
)

SAME: Final = 1e-9
"""Amounts that differ by a smaller share are the same: they were summed in another order."""


class Cheapest:
    """Lowest expected dollars."""

    def __init__(self, parts: PolicyParts) -> None:
        self._weighted = Weighted(parts)
        self._lengths = AnswerLengths()

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the cheapest, and of several the soonest."""
        answer, overlaps = self._lengths.expected(asked, pool), pool.nothing
        if asked.beginning is not None and asked.beginning.blocks:
            overlaps = asked.beginning.overlaps(pool)
        dollars = expected_dollars(asked, pool, answer, overlaps)
        seconds = expected_seconds(pool, answer)
        least = min(dollars)
        equal = [at for at in pool.places if dollars[at] <= least * (1 + SAME)]
        top = about(min(seconds[at] for at in equal), 0.0)
        at = self._weighted.among(asked, pool, [at for at in equal if seconds[at] <= top], rng)
        if asked.rated is not None:
            told = [None if one == UNPRICED else one for one in dollars]
            rate(asked, pool, seconds, overlaps, at, told)
            asked.rated.note = "" if least != UNPRICED else "no target has a known price"
        return at
