"""Affinity: the target of a route that costs least, with what its vendor's prompt cache is expected to save. Pure.

Costs are those of the request's plan, in seconds: waits, tokens to be read anew, dollars. Targets that cost about the
same share requests out by weight, and a conversation stays: so a beginning that nobody has goes where the weights say,
on every node. An engine beside vendors costs what `routing.costs` says.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.core.ports import Rng
from smg_node.engines.http.vendor_cache import Dollars
from smg_node.routing.costs import cost, prompt_tokens, rate
from smg_node.routing.policies.weighted import Weighted
from smg_node.routing.policy import Asked, PolicyParts, Pricing
from smg_node.routing.pool import Pool
from smg_node.routing.target_costs import UNPRICED, AnswerLengths

DOLLAR_S: Final = 100.0
"""Seconds that a dollar counts as where `routing.dollar_s` does not say it: ten thousand tokens read anew, three cents, are worth three."""
ABOUT_S: Final = 0.005
ABOUT_SHARE: Final = 0.02
"""Costs within these of the least are the same: bytes say no better how many tokens a prompt is."""


class Affinity:
    """Least cost by the plan of the request; by weight without one."""

    def __init__(self, parts: PolicyParts) -> None:
        self._weighted = Weighted(parts)
        self._lengths = AnswerLengths()
        self._dollar_seconds = parts.options.dollar_seconds or DOLLAR_S

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the cheapest; of about as cheap ones the one that the weights say."""
        if asked.caches is None:
            return self._weighted.choose(asked, pool, rng)
        overlaps = list(pool.nothing)
        if asked.beginning is not None and asked.beginning.blocks:
            overlaps = list(asked.beginning.overlaps(pool))
        pricing = None if asked.pricing is None else asked.pricing()
        answer = 0 if pricing is None else round(self._lengths.expected(asked, pool))
        found = [
            asked.caches.cost(
                worker,
                dollar_seconds=self._dollar_seconds,
                price=None if pricing is None else _price_at(worker, answer, pricing),
            )
            for worker in pool.workers
        ]
        known = [one.dollars for one in found if one is not None and one.dollars is not None]
        # What an unpriced target costs is not known to be less than any other.
        unpriced_s = self._dollar_seconds * max(known, default=0.0)
        costs: list[float] = []
        tokens = prompt_tokens(asked)
        for at, one in enumerate(found):
            if one is None:
                costs.append(cost(pool.candidates[at], tokens, overlaps[at]))
            else:
                costs.append(one.seconds + (unpriced_s if one.dollars is None else 0.0))
                overlaps[at] = one.read
        at = self._drawn(costs, asked, pool, rng)
        rate(asked, pool, costs, overlaps, at, [one and one.dollars for one in found])
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


def _price_at(worker: str, answer: int, pricing: Pricing) -> Dollars | None:
    """Return what a call with such an answer costs at a worker by its prompt; None where its price is not known."""
    if pricing(worker, 0.0, answer) == UNPRICED:
        return None

    def dollars(prompt: int, read: int, written: int) -> float:
        whole = max(1, prompt)
        return pricing(worker, read / whole, answer, written / whole)

    return dollars
