"""The choice by cost as its formulas are written, without haste: what the quick one must agree with, draw for draw."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from smg_node.core.ports import Rng
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.cold_work_limit import Burst
from smg_node.routing.costs import COMPUTED, SLOT_S, about, prompt_tokens
from smg_node.routing.peer_load_estimate import TRIES, PeerLoadEstimate
from smg_node.routing.policies.cache_aware import (
    COLD_MARGIN_S,
    COLD_MARGIN_SHARE,
    COLD_TOKENS,
    FRESH_SHARE,
    TRIES_MAX,
)
from smg_node.routing.policy import Asked
from smg_node.routing.pool import Candidate, Pool
from smg_node.routing.routing_keys import prefix_digest


def cost(one: Candidate, tokens: float) -> float:
    return one.wait_s + one.pressure_s + COMPUTED * max(tokens, 0.0) / one.prefill_rate


def level(found: Sequence[float], least: float, work_s: float) -> float:
    """How high the work stands in all costs: without those that it does not reach it sinks, until it reaches all."""
    below = found
    while work_s > 0:
        top = (work_s + sum(below)) / len(below)
        lower = [one for one in below if one < top]
        if len(lower) in (0, len(below)):
            return max(least, top)
        below = lower
    return least


def poured(found: Sequence[float], top: float, rng: Rng) -> int:
    ends = list(accumulate([max(top - one, 0.0) for one in found]))
    at = bisect_right(ends, rng.random() * ends[-1])
    return at if at < len(ends) else found.index(min(found))


def drawn(found: Sequence[float], top: float, rng: Rng) -> int:
    """By trial first: somebody at random, taken with the chance of his depth beside the deepest."""
    for _ in range(TRIES if top > min(found) else 0):
        place = rng.random() * len(found)
        if (place % 1) * (top - min(found)) < top - found[int(place)]:
            return int(place)
    return poured(found, top, rng)


class PlainChoice:
    """Chooses as `cache_aware` does, or as `least_load`."""

    def __init__(self, *, cached: bool) -> None:
        self._cached = cached
        self._burst = Burst()
        self._unseen: PeerLoadEstimate | None = None

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        return (
            self._of_costs(asked, pool, rng) if self._cached else self._of_loads(asked, pool, rng)
        )

    def _of_loads(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        found = [one.wait_s + one.pressure_s for one in pool.candidates]
        at = self._anywhere(asked, pool, found, rng)
        left = 0.0
        if asked.beginning is not None:
            left = round(asked.beginning.overlaps(pool)[at])
        self._placed(asked, pool.candidates[at], max(0, prompt_tokens(asked) - left))
        return at

    def _of_costs(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        overlaps: Sequence[float] = [0.0] * len(pool.candidates)
        if asked.beginning is not None:
            overlaps = asked.beginning.overlaps(pool)
        tokens = prompt_tokens(asked)
        pairs = zip(pool.candidates, overlaps, strict=True)
        found = [cost(one, tokens - overlap) for one, overlap in pairs]
        if max(overlaps) < COLD_TOKENS:
            at = self._of_cold(asked, pool, found, rng)
        else:
            at = poured(found, about(min(found), 0.0), rng)
        if overlaps[at] < COLD_TOKENS:
            at = self._spread(at, asked, pool, found, rng)
            self._placed(asked, pool.candidates[at], tokens)
        return at

    def _of_cold(self, asked: Asked, pool: Pool, found: Sequence[float], rng: Rng) -> int:
        most = min(found) + max(COLD_MARGIN_S, COLD_MARGIN_SHARE * min(found))
        until_s = max(one.fresh_until_s for one in pool.candidates)
        if asked.now_s < until_s and rng.random() < FRESH_SHARE:
            pairs = enumerate(pool.candidates)
            fresh = [at for at, one in pairs if one.fresh_until_s > asked.now_s]
            fresh = fresh if 2 * len(fresh) <= len(found) else []
            fresh = [at for at in fresh if found[at] <= most]
            if fresh:
                return fresh[int(rng.random() * len(fresh))]
        first = b""
        if asked.beginning is not None:
            first = asked.beginning.first()
        elif prompt_tokens(asked) >= COLD_TOKENS:
            first = prefix_digest(asked, int(COLD_TOKENS))
        if first and found[pool.nearest(first)] <= most:
            return pool.nearest(first)
        return self._anywhere(asked, pool, found, rng)

    def _spread(self, at: int, asked: Asked, pool: Pool, found: Sequence[float], rng: Rng) -> int:
        left = list(found)
        for _ in range(min(TRIES_MAX, len(found) - 1)):
            if self._burst.takes(pool.candidates[at], len(found), asked.now_s):
                break
            left[at] = 1e9
            at = self._anywhere(asked, pool, left, rng)
        self._burst.sent(pool.candidates[at], asked.now_s)
        return at

    def _anywhere(self, asked: Asked, pool: Pool, found: Sequence[float], rng: Rng) -> int:
        best = min(found)
        top = about(best, asked.now_s - pool.candidates[found.index(best)].sampled_s)
        high = top
        if self._unseen is not None:
            high = level(found, top, self._unseen.seconds(pool, asked.now_s))
        return poured(found, high, rng) if high > top else drawn(found, top, rng)

    def _placed(self, asked: Asked, one: Candidate, tokens: float) -> None:
        if self._unseen is None:
            self._unseen = PeerLoadEstimate()
        self._unseen.placed(tokens / one.prefill_rate + SLOT_S / one.capacity, asked.now_s)


def busy_fleet(rng: Rng, count: int) -> list[WorkerLoad]:
    """Return workers that differ in everything, a few of them idle and alike."""
    loads = [WorkerLoad(f"w{at:02}") for at in range(count)]
    for one in loads:
        if rng.random() < 0.2:
            continue
        one.prefill_rate = 1_000 + 9_000 * rng.random()
        one.sized(8 + int(rng.random() * 100))
        for _ in range(int(rng.random() * 20)):
            one.begin(int(rng.random() * 6_000))
        one.hear(int(rng.random() * 30), int(rng.random() * 20_000))
        if rng.random() < 0.1:
            one.fresh_until_s = 1e9
    return loads
