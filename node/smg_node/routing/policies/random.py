"""Every candidate alike."""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class Random:
    """Picks uniformly."""

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return an index drawn uniformly."""
        return int(rng.random() * len(pool.candidates))
