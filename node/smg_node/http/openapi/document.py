"""OpenAPI document: `/openapi.json` (OpenAPI 3.1), built from the route table and the schemas."""

from collections.abc import Iterable
from typing import Any, Final

from smg_node.http.openapi.examples import EXAMPLES
from smg_node.http.openapi.schemas import SCHEMAS
from smg_node.http.route_table import Route

_ACCESS: Final = {
    "public": "Open to anyone.",
    "data": "For tenants.",
    "view": "For operators and administrators.",
    "admin": "For administrators.",
}
_STREAMS: Final = frozenset({"ChatRequest", "CompletionRequest", "ResponseRequest"})


def document(routes: Iterable[Route], *, version: str) -> dict[str, Any]:
    """Return the whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        path = route.path.replace("+}", "}")
        paths.setdefault(path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "smg-node",
            "version": version,
            "summary": "One HTTP address in front of many inference engines.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "description": _ACCESS[route.access],
        "security": [] if route.access == "public" else [{}, {"key": []}],
        "responses": {
            "200": _answer(route),
            "default": {
                "description": "A failure, in the envelope of this route.",
                "content": {"application/json": {"schema": _reference("Error")}},
            },
        },
    }
    parameters = _parameters(route)
    if parameters:
        operation["parameters"] = parameters
    if route.body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": _content(route.body)},
        }
    return operation


def _answer(route: Route) -> dict[str, Any]:
    content: dict[str, Any] = {
        route.answer_type: _content(route.answer)
        if route.answer
        else {"schema": {"type": "string"}}
    }
    if route.body in _STREAMS:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    return {"description": route.summary, "content": content}


def _content(schema: str) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _reference(schema)}
    if schema in EXAMPLES:
        content["example"] = EXAMPLES[schema]
    return content


def _parameters(route: Route) -> list[dict[str, Any]]:
    named = [part[1:-1].rstrip("+") for part in route.path.split("/") if part.startswith("{")]
    text = {"type": "string"}
    places = (("path", named), ("query", route.query), ("header", route.headers))
    return [
        {
            "name": name.removesuffix("?"),
            "in": place,
            "required": place != "query" and not name.endswith("?"),
            "schema": text,
        }
        for place, names in places
        for name in names
    ]


def _operation_id(route: Route) -> str:
    words = route.path.replace("+}", "}").replace("{", "").replace("}", "").replace(".", "_")
    return f"{route.method.lower()}{words.replace('/', '_').rstrip('_') or '_root'}"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
