"""Arguments for a server's tool that does a built-in one's work: the model's one, and the request's settings. Pure.

A model gives what it was offered and nothing else: which files are searched, or in whose container code runs, is not
for it to say. Its text stays the JSON that it is. What in a tool object is about the API and not about the search,
such as its type, is no argument.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from smg_node.core.generation.tool_serving import BuiltinKind
from smg_node.mcp.builtin.builtin_tool import QUERIES_MAX, argument_of
from smg_node.mcp.builtin.domains import domain_rule
from smg_node.mcp.builtin.fetched_page import checked_address
from smg_node.mcp.failures import INVALID_PARAMS, Failure, FailureKind, plain_text

_ABOUT_THE_API: Final = frozenset(
    [
        "allowed_callers",
        "cache_control",
        "citations",
        "defer_loading",
        "eager_input_streaming",
        "execution",
        "max_uses",
        "name",
        "strict",
        "type",
        "url_sources",
    ]
)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "object": (dict,),
    "array": (list, tuple),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
}
_QUERIES: Final = ("query", "queries")
_SEARCHES: Final = ("web_search", "file_search")
_ADDRESSES: Final = ("url", "uri", "link", "href", "address", "urls")
"""How tools that fetch name the address; the last one is a list."""
_decode: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_any: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def arguments_for(
    kind: BuiltinKind,
    settings: Mapping[str, Any],
    arguments: str,
    *,
    schema: Mapping[str, Any] | None = None,
) -> str | Failure:
    """Return the arguments for the server's tool as JSON text; a failure, not sent, where the model's are no object.

    `schema` is that of the server's tool, under the names that arguments have before an operator renames them. Where
    it takes nothing but what it names, other settings are left out, and so is a setting of another type than it takes;
    where it knows `query` and not `queries`, or the other way round, it gets what it knows.
    """
    given = _read(arguments)
    if isinstance(given, Failure):
        return given
    known, is_closed = _known(schema)
    if kind == "web_fetch":
        return _fetch_arguments(settings, given, known)
    offered = _QUERIES if kind in _SEARCHES else (argument_of(kind), "pattern")
    told: dict[str, Any] = {name: value for name, value in given.items() if name in offered}
    wanted = dict(_settings(kind, settings))
    told |= {name: value for name, value in wanted.items() if _fits(value, known.get(name))}
    _turn_queries(told, known)
    if is_closed:
        told = {name: value for name, value in told.items() if name in known}
    return _encode(told).decode()


def action_of(kind: BuiltinKind, arguments: str) -> dict[str, Any]:
    """Return what a call asks for, by the name of its argument: `query`, `queries`, `url`, `code` and so on."""
    given = _read(arguments)
    values = {} if isinstance(given, Failure) else given
    if kind == "tool_search" and "pattern" in values:
        return {"pattern": _text(values["pattern"])}
    if kind == "web_fetch":
        return {"url": _url(values)}
    name = argument_of(kind)
    if name != "queries":
        return {name: _text(values.get(name))}
    return {name: _queries(values)}


def _fetch_arguments(
    settings: Mapping[str, Any], given: Mapping[str, Raw], known: Mapping[str, Any]
) -> str | Failure:
    """Return the arguments of a fetch: the address, and of the settings only what the tool names."""
    address = checked_address(_url(given), domain_rule(settings))
    if isinstance(address, Failure):
        return address
    name = next((one for one in _ADDRESSES if one in known), "url")
    told: dict[str, Any] = {name: [address] if name == _ADDRESSES[-1] else address}
    told |= {
        key: value
        for key, value in _settings("web_fetch", settings)
        if key in known and key != name and _fits(value, known[key])
    }
    return _encode(told).decode()


def _url(given: Mapping[str, Any]) -> str:
    """Return the address that a model wants; some have learnt another name for it."""
    return next(filter(None, (_text(given.get(name)).strip() for name in ("url", "id"))), "")


def _settings(kind: BuiltinKind, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if value is not None and name not in _ABOUT_THE_API:
            yield name, value
    if kind in ("web_search", "web_fetch"):
        # One name for both, wherever an API has them: an operator can rename what is not inside something.
        rule = domain_rule(settings)
        if rule.allowed:
            yield "allowed_domains", rule.allowed
        if rule.blocked:
            yield "blocked_domains", rule.blocked


def _known(schema: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], bool]:
    """Return the arguments that a tool names, and whether it takes no others."""
    if schema is None:
        return {}, False
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return known, schema.get("additionalProperties") is False


def _fits(value: Any, named: Any) -> bool:
    """Return whether a setting may be what a tool names so: a container by id is not one described by an object."""
    kind = named.get("type") if isinstance(named, dict) else None
    types = _TYPES.get(kind) if isinstance(kind, str) else None
    return types is None or isinstance(value, types)


def _read(arguments: str) -> dict[str, Raw] | Failure:
    if not arguments.strip():
        return {}
    try:
        return _decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        why = f"the arguments are no JSON object: {plain_text(str(error), 200)}"
        return Failure(FailureKind.PROTOCOL, INVALID_PARAMS, why, sent=False)


def _turn_queries(told: dict[str, Any], known: Mapping[str, Any]) -> None:
    """Give a tool that knows one of `query` and `queries` that one."""
    for wanted, other in (_QUERIES, _QUERIES[::-1]):
        if wanted in known and other not in known and wanted not in told and other in told:
            queries = _queries(told)
            told[wanted] = " ".join(queries) if wanted == "query" else queries
            del told[other]


def _queries(values: Mapping[str, Any]) -> list[str]:
    """Return the queries of a call, the one of a model that gives one; at most so many."""
    for name in _QUERIES[::-1]:
        value = _value(values.get(name))
        if isinstance(value, str):
            return [value]
        if isinstance(value, list):
            return [one for one in value if isinstance(one, str)][:QUERIES_MAX]
    return []


def _text(raw: Any) -> str:
    value = _value(raw)
    return value if isinstance(value, str) else ""


def _value(raw: Any) -> Any:
    if not isinstance(raw, Raw):
        return raw
    try:
        return _decode_any(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
