"""Random choice, weighted by capacity. Pure."""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class Random:
    """Picks a worker that runs twice as many requests at once twice as often."""

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return an index drawn by capacity."""
        shares = [one.capacity for one in pool.candidates]
        left = rng.random() * sum(shares)
        for at, share in enumerate(shares):
            left -= share
            if left < 0:
                return at
        return len(shares) - 1
