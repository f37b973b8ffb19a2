"""Prefix hash: consistent hashing of a prompt's first tokens, so that like prompts share a worker's
cache. Pure.
"""

from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool
from smg_node.routing.routing_keys import prefix_digest

FLOOR: Final = 10
"""So many open calls never make a worker full; see `consistent_hashing`."""


class PrefixHash:
    """A ring with bounded loads over the first tokens of the prompt."""

    def __init__(self, parts: PolicyParts) -> None:
        self._load_factor = parts.options.load_factor
        self._tokens = parts.options.prefix_tokens

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the first that is not full, from the digest of the beginning on."""
        digest = prefix_digest(asked, self._tokens)
        return pool.nearest_free(digest, load_factor=self._load_factor, floor=FLOOR)
