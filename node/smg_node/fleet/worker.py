"""One worker: an engine endpoint, what is known of it, and whether it may be given work."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.ids import WorkerId
from smg_node.engines.engine import Engine, ModelCard
from smg_node.fleet.model import ServedModel


class Status(Enum):
    """Where a worker is in its life; only READY ones get new work."""

    PENDING = "pending"
    READY = "ready"
    NOT_READY = "not_ready"
    FAILED = "failed"
    DRAINING = "draining"


@dataclass(slots=True)
class Worker:
    """One endpoint. Changed only by the fleet; `inflight` only by `hold` and `release`.

    `reason` says in words why the worker is not ready. `engine`, `card` and `model` are set from the
    first successful registration on and survive an outage.
    """

    id: WorkerId
    url: WorkerUrl
    labels: Mapping[str, str] = field(default_factory=dict)
    status: Status = Status.PENDING
    reason: str = "not looked at yet"
    draining: bool = False
    inflight: int = 0
    engine: Engine | None = None
    card: ModelCard | None = None
    model: ServedModel | None = None
    suspected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a call found nobody at the other end: the worker is to be looked at now."""
    idle: asyncio.Event | None = None
    """Set by the last release, for whoever waits to remove this worker."""

    def hold(self) -> None:
        """Count one of our calls in."""
        self.inflight += 1

    def release(self) -> None:
        """Count one of our calls out."""
        self.inflight -= 1
        assert self.inflight >= 0
        if self.inflight == 0 and self.idle is not None:
            self.idle.set()

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
