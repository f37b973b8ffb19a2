"""Round robin: takes the candidates of a model one after the other. Pure."""

from bisect import bisect_right
from hashlib import blake2b
from operator import attrgetter
from typing import Final

from smg_node.core.ports import Rng
from smg_node.routing.policy import Asked, PolicyParts
from smg_node.routing.pool import Pool

_WORKER: Final = attrgetter("worker")


class RoundRobin:
    """Walks the candidates of each model in order of their ids, on from the last one, there or not.

    Where it begins follows from the name of the node, so that several nodes do not march in step.
    """

    def __init__(self, parts: PolicyParts) -> None:
        self._node = parts.options.node
        self._last: dict[str, str] = {}

    def choose(self, asked: Asked, pool: Pool, rng: Rng) -> int:
        """Return the next index for the model."""
        candidates = pool.candidates
        count = len(candidates)
        last = self._last.get(asked.model)
        if last is None:
            at = self._start(asked.model, rng) % count
        else:
            at = bisect_right(candidates, last, key=_WORKER) % count
        self._last[asked.model] = candidates[at].worker
        return at

    def _start(self, model: str, rng: Rng) -> int:
        if not self._node:
            return rng.getrandbits(32)
        told = f"{self._node}\0{model}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(told, digest_size=4).digest())
