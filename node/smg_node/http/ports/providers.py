"""Providers port: accounts at vendors, routes over their models, and what a request would lose on each target.

Secrets go in and never come out: a view has their references, or "(set)" for a value. Versions are text, as those of
settings.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from smg_node.core.generation.request import GenerateRequest

if TYPE_CHECKING:
    from smg_node.pipeline.relay.shadows.shadow_records import ShadowTotals


class ProviderKeyView(msgspec.Struct, frozen=True):
    """One key: where it comes from, and for how long this process leaves it alone, 0 if it does not."""

    reference: str
    resting_ms: int = 0
    why: str = ""


class ProviderLimitView(msgspec.Struct, frozen=True):
    """One limit that the vendor tells of one key: what is left of it, and in how long all of it is there again.

    `key` is where the key comes from, "" where there is none. `told_ms` ago it was told, to any node or process; what
    was sent since by the answering process is off. `wanted` is how much all others want of it in a second.
    """

    key: str
    what: str
    limit: int
    left: int
    full_ms: int
    told_ms: int
    wanted: float


class TargetView(msgspec.Struct, frozen=True):
    """One model at one provider, or of own engines, behind a public name, as the answering process sees it.

    `state` is that of a worker, or `off` where it is left alone for `off_ms` (None: nobody knows) because of `reason`.
    `only` says for what it is there, of split and shadow, where it is no target of the route otherwise.
    """

    worker: str
    model: str
    to: str
    weight: float
    on: Sequence[str]
    state: str
    reason: str
    code: str
    off_ms: int | None
    only: Sequence[str] = ()


class ProviderView(msgspec.Struct, frozen=True):
    """One provider. `source` is who defines it: the cluster, or this node's own file; `secrets` are those besides keys."""

    name: str
    kind: str
    spec: Mapping[str, Any]
    keys: Sequence[ProviderKeyView]
    limits: Sequence[ProviderLimitView]
    secrets: Mapping[str, str]
    source: str
    version: str
    owner: str
    time_ms: int
    trouble: str
    targets: Sequence[TargetView]


class RouteView(msgspec.Struct, frozen=True):
    """One route: a public name of a model, and its targets."""

    name: str
    spec: Mapping[str, Any]
    source: str
    version: str
    owner: str
    time_ms: int
    targets: Sequence[TargetView]


class PriceView(msgspec.Struct, frozen=True):
    """One price: of a public name, or of PROVIDER/MODEL; `price` is as it was said, in the currency."""

    name: str
    price: Mapping[str, Any]
    source: str
    version: str
    owner: str
    time_ms: int


class PriceChange(msgspec.Struct, frozen=True):
    """The result of writing one, as of a provider."""

    before: PriceView | None
    now: PriceView | None


class ProviderChange(msgspec.Struct, frozen=True):
    """Result of a write: what the cluster said before, and what counts now; None where there is nothing."""

    before: ProviderView | None
    now: ProviderView | None


class RouteChange(msgspec.Struct, frozen=True):
    """The same of a route."""

    before: RouteView | None
    now: RouteView | None


class Refusal(msgspec.Struct, frozen=True):
    """Why a target would refuse a request: `where` is a JSON path into it, "" for the whole."""

    message: str
    where: str
    code: str


class ApiWay(msgspec.Struct, frozen=True):
    """How a target is asked for clients of one API: in `api`, with their own bytes (`native`) or `translated` ones.

    What is asked of own engines is `generated`, and `api` says so.
    """

    api: str
    way: str


class TargetExplained(msgspec.Struct, frozen=True):
    """One target: how it is asked for clients of each API; of one request, what it would ignore or refuse."""

    target: TargetView
    apis: Mapping[str, ApiWay]
    ignored: Sequence[str] = ()
    refused: Refusal | None = None


class ProviderService(Protocol):
    """The providers and routes of the whole cluster."""

    def providers(self) -> Sequence[ProviderView]:
        """Return what counts here, sorted by name."""
        ...

    def provider(self, name: str) -> ProviderView:
        """Return one; NOT_FOUND `provider_not_found` otherwise."""
        ...

    def put_provider(
        self, name: str, body: Mapping[str, Any], *, version: int | None
    ) -> ProviderChange:
        """Define it on all nodes, by plain values as in a file; secrets that the body does not have stay.

        INVALID_REQUEST `invalid_provider` with the path of what is wrong; `StaleValueError` where another version is
        there. None overwrites any version, 0 expects nothing.
        """
        ...

    def remove_provider(self, name: str, *, version: int | None, force: bool) -> ProviderChange:
        """Take the cluster's definition away; CONFLICT `provider_in_use` where a route names it, unless `force`."""
        ...

    def routes(self) -> Sequence[RouteView]:
        """Return what counts here, sorted by name."""
        ...

    def route(self, name: str) -> RouteView:
        """Return one; NOT_FOUND `route_not_found` otherwise."""
        ...

    def put_route(self, name: str, body: Mapping[str, Any], *, version: int | None) -> RouteChange:
        """Define it on all nodes; as `put_provider`, with code `invalid_route`."""
        ...

    def remove_route(self, name: str, *, version: int | None) -> RouteChange:
        """Take the cluster's definition away."""
        ...

    def prices(self) -> Sequence[PriceView]:
        """Return what counts here, sorted by name, without what the settings of models say."""
        ...

    def price(self, name: str) -> PriceView:
        """Return one; NOT_FOUND `price_not_found` otherwise."""
        ...

    def put_price(self, name: str, body: Mapping[str, Any], *, version: int | None) -> PriceChange:
        """Say on all nodes what a public name, or PROVIDER/MODEL, costs; as `put_provider`, with code `invalid_price`."""
        ...

    def remove_price(self, name: str, *, version: int | None) -> PriceChange:
        """Take the cluster's price away."""
        ...

    def shadows(self, name: str) -> "ShadowTotals":
        """Return what became of the copies of a route's requests in this process; NOT_FOUND as `route`."""
        ...

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by their keys."""
        ...

    def explain(
        self, model: str, api: str, wish: GenerateRequest | None
    ) -> Sequence[TargetExplained]:
        """Return the targets of a public name; with a request as clients of `api` make it, what each would lose of it.

        NOT_FOUND `model_not_found` for a name that no provider and no route has.
        """
        ...
