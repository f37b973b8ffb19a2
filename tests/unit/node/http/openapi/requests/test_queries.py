"""The document promises of each query what its route takes: value by value, over a running node."""

from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest

from smg_node.http.openapi.requests.queries import QUERY_SCHEMAS, SPLIT_BY_COMMAS
from smg_node.http.route_table import ROUTES, Route
from support.http.http_node import node
from support.http.raw_http import ask

PROBES = (
    *("", "0", "1", "2", "20", "100", "101", "1000", "1001", "-1", "1.5", "10.0", "9" * 18, "9" * 19, "9" * 21),
    *("true", "false", "yes", "no", "maybe", "asc", "desc", "up", "alive", "ready", "regular", "x", "a b"),
    *("24h", "7d", "0h", "24x", "2026-11-22", "2026-11-22T03:00:00Z", "9999-12-31T23:59:59Z", "hour", "tenant"),
    *("x" * 256, "x" * 257, "x" * 513, "reasoning.encrypted_content", "smg_node_workers", "resp_1", "a/b"),
)  # fmt: skip
# What they name must be there, or be one of several: no schema knows.
NAMING = frozenset(
    {
        ("model_card", "model"),
        ("settings_difference", "node"),
        ("explain", "node"),
        ("google_models", "pageToken"),
        ("realtime_socket", "model"),
    }
)
ASKED = tuple(
    route
    for route in ROUTES
    if route.query
    and route.method == "GET"
    # Those of histories need a store, and a tenant's own sums a key; they read like the others.
    and route.action not in ("response", "interaction", "input_items", "items", "own_usage")
)


def values_of(name: str, schema: Any, spelled: str) -> list[Any]:
    """Return what a client may have meant by a spelling in a query."""
    if schema.get("type") == "array":
        return [spelled.split(",") if name in SPLIT_BY_COMMAS else [spelled]]
    meant: list[Any] = [spelled]
    if spelled in ("true", "false"):
        meant.append(spelled == "true")
    if spelled.lstrip("-").isdecimal():
        meant.append(int(spelled))
    return meant


@pytest.mark.parametrize("route", ASKED, ids=lambda route: f"{route.action} {route.path}")
async def test_a_value_is_promised_exactly_if_it_is_taken(route: Route) -> None:
    different = []
    path = route.path.replace("{scope+}", "tenant=acme")
    for each in ("{id}", "{name}", "{namespace}", "{key}"):
        path = path.replace(each, "x")
    async with node() as served:
        for name, schema in QUERY_SCHEMAS[route.action].items():
            promised = jsonschema_rs.validator_for(dict(schema), validate_formats=True)
            for spelled in PROBES:
                if (route.action, name) in NAMING or (route.action, name, spelled) == (
                    "events",
                    "stream",
                    "",
                ):
                    continue
                if (
                    route.action == "events"
                    and name == "stream"
                    and spelled in ("1", "true", "yes")
                ):
                    # A stream of events does not end.
                    continue
                answer = await ask(served.port, "GET", f"{path}?{name}={quote(spelled, safe='')}")
                good = any(map(promised.is_valid, values_of(name, schema, spelled)))
                if (answer.status == 400) == good:
                    different.append((name, spelled, answer.status))
    assert different == []


def test_every_parameter_of_every_route_has_a_schema() -> None:
    for route in ROUTES:
        assert set(route.query) == set(QUERY_SCHEMAS.get(route.action, {})), route.path
    assert set(QUERY_SCHEMAS) <= {route.action for route in ROUTES}
