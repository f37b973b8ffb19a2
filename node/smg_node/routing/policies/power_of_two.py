"""Two at random, the less busy one wins.

From Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (2001): the fullest queue
grows with log log n instead of log n / log log n, and nobody herds onto the one emptiest worker.
"""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class PowerOfTwo:
    """Compares the open calls, of all nodes, of two distinct candidates."""

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the less busy of two drawn indices; of two alike the first."""
        candidates = pool.candidates
        count = len(candidates)
        if count == 1:
            return 0
        first = int(rng.random() * count)
        second = (first + 1 + int(rng.random() * (count - 1))) % count
        return second if candidates[second].inflight < candidates[first].inflight else first
