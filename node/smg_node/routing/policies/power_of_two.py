"""Power of two choices: draws two candidates at random and takes the less busy one. Pure.

From Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (2001): the fullest queue
grows with log log n instead of log n / log log n, and requests do not herd onto the one emptiest
worker.
"""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class PowerOfTwo:
    """Compares two distinct candidates: by what a request would wait there, or by open calls of all nodes."""

    def __init__(self, parts: PolicyParts) -> None:
        self._by_wait = parts.options.metric == "expected_wait"

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the less busy of two drawn indices; of two alike the first."""
        candidates = pool.candidates
        count = len(candidates)
        if count == 1:
            return 0
        first = int(rng.random() * count)
        second = (first + 1 + int(rng.random() * (count - 1))) % count
        one, other = candidates[first], candidates[second]
        if self._by_wait:
            here_s, there_s = one.base_s, other.base_s
            if here_s != there_s:
                return second if there_s < here_s else first
        return second if other.inflight < one.inflight else first
