"""Peer load estimate: work that other nodes have placed but not yet reported, and a choice that
allows for it. Pure.

What is known of the others is a little old: between two of their statements, and while those
travel, they place requests by the same numbers. If every node takes the best, the best gets
everything for that long. So a node expects of the others what it does itself, in proportion to what
they have open, and shares its own requests out as if all that work were poured into the workers
with it, the emptiest first, until they stand at one level:

    level L  with  sum over workers of max(0, L - cost) = work placed unseen, in seconds
    chance of a worker  ~  L - cost

A node alone has nothing unseen, and takes the best. The rule is "Basic LI" of Dahlin, "Interpreting Stale Load
Information" (2000), with the amount measured.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.pool import Pool

STALE_S: Final = 0.3
"""Others say what they have open four times a second, so it is 0.12 s old on average, and heard 0.15 s later."""
HALF_LIFE_S: Final = 3.5
LOOK_AGAIN_S: Final = 0.25
RATIO_MAX: Final = 64.0
"""Others have at most this many times as much open as this node; beyond that it is this one that is idle."""
_LN_2: Final = 0.6931
TRIES: Final = 6
"""So many candidates are tried blindly; where few can be drawn, looking at all of them is cheaper than more tries."""
_GUESS: Final = 1.1
"""The level rises and sinks by a few percent from one request to the next, and a guess should not be too low."""


class PeerLoadEstimate:
    """Estimated work that other nodes placed since their last reports, for one model."""

    __slots__ = ("_at_s", "_due_s", "_per_s", "_ratio", "_rise_s")

    def __init__(self) -> None:
        self._rise_s = float("inf")
        """How far above the lowest cost the level stood last."""
        self._per_s = 0.0
        self._at_s = float("-inf")
        self._ratio = 0.0
        self._due_s = float("-inf")

    def seconds(self, pool: Pool, now_s: float) -> float:
        """Return the work that is probably on its way to the candidates, in seconds of one worker."""
        if now_s >= self._due_s:
            self._due_s = now_s + LOOK_AGAIN_S
            self._ratio = _others_to_own(pool)
        return self._per_s * self._ratio * STALE_S

    def draw(self, found: Sequence[float], best: float, top: float, work_s: float, rng: Rng) -> int:
        """Return an index, drawn as if `work_s` were poured onto costs; `best` is the lowest, all below `top` may be drawn."""
        if best + work_s > top:
            high, below = level(found, work_s, best + _GUESS * self._rise_s)
            self._rise_s = high - best
            if high > top:
                return poured(found, high, rng, below)
        return drawn(found, best, top, rng)

    def placed(self, cost_s: float, now_s: float) -> None:
        """Note that this node placed work that costs a worker so many seconds."""
        elapsed_s = now_s - self._at_s
        self._per_s = self._per_s * 0.5 ** (elapsed_s / HALF_LIFE_S) + cost_s * _LN_2 / HALF_LIFE_S
        self._at_s = now_s


def _others_to_own(pool: Pool) -> float:
    """Return how many times as much as this node the others have open."""
    total = sum([one.inflight for one in pool.candidates])
    own = sum([one.own_inflight for one in pool.candidates])
    return min((total - own) / own, RATIO_MAX) if own else 0.0


def level(
    found: Sequence[float], work_s: float, near: float = float("inf")
) -> tuple[float, Sequence[float]]:
    """Return how high the costs stand when `work_s`, which is some, is poured onto the lowest; and those below.

    `near` is a guess: if it lies closely above what is returned, that is found soon.
    """
    below: Sequence[float] = [cost for cost in found if cost < near] or found
    top = (work_s + sum(below)) / len(below)
    if top > near:
        # Too few are below a guess that is too low, so what follows from them is too high, as a start must be.
        below = [cost for cost in found if cost < top] or below
    while True:
        # Too high by what the higher ones would have to give, so those are not reached: without them it sinks.
        top = (work_s + sum(below)) / len(below)
        lower = [cost for cost in below if cost < top]
        # A mean may be rounded to below the lowest.
        if len(lower) in (0, len(below)):
            return top, lower
        below = lower


def drawn(found: Sequence[float], best: float, top: float, rng: Rng) -> int:
    """Return the same as `poured`, sooner where many can be drawn; `best` is the lowest cost.

    A candidate is accepted with the chance that its depth has relative to the deepest; otherwise
    another one is drawn. That is the wanted distribution, in one look at a candidate instead of one
    at each (rejection sampling, von Neumann).
    """
    count, span = len(found), top - best
    if span > 0:
        for _ in range(TRIES):
            place = rng.random() * count
            at = int(place)
            # What is left of the draw is as good as another one.
            if (place - at) * span < top - found[at]:
                return at
    return poured(found, top, rng)


def poured(
    found: Sequence[float], top: float, rng: Rng, below: Sequence[float] | None = None
) -> int:
    """Return an index, drawn by how far below `top` its cost lies; the lowest if none does.

    `below` are those costs, if the caller has them already.
    """
    if below is None:
        below = [cost for cost in found if cost < top]
    chance = rng.random()
    if len(below) < 2:
        return found.index(below[0] if below else min(found))
    ends = list(accumulate([top - cost for cost in below]))
    at = bisect_right(ends, chance * ends[-1])
    if at == len(below):
        # A rounding went beyond the last one.
        return found.index(min(found))
    return at if len(below) == len(found) else _place(found, below, at)


def _place(found: Sequence[float], below: Sequence[float], at: int) -> int:
    """Return where the `at`-th of `below`, some of `found` in their order, stands there."""
    cost, place = below[at], -1
    for _ in range(1 + below[:at].count(cost)):
        place = found.index(cost, place + 1)
    return place
