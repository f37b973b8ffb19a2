"""OpenAPI document: `/openapi.json` (OpenAPI 3.1), built from the route table and the schemas."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from smg_node.http.openapi.examples import EXAMPLES
from smg_node.http.openapi.requests.queries import QUERY_SCHEMAS, SPLIT_BY_COMMAS
from smg_node.http.openapi.schemas import SCHEMAS
from smg_node.http.route_table import Route

_PUBLIC: Final = "Open to anyone."
_SEGMENT: Final = {"type": "string", "minLength": 1}
_NAME: Final = r"([A-Za-z0-9._/:@+~-]{1,120}|\*)"
_NAMES: Final = (
    f"tenant={_NAME}",
    f"key={_NAME}",
    f"model={_NAME}",
    r"tool=([A-Za-z0-9._:@+~-]{1,60}/([A-Za-z0-9._/:@+~-]{1,60}|\*)|\*)",
)
_TOGETHER_MAX: Final = 3
_SCOPES: Final = (
    "global",
    f"provider={_NAME}",
    *(
        ",".join(names)
        for count in range(1, _TOGETHER_MAX + 1)
        for names in combinations(_NAMES, count)
    ),
)
_SCOPE: Final = {
    "type": "string",
    "pattern": f"^({'|'.join(_SCOPES)})$",
    "description": "`tenant=…`, `key=…` or `model=…`, several with commas; `provider=…`; `tool=SERVER/TOOL` or "
    "`tool=SERVER/*`, with at most two of the first three; or `global`.",
}
_HEADERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "If-Match": {"type": "string", "pattern": r'^("[0-9]{1,20}"|[0-9]{1,20}|\*)$'},
    "Idempotency-Key": {"type": "string", "pattern": "^[ -~]{1,128}$"},
}
# What sends events where it is asked to.
_STREAMS: Final = frozenset(
    {
        "chat",
        "completions",
        "create_response",
        "generate_content",
        "response",
        "events",
        "serve_mcp",
    }
)
_EVENTS: Final = "text/event-stream"
# Actions whose answer with status 503 is of the same form as that with 200.
_PROBES: Final = frozenset({"readiness", "health", "health_generate"})
# Actions that may be sent no body at all.
_BODY_OPTIONAL: Final = frozenset({"create_conversation"})


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
        "description": _described(route),
        "security": [] if route.permission == "public" else [{}, {"key": []}],
        **_permissions(route),
        "responses": _responses(route),
    }
    parameters = list(_parameters(route))
    if parameters:
        operation["parameters"] = parameters
    if route.body:
        operation["requestBody"] = {
            "required": route.action not in _BODY_OPTIONAL,
            "content": {"application/json": _content(route.body)},
        }
    return operation


def _described(route: Route) -> str:
    if route.permission == "public":
        return _PUBLIC
    own = "" if route.own is None else f", or `{route.own}` for what is of the caller's own tenant"
    return f"Needs the permission `{route.permission}`{own}."


def _permissions(route: Route) -> dict[str, str]:
    """Return what a caller needs, for machines; nothing where nothing is needed."""
    needed = {} if route.permission == "public" else {"x-smg-permission": route.permission}
    return {**needed, **({} if route.own is None else {"x-smg-own-permission": route.own})}


def _responses(route: Route) -> dict[str, Any]:
    answer = {"description": route.summary, **_answer(route)}
    failure = {
        "description": "A failure, in the envelope of this route.",
        "content": {"application/json": {"schema": _reference("Error")}},
    }
    unwell = {"503": answer} if route.action in _PROBES else {}
    return {str(route.status): answer, **unwell, "default": failure}


def _answer(route: Route) -> dict[str, Any]:
    if not route.answer_types:
        return {}
    kinds = [*route.answer_types, *([_EVENTS] if route.action in _STREAMS else ())]
    plain = _content(route.answer) if route.answer else {"schema": {"type": "string"}}
    return {
        "content": {
            kind: {"schema": {"type": "string"}} if kind == _EVENTS else plain for kind in kinds
        }
    }


def _content(schema: str) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": _reference(schema)}
    if schema in EXAMPLES:
        content["example"] = EXAMPLES[schema]
    return content


def _parameters(route: Route) -> Iterator[dict[str, Any]]:
    for part in route.path.split("/"):
        if part.startswith("{"):
            name = part[1:-1].rstrip("+")
            schema = _SCOPE if name == "scope" else _SEGMENT
            yield {"name": name, "in": "path", "required": True, "schema": schema}
    known = QUERY_SCHEMAS.get(route.action, {})
    assert set(route.query) == set(known), f"{route.action} has other parameters"
    for name in route.query:
        # Repeated, as forms are, unless the route splits it.
        style = {"style": "form", "explode": False} if name in SPLIT_BY_COMMAS else {}
        yield {"name": name, "in": "query", "required": False, "schema": known[name], **style}
    for name in route.headers:
        bare = name.removesuffix("?")
        yield {
            "name": bare,
            "in": "header",
            "required": bare == name,
            "schema": _HEADERS[bare],
        }


def _operation_id(route: Route) -> str:
    words = route.path.replace("+}", "}").replace("{", "").replace("}", "")
    for mark in "./-":
        words = words.replace(mark, "_")
    return f"{route.method.lower()}{words.replace('__', '_').rstrip('_') or '_root'}"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
