"""Threshold rule of other gateways, for migrations: balance first, then the longest cached match.
Pure.

open calls differ by more than `balance_abs` and by a factor of `balance_rel`   → fewest open calls
more than `cache_threshold` of the prompt is cached somewhere                   → the longest match
otherwise                                                                       → fewest open calls
"""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.costs import costs, prompt_tokens, rate
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class Threshold:
    """Knows no seconds; the costs are only recorded for explanations."""

    def __init__(self, parts: PolicyParts) -> None:
        self._options = parts.options

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the longest match, or one of those with the fewest open calls."""
        beginning = asked.beginning
        overlaps = beginning.overlaps(pool) if beginning is not None else pool.nothing
        tokens = prompt_tokens(asked)
        at = _emptiest(pool, self._matching(pool, tokens, overlaps), rng)
        if asked.rated is not None:
            rate(asked, pool, costs(pool, tokens, overlaps), overlaps, at)
        return at

    def _matching(self, pool: Pool, tokens: int, overlaps: Sequence[float]) -> Sequence[int]:
        """Return those with the longest match, if that is long enough and all are in balance; else
        all.
        """
        options, everybody = self._options, range(len(pool.candidates))
        if not balanced(pool, options.balance_abs, options.balance_rel):
            return everybody
        longest = max(overlaps)
        if longest <= options.cache_threshold * tokens:
            return everybody
        return [at for at in everybody if overlaps[at] == longest]


def balanced(pool: Pool, most_apart: int, most_times: float) -> bool:
    """Whether open calls differ by no more than that, or by no larger a factor."""
    inflight = [one.inflight for one in pool.candidates]
    most, least = max(inflight), min(inflight)
    return most - least <= most_apart or most <= most_times * least


def _emptiest(pool: Pool, places: Sequence[int], rng: Rng) -> int:
    candidates = pool.candidates
    least = min([candidates[at].inflight for at in places])
    free = [at for at in places if candidates[at].inflight == least]
    return free[int(rng.random() * len(free))]
