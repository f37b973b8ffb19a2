"""Cache-aware policy: least expected time to the first token, from prefix caches, queues and
memory, in seconds. Pure.

A prompt goes where `routing/costs.py` says that it costs least; among those that cost about as little the
emptier ones are drawn more often. Three rules go beside that:

- A *cold* prompt, cached nowhere, belongs to the owner of its first block on the ring, if that one
  is at most 50 ms, or a quarter, worse than the best. So nodes that see a new beginning at one
  moment agree without a message, and later prompts like it find it cached.
- A worker that begins with an empty cache would never be best for anything: one in four cold prompts is its,
  on the same terms.
- A prompt whose first picture is cached nowhere is cold as well, whatever is cached of the text before it, and its
  owner is that picture's: its encoder's output may be there, and an engine that names no pictures in its events has
  them in its cache without saying so.
- Between two samples of an engine this node sends it at most a burst of what it would have to compute anew:
  an idle worker looks idle to every node.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.cold_work_limit import Burst
from smg_node.routing.cost_sampling import Cheapest
from smg_node.routing.costs import cost, costs, prompt_tokens, rate, with_pictures
from smg_node.routing.policies.threshold import Threshold
from smg_node.routing.policy import Asked, Policy, PolicyParts
from smg_node.routing.pool import Candidate, Pool
from smg_node.routing.routing_keys import prefix_digest

COLD_TOKENS: Final = 64.0
"""A shorter overlap, less than a block, is none."""
COLD_MARGIN_S: Final = 0.05
COLD_MARGIN_SHARE: Final = 0.25
"""What a long prompt costs is known no better than that: rates of prefill are measured, and by each node for itself."""
FRESH_SHARE: Final = 0.25
TRIES_MAX: Final = 4
"""Where as many had enough, all have much to do, and the next one gets it however much it had."""
_OUT_OF_REACH_S: Final = 1e9


def cache_aware(parts: PolicyParts) -> Policy:
    """Return the policy, by costs or by the thresholds that other gateways have."""
    return Threshold(parts) if parts.options.cache_mode == "threshold" else CacheAware(parts)


class CacheAware:
    """Costs in seconds; keeps only the counts of work sent to each worker since it could last
    report.
    """

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""
        self._burst = Burst()
        self._cheapest = Cheapest()

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the cheapest, or one that is about as cheap."""
        tokens, beginning, overlaps = prompt_tokens(asked), asked.beginning, pool.nothing
        if beginning is not None and beginning.blocks:
            overlaps = beginning.overlaps(pool)
        if len(overlaps) == 1:
            return self._only(asked, pool, tokens, overlaps)
        found = with_pictures(costs(pool, tokens, overlaps), asked)
        if overlaps is pool.nothing or max(overlaps) < COLD_TOKENS or _is_unseen(asked, pool):
            at = self._of_cold(asked, pool, found, rng)
        else:
            at = self._cheapest.draw(found, rng)
        if overlaps[at] < COLD_TOKENS:
            at = self._spread(at, asked, pool, found, rng)
            self._cheapest.placed_anywhere(asked.model, pool.candidates[at], tokens, asked.now_s)
        rate(asked, pool, found, overlaps, at)
        return at

    def only(self, model: str, one: Candidate, tokens: int, overlap: float, now_s: float) -> float:
        """See `Unchosen`; what is noted is what it would be after a choice."""
        if overlap < COLD_TOKENS:
            self._burst.sent(one, now_s)
            self._cheapest.placed_anywhere(model, one, tokens, now_s)
        return cost(one, tokens, overlap)

    def _only(self, asked: Asked, pool: Pool, tokens: int, overlaps: Sequence[float]) -> int:
        """Return the one there is, and tell what it costs."""
        one = pool.candidates[0]
        found = with_pictures(
            [self.only(asked.model, one, tokens, overlaps[0], asked.now_s)], asked
        )
        rate(asked, pool, found, overlaps, 0)
        return 0

    def _of_cold(self, asked: Asked, pool: Pool, found: list[float], rng: Rng) -> int:
        """Return the worker for an uncached prompt: a fresh worker, its owner on the ring, or the
        cheapest.
        """
        best = min(found)
        most = best + max(COLD_MARGIN_S, COLD_MARGIN_SHARE * best)
        if asked.now_s < pool.fresh_until_s and rng.random() < FRESH_SHARE:
            fresh = _fresh(pool, asked.now_s)
            fresh = [at for at in fresh if found[at] <= most]
            if fresh:
                return fresh[int(rng.random() * len(fresh))]
        first = _first_block(asked)
        if first:
            owner = pool.nearest(first)
            if found[owner] <= most:
                return owner
        return self._cheapest.draw_anywhere(asked, pool, found, best, rng)

    def _spread(self, at: int, asked: Asked, pool: Pool, found: list[float], rng: Rng) -> int:
        """Return `at`, where the prompt is computed anew; another candidate if that one had enough
        of those.
        """
        candidates, burst, left = pool.candidates, self._burst, found
        for _ in range(min(TRIES_MAX, len(found) - 1)):
            if burst.send(candidates[at], len(found), asked.now_s):
                return at
            left = left[:]
            left[at] = _OUT_OF_REACH_S
            at = self._cheapest.draw_anywhere(asked, pool, left, min(left), rng)
        burst.sent(candidates[at], asked.now_s)
        return at


def _is_unseen(asked: Asked, pool: Pool) -> bool:
    """Whether the prompt has pictures, and nobody has the first of them."""
    pictures, beginning = asked.pictures, asked.beginning
    if pictures is None or beginning is None:
        return False
    return not beginning.reaches(pool, pictures.begins)


def _fresh(pool: Pool, now_s: float) -> list[int]:
    """Return the candidates that fill an empty cache; none where most do, as after the start of
    this node.
    """
    found = [at for at, one in enumerate(pool.candidates) if one.fresh_until_s > now_s]
    return found if 2 * len(found) <= len(pool.candidates) else []


def _first_block(asked: Asked) -> bytes:
    """Return the digest that prompts with the same beginning share; b"" for one without a beginning
    to share.

    A prompt with pictures goes by the first of them instead: many conversations begin with the same words, and what
    takes longest is the picture.
    """
    if asked.pictures is not None:
        return asked.pictures.first
    if asked.beginning is not None:
        return asked.beginning.first()
    if prompt_tokens(asked) < COLD_TOKENS:
        return b""
    return prefix_digest(asked, int(COLD_TOKENS))
