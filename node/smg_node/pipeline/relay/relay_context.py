"""Relay context: collaborators of relayed requests, and the origin and listener of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

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


@dataclass(frozen=True, slots=True)
class RelayParts:
    """Collaborators of every relayed request; built once."""

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
    """Parser of one call's answer; an SmgError it raises means that the call has failed."""

    def hear(self, piece: Head | bytes) -> bool:
        """Feed a piece; whether it has output. Before there is some, another worker may answer
        instead.
        """
        ...

    def over(self) -> None:
        """End the answer: it was whole."""
        ...


def _nobody() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Asks:
    """Origin of a request: its dialect, whether its client streams, the id under which its answer
    is logged.
    """

    dialect: str
    streamed: bool
    answer: str = ""
    listen: Callable[[], Listener | None] = _nobody
    """Return who listens to the next call."""


def first_known(found: Prefilled | None, said: int) -> int:
    """Return the cached tokens: the prefill worker's figure if there is one, else that of the
    worker that answered.
    """
    return said if found is None or found.cached_tokens < 0 else found.cached_tokens
