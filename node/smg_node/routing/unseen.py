"""What other nodes sent to the workers and this one has not heard of yet, and how to choose in spite of it.

What is known of the others is a little old: between two of their statements, and while those travel, they place
requests by the same numbers. If everybody takes the best, the best gets everything for that long. So a node
expects of the others what it does itself, in proportion to what they have open, and shares its own requests
out as if all that work were poured into the workers with it, the emptiest first, until they stand at one level:

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


class Unseen:
    """How much work others place without this node's knowing, for one model."""

    __slots__ = ("_at_s", "_due_s", "_per_s", "_ratio")

    def __init__(self) -> None:
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


def level(found: Sequence[float], least: float, work_s: float) -> float:
    """Return how high the costs stand when `work_s` is poured onto the lowest, but `least` at least."""
    if work_s <= 0:
        return least
    below = found
    while True:
        # Too high by what the higher ones would have to give, so those are not reached: without them it sinks.
        top = (work_s + sum(below)) / len(below)
        lower = [cost for cost in below if cost < top] if max(below) > top else below
        # A mean may be rounded to below the lowest.
        if len(lower) in (0, len(below)):
            return max(least, top)
        below = lower


def poured(found: Sequence[float], top: float, rng: Rng) -> int:
    """Return an index, drawn by how far below `top` its cost lies; the lowest if none does."""
    ends = list(accumulate([top - cost if cost < top else 0.0 for cost in found]))
    at = bisect_right(ends, rng.random() * ends[-1])
    # Nobody lies below, or a rounding went beyond the last one.
    return at if at < len(ends) else found.index(min(found))
