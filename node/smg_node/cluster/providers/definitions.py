"""Provider definitions as they count on this node: the cluster's, and those of its own file that the cluster has not.

    effective = the cluster's definition of a name, where there is one that this version can read, else the node's own

A definition that cannot be read here (of a newer release, or with secrets that this node's keyring does not open) is
left where it is and reported; its models are not served here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from smg_mesh.shared import PROVIDER, ROUTE, sealed_in
from smg_node.cluster.definition_ports import SharedValue
from smg_node.core.errors import SmgError, invalid
from smg_node.core.prices.price import Price
from smg_node.core.prices.price_parser import parse_price
from smg_node.providers.parsing.spec_parser import parse_providers
from smg_node.providers.provider_spec import (
    ProviderSecrets,
    ProviderSpec,
    read_secrets,
    read_spec,
)
from smg_node.providers.route_spec import ENGINES, RouteSpec, read_route

CLUSTER: Final = "cluster"
NODE: Final = "node"
PRICE: Final = "price/"
"""How the key of a price begins in the shared state, beside those of providers and routes; its name follows."""
SEALED: Final = "all"
"""Under this name stand the sealed secrets of a provider, all in one."""


@dataclass(frozen=True, slots=True)
class DefinedProvider:
    """A provider as this node uses it. `trouble` says why it cannot be used here, "" where it can."""

    spec: ProviderSpec
    secrets: ProviderSecrets = field(default_factory=ProviderSecrets, repr=False)
    source: str = NODE
    version: int = 0
    owner: str = ""
    time_ms: int = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class DefinedRoute:
    """A route as this node uses it."""

    spec: RouteSpec
    source: str = NODE
    version: int = 0
    owner: str = ""
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class DefinedPrice:
    """A price as this node uses it; `plain` is how it was said."""

    price: Price
    plain: Mapping[str, Any]
    source: str = NODE
    version: int = 0
    owner: str = ""
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class Definitions:
    """All of them by name; `unreadable` says by key why one of the cluster's is not followed."""

    providers: Mapping[str, DefinedProvider]
    routes: Mapping[str, DefinedRoute]
    unreadable: Mapping[str, str]
    prices: Mapping[str, DefinedPrice] = field(default_factory=dict)


def read_own(definitions: str) -> Definitions:
    """Return what a node's own file says, as JSON; INVALID_REQUEST names what is wrong with it."""
    said = msgspec.json.decode(definitions) if definitions else {}
    parsed = parse_providers(said.get("providers", {}))
    routes = {name: read_route(name, one) for name, one in said.get("routes", {}).items()}
    return Definitions(
        {one.spec.name: DefinedProvider(one.spec, one.secrets) for one in parsed},
        {name: DefinedRoute(route) for name, route in routes.items()},
        {},
        {name: _own_price(name, plain) for name, plain in said.get("prices", {}).items()},
    )


def effective(
    own: Definitions, shared: Sequence[SharedValue], open_secret: Callable[[bytes], str | None]
) -> Definitions:
    """Return what counts here."""
    providers, routes, prices = dict(own.providers), dict(own.routes), dict(own.prices)
    unreadable: dict[str, str] = {}
    for one in shared:
        try:
            if one.key.startswith(PROVIDER):
                providers[one.key.removeprefix(PROVIDER)] = _provider(one, open_secret)
            elif one.key.startswith(ROUTE):
                name = one.key.removeprefix(ROUTE)
                spec = read_route(name, _member(one.value, "spec"))
                routes[name] = DefinedRoute(spec, CLUSTER, one.version, one.owner, one.time_ms)
            elif one.key.startswith(PRICE):
                plain = _member(one.value, "spec")
                prices[one.key.removeprefix(PRICE)] = DefinedPrice(
                    parse_price(plain), plain, CLUSTER, one.version, one.owner, one.time_ms
                )
        except (ValueError, SmgError) as error:
            unreadable[one.key] = error.message if isinstance(error, SmgError) else str(error)
    return Definitions(
        dict(sorted(providers.items())),
        dict(sorted(routes.items())),
        unreadable,
        dict(sorted(prices.items())),
    )


def _own_price(name: str, plain: Any) -> DefinedPrice:
    try:
        return DefinedPrice(parse_price(plain), plain)
    except SmgError as error:
        raise invalid(f"prices.{name}: {error.message}", f"prices.{name}", error.code) from error


def _provider(one: SharedValue, open_secret: Callable[[bytes], str | None]) -> DefinedProvider:
    spec = read_spec(msgspec.json.encode(_member(one.value, "spec")))
    if one.key == f"{PROVIDER}{ENGINES}":
        raise ValueError(
            f"{ENGINES} is what routes call own engines: give the provider another name"
        )
    if spec.hosting is None:
        raise ValueError(f"providers of kind {spec.kind[:64]!r} are unknown to this release")
    sealed = sealed_in(one.value).get(SEALED, b"")
    secrets, trouble = ProviderSecrets(), ""
    if sealed:
        opened = open_secret(sealed)
        if opened is None:
            trouble = "its secrets cannot be opened with this node's keyring"
        else:
            secrets = read_secrets(opened.encode())
    return DefinedProvider(spec, secrets, CLUSTER, one.version, one.owner, one.time_ms, trouble)


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get(name), dict):
        raise ValueError("it is no definition of a provider or a route")
    return value[name]
