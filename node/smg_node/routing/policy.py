"""What a policy is: a pure rule that picks one of the candidates.

A candidate has survived every filter (ready, not draining, serves the model), so a policy may pick
any. All state a policy keeps is its own and small; time and chance are arguments.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from smg_node.core.ports import Rng


@dataclass(frozen=True, slots=True)
class Candidate:
    """One worker as policies see it. `inflight` counts this node's open calls on it."""

    worker: str
    inflight: int
    running_max: int | None = None


class Policy(Protocol):
    """Picks a worker."""

    def choose(self, model: str, candidates: Sequence[Candidate], rng: Rng) -> int:
        """Return the index of the chosen candidate; `candidates` is sorted by id and not empty."""
        ...


PolicyFactory = Callable[[], Policy]
