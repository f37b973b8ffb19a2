"""For one worker: no choice at all."""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.policy import Candidate


class Passthrough:
    """Always the candidate with the lowest id; meant for models with exactly one worker."""

    def choose(self, model: str, candidates: Sequence[Candidate], rng: Rng) -> int:
        """Return 0."""
        return 0
