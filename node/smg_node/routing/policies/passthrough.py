"""For one worker: no choice at all."""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class Passthrough:
    """Always the candidate with the lowest id; meant for models with exactly one worker."""

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return 0."""
        return 0
