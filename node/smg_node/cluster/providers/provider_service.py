"""Provider service: answers the HTTP surface about providers and routes, checks and writes their definitions.

A definition is checked before it is written, and each mistake names its field. Secrets are sealed here, all of one
provider in one, and opened only to keep those that a new definition leaves out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from smg_mesh.shared import (
    PROVIDER,
    ROUTE,
    TOOL_SERVER,
    StateError,
    sealed_in,
    sealed_text,
)
from smg_node.cluster.definition_ports import WritableDefinitions
from smg_node.cluster.providers.definitions import (
    CLUSTER,
    PRICE,
    SEALED,
    DefinedPrice,
    DefinedProvider,
    Definitions,
)
from smg_node.cluster.providers.kept_secrets import with_kept
from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.cluster.providers.provider_views import Fleet, ProviderViews
from smg_node.cluster.providers.target_explanation import explained
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.prices.price_parser import parse_price
from smg_node.http.ports.providers import (
    PriceChange,
    PriceView,
    ProviderChange,
    ProviderView,
    RouteChange,
    RouteView,
    TargetExplained,
)
from smg_node.http.ports.shared_state import StaleValueError
from smg_node.pipeline.relay.shadows.shadow_records import ShadowTotals
from smg_node.providers.parsing.spec_parser import parse_provider
from smg_node.providers.provider_spec import ProviderSecrets, write_secrets, write_spec
from smg_node.providers.route_spec import read_route, route_value

ROUTE_NAME_MAX: Final = 256
"""A public name of a model: as long as one in a request may be."""
PRICES_MAX: Final = 1_024
"""Prices of the whole cluster: every change of one is read with all others, on every node."""
_KEY_BYTES_MAX: Final = 240
"""A name with its prefix is a key of the shared state, which has up to 256 bytes."""


class ClusterProviders:
    """Providers and routes of the whole cluster, as this node sees and changes them."""

    def __init__(
        self,
        providers: ProviderFleet,
        store: WritableDefinitions,
        seal: Callable[[str], bytes],
        fleet: Fleet,
        monotonic_s: Callable[[], float],
    ) -> None:
        self._providers = providers
        self._store = store
        self._seal = seal
        self._fleet = fleet
        self._monotonic_s = monotonic_s

    # ── Seeing ───────────────────────────────────────────────────────────────

    def providers(self) -> Sequence[ProviderView]:
        """Return what counts here, sorted by name."""
        now = self._providers.read()
        views = self._views(now)
        return [view for name in now.providers if (view := views.provider(name)) is not None]

    def provider(self, name: str) -> ProviderView:
        """Return one; NOT_FOUND `provider_not_found` otherwise."""
        found = self._provider(name)
        if found is None:
            raise _no_provider(name, self._providers.read().unreadable.get(f"{PROVIDER}{name}"))
        return found

    def routes(self) -> Sequence[RouteView]:
        """Return what counts here, sorted by name."""
        now = self._providers.read()
        views = self._views(now)
        return [view for name in now.routes if (view := views.route(name)) is not None]

    def route(self, name: str) -> RouteView:
        """Return one; NOT_FOUND `route_not_found` otherwise."""
        found = self._route(name)
        if found is None:
            raise _no_route(name, self._providers.read().unreadable.get(f"{ROUTE}{name}"))
        return found

    def shadows(self, name: str) -> ShadowTotals:
        """Return what became of the copies of a route's requests in this process; NOT_FOUND as `route`."""
        self.route(name)
        book = self._providers.shadows
        return ShadowTotals() if book is None else book.of(name)

    def unreadable(self) -> Mapping[str, str]:
        """Return why definitions of the cluster are not followed here, by their keys."""
        strange = {
            one.key: "this release cannot read it"
            for one in self._store.unreadable()
            if not one.key.startswith(TOOL_SERVER)
        }
        return dict(sorted({**strange, **self._providers.read().unreadable}.items()))

    def explain(
        self, model: str, api: str, wish: GenerateRequest | None
    ) -> Sequence[TargetExplained]:
        """Return the targets of a public name; see `ProviderService`."""
        now = self._providers.read()
        views = self._views(now)
        targets = views.targets(model)
        if not targets:
            raise SmgError(
                ErrorKind.NOT_FOUND,
                f"no provider and no route has a model {model[:256]!r}",
                where="model",
                code="model_not_found",
            )
        return [
            explained(target, now.providers.get(target.to.partition("/")[0]), side, api, wish)
            for target in targets
            for side in [views.engine(target)]
        ]

    # ── Changing providers ───────────────────────────────────────────────────

    def put_provider(
        self, name: str, body: Mapping[str, Any], *, version: int | None
    ) -> ProviderChange:
        """Define it on all nodes; see `ProviderService`."""
        before = self._cluster_provider(name)
        held = before is not None and before.source == CLUSTER and not before.trouble
        spec_before = before.spec if before is not None and held else None
        secrets_before = before.secrets if before is not None and held else ProviderSecrets()
        try:
            parsed = parse_provider(name, with_kept(body, spec_before, secrets_before))
        except SmgError as error:
            lost = before is not None and bool(before.trouble)
            raise _in_body(error, name, lost=lost) from error
        value: dict[str, Any] = {"spec": msgspec.json.decode(write_spec(parsed.spec))}
        if parsed.secrets.keys or parsed.secrets.named:
            value["secrets"] = {SEALED: self._sealed(name, parsed.secrets, secrets_before)}
        shown_before = self._provider(name) if before is not None else None
        self._write(f"{PROVIDER}{name}", value, version=version)
        return ProviderChange(shown_before, self._provider(name))

    def remove_provider(self, name: str, *, version: int | None, force: bool) -> ProviderChange:
        """Take the cluster's definition away; see `ProviderService`."""
        key = f"{PROVIDER}{name}"
        before = self._provider(name)
        if not self._has(key):
            if before is None:
                raise _no_provider(name, None)
            raise _own(f"provider {name}", "provider_not_found")
        using = [
            route
            for route, one in self._providers.read().routes.items()
            if name in one.spec.providers
        ]
        if using and not force:
            raise SmgError(
                ErrorKind.CONFLICT,
                f"{name} is a target of {_listed(using)}: change the routes first, or say force=true",
                where="name",
                code="provider_in_use",
            )
        self._write(key, None, version=version)
        return ProviderChange(before, self._provider(name))

    def _sealed(self, name: str, secrets: ProviderSecrets, before: ProviderSecrets) -> str:
        """Return the secrets, sealed; as they are there already if they stay the same."""
        if secrets == before:
            held = self._store.get(f"{PROVIDER}{name}")
            sealed = {} if held is None else sealed_in(held.value)
            if SEALED in sealed:
                return sealed_text(sealed[SEALED])
        return sealed_text(self._seal(write_secrets(secrets).decode()))

    # ── Changing routes ──────────────────────────────────────────────────────

    def put_route(self, name: str, body: Mapping[str, Any], *, version: int | None) -> RouteChange:
        """Define it on all nodes; see `ProviderService`."""
        if not name.isprintable() or len(name) > ROUTE_NAME_MAX or name != name.strip():
            raise invalid(
                f"a route's name is what clients call the model: up to {ROUTE_NAME_MAX} characters",
                "name",
                "invalid_route",
            )
        try:
            spec = read_route(name, dict(body))
        except SmgError as error:
            raise invalid(error.message, error.where, "invalid_route") from error
        key = f"{ROUTE}{name}"
        before = self._route(name) if self._has(key) else None
        self._write(key, {"spec": route_value(spec)}, version=version)
        return RouteChange(before, self._route(name))

    def remove_route(self, name: str, *, version: int | None) -> RouteChange:
        """Take the cluster's definition away; see `ProviderService`."""
        key = f"{ROUTE}{name}"
        before = self._route(name)
        if not self._has(key):
            if before is None:
                raise _no_route(name, None)
            raise _own(f"route {name}", "route_not_found")
        self._write(key, None, version=version)
        return RouteChange(before, self._route(name))

    # ── Prices ───────────────────────────────────────────────────────────────

    def prices(self) -> Sequence[PriceView]:
        """Return what counts here, sorted by name."""
        now = self._providers.read()
        return [_price_view(name, one) for name, one in now.prices.items()]

    def price(self, name: str) -> PriceView:
        """Return one; NOT_FOUND `price_not_found` otherwise."""
        found = self._price(name)
        if found is None:
            raise _no_price(name, self._providers.read().unreadable.get(f"{PRICE}{name}"))
        return found

    def put_price(self, name: str, body: Mapping[str, Any], *, version: int | None) -> PriceChange:
        """Say on all nodes what it costs; see `ProviderService`."""
        if not name.isprintable() or name != name.strip() or len(name.encode()) > _KEY_BYTES_MAX:
            raise invalid(
                f"a price is of a model's public name, or of PROVIDER/MODEL: up to {_KEY_BYTES_MAX} bytes",
                "name",
                "invalid_price",
            )
        try:
            parse_price(dict(body))
        except SmgError as error:
            raise invalid(error.message, error.where, "invalid_price") from error
        key = f"{PRICE}{name}"
        before = self._price(name) if self._has(key) else None
        if before is None and len(self._providers.read().prices) >= PRICES_MAX:
            raise invalid(f"there are {PRICES_MAX:,} prices already", "name", "too_many_prices")
        self._write(key, {"spec": dict(body)}, version=version)
        return PriceChange(before, self._price(name))

    def remove_price(self, name: str, *, version: int | None) -> PriceChange:
        """Take the cluster's price away; see `ProviderService`."""
        key = f"{PRICE}{name}"
        before = self._price(name)
        if not self._has(key):
            if before is None:
                raise _no_price(name, None)
            raise _own(f"the price of {name}", "price_not_found")
        self._write(key, None, version=version)
        return PriceChange(before, self._price(name))

    def _price(self, name: str) -> PriceView | None:
        found = self._providers.read().prices.get(name)
        return None if found is None else _price_view(name, found)

    # ── Below ────────────────────────────────────────────────────────────────

    def _views(self, now: Definitions) -> ProviderViews:
        return ProviderViews(now, self._fleet, self._providers.accounts(), self._monotonic_s())

    def _provider(self, name: str) -> ProviderView | None:
        return self._views(self._providers.read()).provider(name)

    def _route(self, name: str) -> RouteView | None:
        return self._views(self._providers.read()).route(name)

    def _cluster_provider(self, name: str) -> DefinedProvider | None:
        """Return what the cluster defines under a name, as far as it can be read here."""
        found = self._providers.read().providers.get(name)
        return found if found is not None and found.source == CLUSTER else None

    def _has(self, key: str) -> bool:
        return self._version(key) > 0

    def _version(self, key: str) -> int:
        held = self._store.get(key)
        if held is not None:
            return held.version
        strange = (one.version for one in self._store.unreadable() if one.key == key)
        return next(strange, 0)

    def _write(self, key: str, value: object, *, version: int | None) -> None:
        try:
            if value is None:
                self._store.remove(key, version=version)
            else:
                self._store.set(key, value, version=version)
        except StateError as error:
            raise self._refused(key, error) from error

    def _refused(self, key: str, error: StateError) -> SmgError:
        kind, _, name = key.partition("/")
        if error.reason == "stale":
            look = {PROVIDER: self._provider, ROUTE: self._route, PRICE: self._price}
            current = look[f"{kind}/"](name)
            return StaleValueError(f"{kind} {name}", str(self._version(key)), current)
        if error.reason == "too_large":
            return invalid(str(error), None, f"{kind}_too_large")
        return SmgError(ErrorKind.OVERLOADED, str(error), code=f"state_{error.reason}")


def _in_body(error: SmgError, name: str, *, lost: bool) -> SmgError:
    """Return a parser's error with its path as it is in the body; `lost`: secrets are there that cannot be opened."""
    path, where = f"providers.{name}", error.where or ""
    if where == "providers":
        return invalid(error.message.removeprefix("providers: "), "name", error.code)
    inside = where.removeprefix(path).removeprefix(".")
    said = error.message.removeprefix(path).removeprefix(".").removeprefix(": ")
    if lost and inside.startswith(("keys", "credentials")):
        said += "; those that are there cannot be opened with this node's keyring"
    return invalid(said, inside or None, error.code)


def _no_provider(name: str, why: str | None) -> SmgError:
    said = f"no provider is called {name[:64]!r}"
    if why is not None:
        said = f"provider {name[:64]!r} is not followed here: {why}"
    return SmgError(ErrorKind.NOT_FOUND, said, where="name", code="provider_not_found")


def _no_route(name: str, why: str | None) -> SmgError:
    said = f"no route is called {name[:256]!r}"
    if why is not None:
        said = f"route {name[:256]!r} is not followed here: {why}"
    return SmgError(ErrorKind.NOT_FOUND, said, where="name", code="route_not_found")


def _no_price(name: str, why: str | None) -> SmgError:
    said = f"nobody has said what {name[:256]!r} costs"
    if why is not None:
        said = f"the price of {name[:256]!r} is not followed here: {why}"
    return SmgError(ErrorKind.NOT_FOUND, said, where="name", code="price_not_found")


def _price_view(name: str, one: DefinedPrice) -> PriceView:
    version = str(one.version)
    return PriceView(name, one.plain, one.source, version, one.owner, one.time_ms)


def _own(subject: str, code: str) -> SmgError:
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"{subject} is defined by this node's own file and not by the cluster: take it out of the file",
        where="name",
        code=code,
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"route {name}" for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
