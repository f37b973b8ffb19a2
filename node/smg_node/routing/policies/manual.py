"""Manual assignment: a key is bound to a worker once, in the shared table, until that worker cannot
take it.
"""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, Policy, PolicyParts
from smg_node.routing.pool import Pool
from smg_node.routing.routing_keys import key_digest


class Manual:
    """Every assignment is in the table that all nodes share; requests without a key go by another policy.

    With `assignment` ring, nodes that see a new key at the same moment assign it alike. With random, min_load
    (fewest open calls) and min_group (fewest keys) they may not; the later word of the two counts, as soon as
    it is heard.
    """

    def __init__(self, parts: PolicyParts) -> None:
        assert parts.named is not None
        self._bindings = parts.bindings
        self._assignment = parts.options.assignment
        self._delegate: Policy = parts.named(parts.options.delegate)

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the worker of the key, or assign one."""
        if not asked.key:
            return self._delegate.choose(asked, pool, rng)
        digest = key_digest(asked.key, model=asked.model)
        key = digest.hex()
        bound = self._bindings.worker_of(key)
        if bound is not None:
            at = pool.place(bound)
            if at >= 0:
                self._bindings.touch(key)
                return at
        at = self._assign(digest, pool, rng)
        why = "assigned" if bound is None else f"{bound} could not take it"
        self._bindings.bind(key, pool.candidates[at].worker, why)
        return at

    def _assign(self, digest: bytes, pool: Pool, rng: Rng) -> int:
        if self._assignment == "ring":
            return pool.nearest(digest)
        candidates = pool.candidates
        if self._assignment == "min_load":
            return _one_of_least([one.inflight for one in candidates], rng)
        if self._assignment == "min_group":
            return _one_of_least([self._bindings.keys_at(one.worker) for one in candidates], rng)
        return int(rng.random() * len(candidates))


def _one_of_least(numbers: Sequence[int], rng: Rng) -> int:
    least = min(numbers)
    places = [at for at, number in enumerate(numbers) if number == least]
    return places[int(rng.random() * len(places))]
