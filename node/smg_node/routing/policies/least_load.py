"""Least load: picks the worker that is expected to begin soonest, whatever it has cached. Pure."""

from smg_node.core.ports import Rng
from smg_node.routing.cost_sampling import Cheapest
from smg_node.routing.costs import prompt_tokens, rate, uncached, waits
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class LeastLoad:
    """Lowest expected wait and pressure, or about the lowest."""

    def __init__(self, parts: PolicyParts) -> None:
        """Take nothing from the parts."""
        self._cheapest = Cheapest()

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the least loaded one, or one that is about as little loaded."""
        found = waits(pool)
        at = self._cheapest.draw_anywhere(asked, pool, found, min(found), rng)
        rate(asked, pool, found, pool.nothing, at)
        tokens = uncached(asked, pool, at, prompt_tokens(asked))
        self._cheapest.placed_anywhere(asked.model, pool.candidates[at], tokens, asked.now_s)
        return at
