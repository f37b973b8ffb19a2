"""Consistent hashing by key, with bounded loads: the same key goes to the same worker, as long as
that is not full. Pure.
"""

from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool
from smg_node.routing.routing_keys import key_digest

FLOOR: Final = 10
"""So many open calls never make a worker full: with few calls in all, a fair share is one or two, and keys
would wander for nothing, to another neighbour on every node."""


class ConsistentHashing:
    """A ring with bounded loads; without any key it is chance that decides."""

    def __init__(self, parts: PolicyParts) -> None:
        self._load_factor = parts.options.load_factor

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the first that is not full, from the key on: routing key, else caller, else address."""
        if asked.key:
            digest = key_digest(asked.key, model=asked.model)
        elif asked.caller:
            digest = key_digest(asked.caller, model=asked.model, tenant="caller")
        elif asked.client:
            digest = key_digest(asked.client, model=asked.model, tenant="client")
        else:
            return int(rng.random() * len(pool.candidates))
        return pool.nearest_free(digest, load_factor=self._load_factor, floor=FLOOR)
