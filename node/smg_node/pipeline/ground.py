"""What all engine calls of one generation stand on, and what is told of it beside its events."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from smg_node.admission.door import Admission
from smg_node.core.context import RequestContext
from smg_node.core.ids import IdSource
from smg_node.core.journey import Journey
from smg_node.core.outcome import Outcome
from smg_node.core.ports import Clock, Rng
from smg_node.core.request import GenerateRequest
from smg_node.fleet.model import ServedModel
from smg_node.pipeline.hold import Hold
from smg_node.pipeline.journal import Journal
from smg_node.pipeline.place import Placer, Wish
from smg_node.pipeline.prepare import Preparer
from smg_node.pipeline.story import Story
from smg_node.pipeline.telling import NOBODY_LISTENS, Telling
from smg_node.routing.retry import RetryBudget, RetryBudgets


@dataclass(frozen=True, slots=True)
class GenerationParts:
    """What every generation needs; built once."""

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


class Ground(msgspec.Struct, eq=False):
    """The ground of one generation, which is what it has come to so far.

    When its first call begins, all of it is there: `story` and `telling`, the `served` model, the `wish` of its
    calls (but for what differs between them), and the hold by whose worker they were `checked`. Calls change only what is told: the `worker` in use, "" until one was chosen, `attempts`
    per answer at most, answers gone on with, and when the first token came.
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
    wish: Wish | None = None
    checked: Hold | None = None
    story: Story | None = None
    telling: Telling = NOBODY_LISTENS
    traced: bool = False
    """Whether somebody wants its spans."""
