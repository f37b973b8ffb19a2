"""Two at random, the less busy one wins.

From Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (2001): the fullest queue
grows with log log n instead of log n / log log n, and nobody herds onto the one emptiest worker.
"""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.policy import Candidate


class PowerOfTwo:
    """Compares the open calls of two distinct candidates."""

    def choose(self, model: str, candidates: Sequence[Candidate], rng: Rng) -> int:
        """Return the less busy of two drawn indices; a draw goes to the first."""
        count = len(candidates)
        if count == 1:
            return 0
        first = int(rng.random() * count)
        second = (first + 1 + int(rng.random() * (count - 1))) % count
        return second if candidates[second].inflight < candidates[first].inflight else first
