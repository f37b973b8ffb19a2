"""Every candidate alike."""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.policy import Candidate


class Random:
    """Picks uniformly."""

    def choose(self, model: str, candidates: Sequence[Candidate], rng: Rng) -> int:
        """Return an index drawn uniformly."""
        return int(rng.random() * len(candidates))
