from collections.abc import Mapping
from typing import Any

import pytest

from smg_node.core.journey import Ran, Rated
from smg_node.http.openapi.document import document
from smg_node.http.openapi.explain import EXPLAIN_EXAMPLE
from smg_node.http.openapi.schemas import SCHEMAS
from smg_node.http.route_table import ROUTES
from support.http.http_node import node
from support.http.journeys import BEGAN_MS, broke, chosen, outcome, told
from support.http.raw_http import ask

EXPLAIN = "/v1/cluster/explain"


def fits(value: Any, schema: Mapping[str, Any]) -> None:
    """Assert that `value` is what the schema says, as far as these schemas say it."""
    if "$ref" in schema:
        fits(value, SCHEMAS[schema["$ref"].rpartition("/")[2]])
    elif "oneOf" in schema:
        (fitting,) = [
            one["$ref"].rpartition("/")[2]
            for one in schema["oneOf"]
            if SCHEMAS[one["$ref"].rpartition("/")[2]]["properties"]["step"]["const"]
            == value["step"]
        ]
        fits(value, SCHEMAS[fitting])
    elif "enum" in schema or "const" in schema:
        assert value in schema.get("enum", [schema.get("const")])
    else:
        fits_type(value, schema)


def fits_type(value: Any, schema: Mapping[str, Any]) -> None:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    python: Mapping[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "null": type(None),
    }
    assert any(isinstance(value, python[kind]) for kind in kinds), (value, schema)
    assert value is None or not isinstance(value, int) or value >= schema.get("minimum", value)
    if isinstance(value, dict):
        properties = schema.get("properties")
        if properties is not None:
            assert value.keys() == properties.keys()
        for name, inner in value.items():
            fits(inner, properties[name] if properties else schema["additionalProperties"])
    if isinstance(value, list):
        for inner in value:
            fits(inner, schema["items"])


async def test_a_journey_is_told_whole() -> None:
    async with node() as served:
        told(served.journal, "req_1", answer="77")
        shown = (await ask(served.port, "GET", f"{EXPLAIN}/req_1")).json()
        same = (await ask(served.port, "GET", f"{EXPLAIN}/chatcmpl-77?node=node-a")).json()
    (journey,) = shown["journeys"]
    assert (shown["request_id"], shown["node"]) == ("req_1", "node-a")
    assert (journey["attempts"], journey["continuations"]) == (2, 1)
    assert journey["under_way"] is False
    first, second, third = journey["steps"]
    costs = {"cost_s": 0.081, "wait_s": 0.018, "overlap": 4096, "dollars": None}
    assert first["rated"][0] == {"worker": "w-1", **costs}
    assert first["dropped"] == [{"worker": "w-3", "reason": "breaker open"}]
    assert (second["step"], second["emitted"]) == ("broke", 41)
    assert (third["why"], third["at_ms"]) == ("continue", BEGAN_MS + 1214)
    # What is still known of the workers: the others are gone.
    assert shown["workers"] == {"w-1": "grpc://e:1"}
    assert shown["members"] == {"b": "no member is called 'b'"}
    assert same["journeys"] == [journey]
    assert same["members"] == {}


async def test_what_is_told_is_of_the_shape_that_is_documented() -> None:
    async with node() as served:
        for what in ("ended", "open"):
            journey = served.journal.begin("req_1", "chat", "m", BEGAN_MS)
            journey.add(chosen())
            journey.add(chosen("w-9", rated=(), dropped=(), of=1, key=True))
            journey.add(broke())
            served.journal.ran("req_1", Ran(BEGAN_MS, "docs", "search", "ask", "trust", "asked"))
            if what == "ended":
                served.journal.end(journey, outcome(first_token_s=None), BEGAN_MS)
        shown = (await ask(served.port, "GET", f"{EXPLAIN}/req_1")).json()
    assert [journey["under_way"] for journey in shown["journeys"]] == [True, False]
    fits(shown, SCHEMAS["Explained"])
    fits(EXPLAIN_EXAMPLE, SCHEMAS["Explained"])
    broken = {**shown, "journeys": [{**shown["journeys"][0], "steps": [{"step": "broke"}]}]}
    with pytest.raises(AssertionError):
        fits(broken, SCHEMAS["Explained"])


async def test_costs_that_are_no_numbers_are_told_as_unknown() -> None:
    async with node() as served:
        journey = served.journal.begin("req_1", "chat", "m", BEGAN_MS)
        journey.add(chosen(rated=(Rated("w-1", float("inf"), float("nan"), 0.0),)))
        shown = (await ask(served.port, "GET", f"{EXPLAIN}/req_1")).json()
    (rated,) = shown["journeys"][0]["steps"][0]["rated"]
    assert (rated["cost_s"], rated["wait_s"]) == (None, None)


async def test_a_request_that_nobody_knows_is_a_clear_404() -> None:
    async with node() as served:
        none = await ask(served.port, "GET", f"{EXPLAIN}/req_9")
        elsewhere = await ask(served.port, "GET", f"{EXPLAIN}/req_9?node=c")
    assert (none.status, none.error()["code"]) == (404, "request_not_found")
    assert "c cannot be asked: it is dead" in none.error()["message"]
    assert (elsewhere.status, elsewhere.error()["code"]) == (404, "request_not_found")


def test_the_route_is_for_operators_and_in_the_document() -> None:
    (route,) = [route for route in ROUTES if route.action == "explain"]
    assert (route.access, route.query) == ("view", ("node",))
    operation = document(ROUTES, version="1")["paths"][f"{EXPLAIN}/{{id}}"]["get"]
    assert (
        operation["responses"]["200"]["content"]["application/json"]["example"] == EXPLAIN_EXAMPLE
    )


@pytest.mark.parametrize(
    ("path", "body", "dialect", "code", "says"),
    [
        ("/v1/chat/completions", b"{", "chat", "invalid_json", "JSON"),
        ("/v1/chat/completions", b"[]", "chat", "invalid_json", "object"),
        ("/v1/chat/completions", b'{"model": "m", "messages": 5}', "chat", None, "messages"),
        ("/v1/completions", b'{"model": "m"}', "completions", None, "prompt"),
        ("/v1/embeddings", b'{"model": "m", "input": {}}', "embeddings", None, "input"),
        ("/v1/tokenize", b'{"model": 5}', "tokenize", None, "model"),
        ("/rerank", b'{"model": 5}', "rerank", None, "model"),
    ],
)
async def test_the_id_of_a_refused_request_tells_why(
    path: str, body: bytes, dialect: str, code: str | None, says: str
) -> None:
    async with node() as served:
        refused = await ask(served.port, "POST", path, body)
        request_id = refused.headers["x-request-id"]
        shown = (await ask(served.port, "GET", f"{EXPLAIN}/{request_id}")).json()
    (journey,) = shown["journeys"]
    assert refused.status == journey["status"] == 400
    assert journey["request_id"] == request_id
    assert (journey["kind"], journey["dialect"]) == ("refused", dialect)
    assert journey["code"] == refused.headers["x-smg-error-code"]
    assert code is None or journey["code"] == code
    assert journey["message"] == refused.error()["message"][:256]
    assert says in journey["message"]
    assert (journey["steps"], journey["attempts"], journey["under_way"]) == ([], 0, False)
    fits(shown, SCHEMAS["Explained"])


async def test_what_is_no_request_for_work_leaves_nothing_to_be_told_of() -> None:
    async with node() as served:
        wrong = await ask(served.port, "GET", "/v1/chat/completions")
        absent = await ask(served.port, "POST", "/nowhere", b"{}")
        for refused in (wrong, absent):
            request_id = refused.headers["x-request-id"]
            unknown = await ask(served.port, "GET", f"{EXPLAIN}/{request_id}")
            assert unknown.status == 404
