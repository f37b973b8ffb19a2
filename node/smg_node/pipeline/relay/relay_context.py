"""Relay context: collaborators of relayed requests, and the origin and listener of one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from smg_node.admission.admission import Admission
from smg_node.core.generation.events import Usage
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock, Rng
from smg_node.dialects.dialect import Presenter
from smg_node.engines.engine import Prefilled
from smg_node.fleet.fleet import Fleet
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.relay.relay_call import Head
from smg_node.routing.retry_budget import RetryBudgets

if TYPE_CHECKING:
    from smg_node.pipeline.relay.answer_collector import ListenAs


class StateCache(Protocol):
    """Keeps opaque state of vendors' answers for a time, each tenant's apart. It never fails: what it cannot keep or
    find is lost.
    """

    async def keep(self, tenant: str, key: str, row: bytes) -> None:
        """Keep a row under a key; the first one under it stays."""
        ...

    async def find(self, tenant: str, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the rows that are there, by key."""
        ...


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
    state_cache: StateCache | None = None
    """Where state of vendors is kept that clients drop; None where it is not."""


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

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if what it cost, or the end of the stream, is still missing."""
        ...

    @property
    def used(self) -> Usage | None:
        """What it cost, once it is over, as far as it said."""
        ...


@dataclass(frozen=True, slots=True)
class Translation:
    """A request in the node's own terms, for a vendor that does not speak the client's API.

    `presenter` renders the answer for the client, whose request was to be relayed; None where its events are wanted.
    """

    wish: GenerateRequest
    presenter: Presenter | None = None


def _nobody(_listen_as: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Asks:
    """Origin of a request: its dialect, whether its client streams, the id under which its answer
    is logged.
    """

    dialect: str
    streamed: bool
    answer: str = ""
    listen: Callable[["ListenAs | None"], Listener | None] = _nobody
    """Return who listens to the next call; told what its vendor's API is read with, None for a server of ours."""
    translate: Callable[[], Translation] | None = None
    """Return the request in the node's own terms; INVALID_REQUEST. None where it can only be relayed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those of the client's request."""


def first_known(found: Prefilled | None, said: int) -> int:
    """Return the cached tokens: the prefill worker's figure if there is one, else that of the
    worker that answered.
    """
    return said if found is None or found.cached_tokens < 0 else found.cached_tokens
