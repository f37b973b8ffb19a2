"""Relay context: collaborators of relayed requests, and the origin and listener of one."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from smg_node.admission.admission import Admission
from smg_node.admission.ticket import Ticket
from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.core.generation.outcome import Bill, Outcome
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.ids import IdSource
from smg_node.core.journey import Journey
from smg_node.core.ports import Clock, Rng
from smg_node.core.prices.price_list import PriceBook
from smg_node.core.request_context import RequestContext
from smg_node.dialects.dialect import Presenter
from smg_node.engines.engine import Prefilled
from smg_node.engines.http.http_engine import RelayRequest
from smg_node.engines.http.vendor_cache import CachePlan
from smg_node.engines.http.vendor_side import VendorSide
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import RelayedModel
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.generation.run_interface import Run
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.relay.relay_call import Head
from smg_node.pipeline.relay.relay_request import Relayable
from smg_node.pipeline.relay.response_filter import UsageReader
from smg_node.routing.retry_budget import RetryBudgets

if TYPE_CHECKING:
    from smg_node.pipeline.relay.answer_collector import ListenAs

Bills: TypeAlias = tuple[Bill, ...]


class Tap(Protocol):
    """Takes down what the client of one request is told, for a copy of the request."""

    @property
    def asks(self) -> "Asks":
        """The request's origin, whose listeners are listened to as well."""
        ...

    def hear(self, piece: Head | bytes) -> None:
        """Take a piece of the answer."""
        ...

    def over(
        self, worker: str, first_s: float | None, used: tuple[int, int, int], bills: Bills
    ) -> None:
        """Take in that the answer of that worker is complete, and its client has it."""
        ...


class Shadows(Protocol):
    """Copies of relayed requests at other targets."""

    def tap(
        self,
        parts: "RelayParts",
        asked: Relayable,
        asks: "Asks",
        context: RequestContext,
        model: RelayedModel,
    ) -> Tap | None:
        """Return what is to be told of the answer to a request that is copied; None for nearly all."""
        ...


class ShadowPost:
    """Where the copies of a process are made; nowhere (None) until there is a route with a shadow."""

    __slots__ = ("shadows",)

    def __init__(self) -> None:
        self.shadows: Shadows | None = None


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
    charged: bool = True
    """Whether requests are charged to the limits of their tenants; calls of a provider are charged to its own anyway."""
    state_cache: StateCache | None = None
    """Where state of vendors is kept that clients drop; None where it is not."""
    own_calls: "MakeOwnCall | None" = None
    """Makes the calls of own engines, where targets of routes may stand for those."""
    caches: "CachePlanner | None" = None
    """What is expected of vendors' prompt caches; None where no route can be."""
    prices: PriceBook = field(default_factory=PriceBook)
    post: ShadowPost = field(default_factory=ShadowPost)


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
    def spent(self) -> Usage | None:
        """What its vendor has said by now that the answer costs, its end or not."""
        ...

    @property
    def deltas(self) -> int:
        """How many pieces of the answer came by now."""
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


class Outlet(Protocol):
    """Takes the answer of own engines to the client, past the bytes of a relayed answer. For one call."""

    @property
    def said(self) -> bool:
        """Whether the client has had a word of it."""
        ...

    async def tell(self, run: Run) -> bytes | None:
        """Have a run tell its answer to its end, or return the body of a whole one. SmgError if it failed, told or not."""
        ...


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
    outlet: Callable[[Translation], Outlet] | None = None
    """Return what takes the answer of own engines to the client; None where nothing does."""

    @property
    def listened(self) -> bool:
        """Whether the events of its answers are wanted, and not the bytes."""
        return self.listen is not _nobody


class Spent(NamedTuple):
    """What a vendor takes money for. `estimated`: it did not come to say so, and what came is counted."""

    used: Usage
    estimated: bool = False


class Meter(Protocol):
    """What calls of targets need of a request's meter; see `RelayMeter`."""

    def hand_over(self) -> Ticket | None:
        """Return the ticket for a call that counts tokens itself."""
        ...

    def vendor_called(self, side: VendorSide, spent: Spent | None) -> None:
        """Take in that a vendor was called."""
        ...

    def own_called(self, model: str, usage: UsageReader) -> None:
        """Take in that own engines were called."""
        ...


@dataclass(frozen=True, slots=True)
class TargetAsked:
    """A request as targets are asked it: what its client said, and what of it belongs to the whole request.

    `model` is the public name, `key` the routing key; `headers` go along to servers.
    """

    parts: RelayParts
    asked: Relayable
    asks: Asks
    context: RequestContext
    story: Journey
    meter: Meter
    key: str
    model: str
    headers: Mapping[str, str]


class OwnCall(Protocol):
    """One call of a target that stands for a model of own workers."""

    usage: UsageReader
    """What it cost, once it is over."""
    first_s: float | None
    """When the first word came, on the monotonic clock."""
    continuations: int
    """How often its answers went on at another server."""
    oddities: Mapping[str, int]
    """What was not as expected in them, and how often."""

    @property
    def worker(self) -> str:
        """Id of the server in use, "" until one was chosen."""
        ...

    @property
    def said(self) -> bool:
        """Whether the client has had a word past what `answer` yields."""
        ...

    @property
    def streamed(self) -> bool:
        """Whether the answer came bit by bit."""
        ...

    def would_wait(self, error: SmgError) -> bool:
        """Whether it failed because a server would have had to be waited for, and none was called."""
        ...

    def answer(self, request: RelayRequest) -> AsyncGenerator[Head | bytes, None]:
        """Yield the answer's head and body; a head that is `told` where the client has it already."""
        ...


class MakeOwnCall(Protocol):
    """Makes such calls."""

    def __call__(
        self, told: TargetAsked, name: str, spoke: Callable[[], None], *, patient: bool
    ) -> OwnCall:
        """Return the call of the target that stands for the model `name`; `spoke` is called once it was answered.

        `patient`: it may wait for own workers, because no other target could be called.
        """
        ...


class CachePlanner(Protocol):
    """Plans requests by vendors' prompt caches."""

    def of(
        self,
        serving: Sequence[Worker],
        asked: Relayable,
        asks: Asks,
        context: RequestContext,
        key: str,
    ) -> CachePlan | None:
        """Return the plan of a request to a route that chooses by it, whose routing key is `key`; None for a request
        whose prompt no vendor caches.
        """
        ...


def first_known(found: Prefilled | None, said: int) -> int:
    """Return the cached tokens: the prefill worker's figure if there is one, else that of the
    worker that answered.
    """
    return said if found is None or found.cached_tokens < 0 else found.cached_tokens
