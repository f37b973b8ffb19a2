"""Passthrough: for models with one worker, no choice at all."""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool


class Passthrough:
    """Always the candidate with the lowest id; meant for models with exactly one worker, and says so once."""

    def __init__(self, parts: PolicyParts) -> None:
        self._warn = parts.warn
        self._warned: dict[str, None] = {}

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return 0."""
        if len(pool.candidates) > 1 and asked.model not in self._warned:
            self._warned[asked.model] = None
            count, first = len(pool.candidates), pool.candidates[0].worker
            self._warn(
                f"passthrough chooses for {asked.model!r}, which has {count} workers: all but {first} stay idle"
            )
        return 0
