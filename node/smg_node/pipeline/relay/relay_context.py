"""What relayed requests are made of, and what is said of one besides what its worker is sent."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from smg_node.admission.admission import Admission
from smg_node.core.generation.outcome import Outcome
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock, Rng
from smg_node.engines.engine import Prefilled
from smg_node.fleet.fleet import Fleet
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.relay.relay_call import Head
from smg_node.routing.retry_budget import RetryBudgets

REFUSED_CODE: Final = "upstream_refused"
"""Stands for the code of an error whose words are a worker's."""


@dataclass(frozen=True, slots=True)
class RelayParts:
    """What every relayed request needs; built once."""

    placer: Placer
    fleet: Fleet
    ids: IdSource
    clock: Clock
    rng: Rng
    retries: RetryBudgets
    journal: Journal
    on_outcome: Callable[[Outcome], None]
    admission: Admission | None = None


class Listener(Protocol):
    """Who understands the answer of one call; an SmgError of his is that the call has failed."""

    def hear(self, piece: Head | bytes) -> bool:
        """Take a piece; whether it says anything. Before one does, another worker may answer instead."""
        ...

    def over(self) -> None:
        """Take note that it was the whole answer."""
        ...


def _nobody() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Asks:
    """Who asks: in which dialect, whether its client has a stream, by which name its answer can be looked up."""

    dialect: str
    streamed: bool
    answer: str = ""
    listen: Callable[[], Listener | None] = _nobody
    """Return who listens to the next call."""


def first_known(found: Prefilled | None, said: int) -> int:
    """Return how much was cached: as the worker said that worked the prompt off, else as the one that answered."""
    return said if found is None or found.cached_tokens < 0 else found.cached_tokens
