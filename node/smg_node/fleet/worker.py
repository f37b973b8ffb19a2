"""One worker: an engine endpoint, what is known of it, and whether it may be given work."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.ids import WorkerId
from smg_node.engines.engine import Engine, ModelCard
from smg_node.fleet.declared import Declared
from smg_node.fleet.load import WorkerLoad
from smg_node.fleet.model import ServedModel


class Status(Enum):
    """Where a worker is in its life; only READY ones get new work."""

    PENDING = "pending"
    READY = "ready"
    NOT_READY = "not_ready"
    FAILED = "failed"
    DRAINING = "draining"


@dataclass(slots=True, eq=False)
class Worker:
    """One endpoint. Changed only by the fleet; its calls are counted only by `hold` and `release`.

    `reason` says in words why the worker is not ready. `engine`, `card` and `model` are set from the
    first successful registration on and survive an outage. `load` outlives the worker when another one
    takes its address over; `inflight` is only of this one.
    """

    declared: Declared
    load: WorkerLoad
    status: Status = Status.PENDING
    reason: str = "not looked at yet"
    inflight: int = 0
    engine: Engine | None = None
    card: ModelCard | None = None
    model: ServedModel | None = None
    suspected: bool = False
    """A call found nobody at the other end, or nobody else can be called: it is to be looked at now."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when whoever tends the worker should not wait any longer."""
    idle: asyncio.Event | None = None
    """Set by the last release, for whoever waits to close this worker."""

    @property
    def id(self) -> WorkerId:
        """Its id: that of its address."""
        return WorkerId(self.load.worker)

    @property
    def url(self) -> WorkerUrl:
        """Where it is, and what is said about it."""
        return self.declared.url

    @property
    def labels(self) -> Mapping[str, str]:
        """What the operator sorts workers by."""
        return self.declared.labels

    @property
    def draining(self) -> bool:
        """Whether an operator wants no new work there, from any node."""
        return self.declared.draining

    def hold(self, tokens: int = 0) -> None:
        """Count one of our calls in, with the tokens of its prompt."""
        self.inflight += 1
        self.load.begin(tokens)

    def release(self, tokens: int = 0) -> None:
        """Count one of our calls out, with as many tokens as it was counted in with."""
        self.inflight -= 1
        self.load.end(tokens)
        assert self.inflight >= 0
        if self.inflight == 0 and self.idle is not None:
            self.idle.set()

    def suspect(self) -> None:
        """Have it looked at soon."""
        self.suspected = True
        self.wake.set()

    @property
    def routable(self) -> bool:
        """Whether new work may be placed here now."""
        return self.status is Status.READY and not self.draining

    @property
    def shown_status(self) -> Status:
        """What an operator is told."""
        return Status.DRAINING if self.draining else self.status

    def model_name(self) -> str:
        """Return the model this worker serves, as declared or as learned; "" if neither."""
        if self.url.model:
            return self.url.model
        return self.card.model if self.card is not None else ""
