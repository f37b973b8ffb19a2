"""Generation context: parts shared by the engine calls of one generation, and its progress so far."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from smg_node.admission.admission import Admission
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.ids import IdSource
from smg_node.core.journey import Journey
from smg_node.core.ports import Clock, Rng
from smg_node.core.request_context import RequestContext
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.generation.event_sink import NOBODY_LISTENS, EventSink
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import PlacementRequest, Placer
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.stream.generation_stream import GenerationStream
from smg_node.routing.retry_budget import RetryBudget, RetryBudgets


@dataclass(frozen=True, slots=True)
class GenerationParts:
    """Collaborators of every generation; built once."""

    placer: Placer
    preparer: Preparer
    ids: IdSource
    clock: Clock
    rng: Rng
    retries: RetryBudgets
    journal: Journal
    on_outcome: Callable[[Outcome], None]
    admission: Admission | None = None
    """None where there are no limits."""


class GenerationContext(msgspec.Struct, eq=False):
    """State of one generation, used by all of its calls.

    When its first call begins, all of it is set: the stream `story` and the sink `telling`, the
    `served` model, the placement `wish` of its calls (but for what differs between them), and the
    reservation by whose worker they were `checked`. Calls change only the figures: the `worker` in
    use, "" until one was chosen, `attempts` per answer at most, answers continued, and the time of
    the first token.
    """

    parts: GenerationParts
    context: RequestContext
    dialect: str
    request: GenerateRequest
    ignored: tuple[str, ...]
    """Parameters without effect, as far as is known."""
    worker: str = ""
    attempts: int = 0
    continuations: int = 0
    first_token_s: float | None = None
    served: ServedModel | None = None
    budget: RetryBudget | None = None
    journey: Journey | None = None
    wish: PlacementRequest | None = None
    checked: Reservation | None = None
    story: GenerationStream | None = None
    telling: EventSink = NOBODY_LISTENS
    traced: bool = False
    """Whether somebody wants its spans."""
