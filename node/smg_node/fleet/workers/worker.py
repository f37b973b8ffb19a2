"""Worker: one engine endpoint, its metadata and load, and whether it may be given work."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from smg_node.config.worker_url import WorkerUrl
from smg_node.core.errors import SmgError
from smg_node.core.ids import WorkerId
from smg_node.engines.disaggregation import Encoding, Pairing, Role
from smg_node.engines.engine import OWN_MODEL, Engine, ModelCard
from smg_node.engines.load import Load
from smg_node.engines.transport.grpc_status import (
    LOGPROBS_MISSING_CODE,
    PROVIDER_UNREACHABLE_CODE,
    UNREACHABLE_CODE,
    Verdict,
    asked_pause_s,
    verdict,
)
from smg_node.fleet.health.circuit_breaker import Breaker
from smg_node.fleet.load.prefill_rate import Measured
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.fleet.models.served_model import AnyModel, RelayedModel, ServedModel
from smg_node.fleet.workers.worker_roles import (
    bootstrap_address_of,
    encoding_of,
    pairing_of,
    role_of,
)
from smg_node.fleet.workers.worker_spec import LEAVING, READY, DeclaredWorker


class Status(Enum):
    """State of a worker in its lifecycle; only READY ones get new work."""

    PENDING = "pending"
    READY = "ready"
    NOT_READY = "not_ready"
    FAILED = "failed"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class Sampled:
    """Last load report of one rank of an engine, and its time; `pushed` if it came without being
    asked for.
    """

    load: Load
    at_s: float
    pushed: bool


@dataclass(slots=True, eq=False)
class Worker:
    """One endpoint. Changed only by the fleet; its calls are counted only by `hold` and `release`.

    `reason` says in words why the worker is not ready. `engine`, `card` and `model` (of one that speaks HTTP
    `relayed`) are set from the first successful registration on and survive an outage. `load` outlives the worker when another one
    takes its address over; `inflight` and `breaker` are only of this one.
    """

    declared: DeclaredWorker
    load: WorkerLoad
    breaker: Breaker
    status: Status = Status.PENDING
    reason: str = "not looked at yet"
    inflight: int = 0
    engine: Engine | None = None
    card: ModelCard | None = None
    model: ServedModel | None = None
    relayed: RelayedModel | None = None
    suspected: bool = False
    """A call found nobody at the other end, or nobody else can be called: it is to be looked at now."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when whoever tends the worker should not wait any longer."""
    idle: asyncio.Event | None = None
    """Set by the last release, for whoever waits to close this worker."""
    following: bool = False
    """Whether its KV events are being heard, and something came since they were subscribed to."""
    heard_s: float = 0.0
    """When the last batch of its KV events came."""
    quiet: bool = False
    """Whether it should have said something by now."""
    encoded: Measured | None = None
    """What was measured of its encoder of pictures, None before anything was; see `fleet.load.encoder_rate`."""
    sampled: dict[int, Sampled] = field(default_factory=dict)
    """What each rank last said of its load, while it is listened to."""
    id: WorkerId = field(init=False)
    """Its id: that of its address."""

    def __post_init__(self) -> None:
        self.id = WorkerId(self.load.worker)

    @property
    def url(self) -> WorkerUrl:
        """Its parsed URL."""
        return self.declared.url

    @property
    def serves(self) -> AnyModel | None:
        """The model it serves, of whichever kind; None while unknown."""
        return self.model if self.model is not None else self.relayed

    def serve(self, model: AnyModel) -> None:
        """Take `model` for what it serves."""
        self.model = model if isinstance(model, ServedModel) else None
        self.relayed = model if isinstance(model, RelayedModel) else None

    @property
    def role(self) -> Role:
        """Its role: the operator's, unless that is everything; else the engine's own."""
        return role_of(self.declared.url, self.card)

    @property
    def pairing(self) -> Pairing | None:
        """The way it shares requests with another one, None while unknown; the same as long as it
        is ready.
        """
        return pairing_of(self.declared.url, self.card)

    @property
    def encoding(self) -> Encoding | None:
        """The way it hands pictures over that it encodes for others; None if it does not, or while unknown."""
        return encoding_of(self.declared.url, self.card)

    @property
    def meeting(self) -> tuple[str, int]:
        """Host and port where a worker that works prompts off, or encodes pictures, meets its partners."""
        return bootstrap_address_of(self.declared.url, self.pairing)

    @property
    def labels(self) -> Mapping[str, str]:
        """The operator's labels of the worker."""
        return self.declared.labels

    @property
    def own_model(self) -> str:
        """The model of other workers that it stands for, where it is a target of a route that leads to those; else ""."""
        return "" if self.card is None else self.card.server.get(OWN_MODEL, "")

    @property
    def draining(self) -> bool:
        """Whether an operator wants no new work there, from any node."""
        return self.declared.draining

    def hold(self, tokens: int = 0, rank: int | None = None) -> int:
        """Count one of our calls in, with the tokens to be computed; see `WorkerLoad.begin` for what it returns."""
        self.inflight += 1
        return self.load.begin(tokens, rank)

    def release(
        self,
        tokens: int = 0,
        *,
        prefilled: bool = False,
        seconds: float | None = None,
        rank: int | None = None,
    ) -> None:
        """Count one of our calls out, with the tokens and the rank it was counted in with; see `WorkerLoad.end`."""
        self.inflight = left = self.inflight - 1
        self.load.end(tokens, prefilled=prefilled, seconds=seconds, rank=rank)
        assert left >= 0
        if not left and self.idle is not None:
            self.idle.set()

    def judge(self, error: SmgError, now_s: float, *, probe: int = 0) -> Verdict:
        """Tell the breaker how a call broke, and return what that says of the worker.

        `probe` is what `breaker.take_probe` returned for the call.
        """
        said = verdict(error)
        if error.code == LOGPROBS_MISSING_CODE:
            # Any client could have all others refused, by asking for what a worker does not give.
            said = Verdict.NEITHER
        match said:
            case Verdict.FAILURE:
                connect = error.code in (UNREACHABLE_CODE, PROVIDER_UNREACHABLE_CODE)
                self.breaker.failure(now_s, connect=connect, probe=probe)
            case Verdict.PRESSURE:
                self.breaker.pressure(now_s, asked_pause_s(error), probe)
            case Verdict.NEITHER:
                self.breaker.abandoned(now_s, probe)
        return said

    def suspect(self) -> None:
        """Ask for a probe soon."""
        self.suspected = True
        self.wake.set()

    @property
    def routable(self) -> bool:
        """Whether new work may be placed here now."""
        declared = self.declared
        ready = self.status is Status.READY and not declared.draining
        return ready and declared.state == READY

    @property
    def sources_ready(self) -> bool:
        """Whether some source says that it may get new work, or says nothing about that."""
        return self.declared.state == READY

    @property
    def shown_status(self) -> Status:
        """The status that an operator is shown."""
        if self.draining or self.declared.state == LEAVING:
            return Status.DRAINING
        if self.status is Status.READY and not self.sources_ready:
            return Status.NOT_READY
        return self.status

    @property
    def shown_reason(self) -> str:
        """The reason that an operator is shown, where it gets no new work."""
        if self.status is Status.READY and not self.sources_ready and not self.draining:
            said = ", ".join(self.declared.sources)
            return f"{said} says that it is {self.declared.state}"
        return self.reason

    def model_name(self) -> str:
        """Return the model this worker serves, as declared or as learned; "" if neither."""
        if self.url.model:
            return self.url.model
        return self.card.model if self.card is not None else ""
