"""One after the other."""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class RoundRobin:
    """Walks the candidates of each model in order of their ids.

    The first step of a model is drawn, so that several nodes do not march in step.
    """

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""
        self._next: dict[str, int] = {}

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the next index for the model."""
        count = len(pool.candidates)
        at = self._next.get(asked.model)
        if at is None:
            at = int(rng.random() * count)
        self._next[asked.model] = at + 1
        return at % count
