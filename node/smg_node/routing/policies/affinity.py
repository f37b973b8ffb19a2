"""Affinity: the target of a route that costs least, with what its vendor's prompt cache is expected to save. Pure.

Costs are those of the request's plan, in seconds: waits, tokens to be read anew, dollars. Targets that cost about the
same share requests out by weight, and a conversation stays: so a beginning that nobody has goes where the weights say,
on every node. An engine beside vendors costs what `routing.costs` says.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.costs import cost, prompt_tokens, rate
from smg_node.routing.policies.weighted import Weighted
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool

ABOUT_S: Final = 0.005
ABOUT_SHARE: Final = 0.02
"""Costs within these of the least are the same: bytes say no better how many tokens a prompt is."""


class Affinity:
    """Least cost by the plan of the request; by weight without one."""

    def __init__(self, parts: PolicyParts) -> None:
        self._weighted = Weighted(parts)
        self._dollar_seconds = 0.0

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the cheapest; of about as cheap ones the one that the weights say."""
        if asked.caches is None:
            return self._weighted.choose(asked, pool, rng)
        overlaps = list(pool.nothing)
        if asked.beginning is not None and asked.beginning.blocks:
            overlaps = list(asked.beginning.overlaps(pool))
        costs: list[float] = []
        tokens = prompt_tokens(asked)
        for at, one in enumerate(pool.candidates):
            found = asked.caches.cost(one.worker, dollar_seconds=self._dollar_seconds)
            if found is None:
                costs.append(cost(one, tokens, overlaps[at]))
            else:
                seconds, overlaps[at] = found
                costs.append(seconds)
        at = self._drawn(costs, asked, pool, rng)
        rate(asked, pool, costs, overlaps, at)
        if asked.rated is not None and overlaps[at] >= 1:
            asked.rated.note = (
                f"about {overlaps[at]:,.0f} tokens of its prompt should be cached there"
            )
        return at

    def _drawn(self, costs: Sequence[float], asked: Asked, pool: Pool, rng: Rng) -> int:
        best = min(costs)
        most = best + max(ABOUT_S, ABOUT_SHARE * best)
        near = [at for at in pool.places if costs[at] <= most]
        if len(near) == 1:
            return near[0]
        return near[self._weighted.choose(asked, pool.only(near), rng)]
