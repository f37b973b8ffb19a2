"""Sticky sessions: a known routing key keeps its worker, whatever the policy does with other
requests.

    a key's home   = the first worker on the ring, away or not
    where it goes  = what is bound, if that can be chosen; else the first on the ring that can be

Nodes agree about the home without a word. Only a deviation is written down: a key that went elsewhere,
because its home was away, stays there when the home comes back, on every node. The ring here has no bound
for the load: two nodes with slightly different numbers must not send one key to two workers.
"""

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, Bindings, Policy
from smg_node.routing.pool import Pool
from smg_node.routing.routing_keys import key_digest


class Sticky:
    """Goes before another policy, which gets the requests without a key."""

    def __init__(self, inner: Policy, bindings: Bindings) -> None:
        self._inner = inner
        self._bindings = bindings

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return where the key is bound or at home, else the next on the ring, and remember that."""
        if not asked.key:
            return self._inner.choose(asked, pool, rng)
        digest = key_digest(asked.key, model=asked.model)
        key = digest.hex()
        bound = self._bindings.worker_of(key)
        if bound is not None:
            at = pool.place(bound)
            if at >= 0:
                self._bindings.touch(key)
                return at
        at = pool.nearest(digest)
        worker, home = pool.candidates[at].worker, pool.ring.owner(digest)
        if worker != home:
            self._bindings.bind(key, worker, f"{bound or home} could not take it")
        elif bound is not None:
            self._bindings.release(key)
        return at
