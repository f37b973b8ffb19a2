"""Fastest: the target of a route that is expected to answer soonest, or about as soon. Pure.

    cost = seconds (see `routing.target_costs`) + `routing.dollar_s` x dollars

Of those that are about as good as the best, a conversation takes always the same one, by weight. 2 % of the requests
explore: they are drawn by weight among all, so that a target that was slow is seen to have become fast.
"""

from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.costs import about, rate
from smg_node.routing.policies.weighted import Weighted, drawn
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool
from smg_node.routing.target_costs import (
    UNPRICED,
    AnswerLengths,
    expected_dollars,
    expected_seconds,
)

EXPLORED: Final = 0.02


class Fastest:
    """Lowest expected seconds, or about the lowest."""

    def __init__(self, parts: PolicyParts) -> None:
        self._dollar_seconds = parts.options.dollar_seconds
        self._weighted = Weighted(parts)
        self._lengths = AnswerLengths()

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return one that is about as fast as any, or now and then any."""
        answer = self._lengths.expected(asked, pool)
        found, dollars = expected_seconds(pool, answer), None
        overlaps = pool.nothing
        if self._dollar_seconds and asked.pricing is not None:
            if asked.beginning is not None and asked.beginning.blocks:
                overlaps = asked.beginning.overlaps(pool)
            dollars = expected_dollars(asked, pool, answer, overlaps)
            # What has no price counts as the dearest that has one.
            dearest = max((one for one in dollars if one != UNPRICED), default=0.0)
            each = self._dollar_seconds
            found = [
                seconds + each * (dearest if cost == UNPRICED else cost)
                for seconds, cost in zip(found, dollars, strict=True)
            ]
        explores = len(found) > 1 and rng.random() < EXPLORED
        if explores:
            at = drawn(pool.candidates, rng)
        else:
            top = about(min(found), 0.0)
            at = self._weighted.among(
                asked, pool, [at for at in pool.places if found[at] <= top], rng
            )
        if asked.rated is not None:
            told = (
                None if dollars is None else [None if one == UNPRICED else one for one in dollars]
            )
            rate(asked, pool, found, overlaps, at, told)
            asked.rated.note = "explored: drawn by weight among all" if explores else ""
        return at
