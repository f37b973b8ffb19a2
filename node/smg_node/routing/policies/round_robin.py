"""One after the other."""

from collections.abc import Sequence

from smg_node.core.ports import Rng
from smg_node.routing.policy import Candidate


class RoundRobin:
    """Walks the candidates of each model in order of their ids.

    The first step of a model is drawn, so that several nodes do not march in step.
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, model: str, candidates: Sequence[Candidate], rng: Rng) -> int:
        """Return the next index for `model`."""
        at = self._next.get(model)
        if at is None:
            at = int(rng.random() * len(candidates))
        self._next[model] = at + 1
        return at % len(candidates)
