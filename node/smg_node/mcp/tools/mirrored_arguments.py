"""Mirrored arguments: those of a tool that its schema wants in HTTP headers too, marked `x-mcp-header`. Pure.

A proxy before the server routes by them. So a server refuses a call whose header and argument differ, and a schema in
which it is not plain which argument stands in which header makes the tool unusable by HTTP.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from smg_node.mcp.wire.headers import header_value

MARK: Final = "x-mcp-header"
DEPTH_MAX: Final = 64
"""Of a schema; deeper ones are cut off by their size anyway."""
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES: Final = ("string", "integer", "boolean")
# Keywords whose values hold schemas: one, a list, or a mapping of them. Others hold plain values, in which a key of that
# name marks nothing.
_ONE: Final = (
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPPINGS: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties")


class MirroredArgument(NamedTuple):
    """One argument: where it is, by names of properties, and the token that its header's name ends with."""

    path: tuple[str, ...]
    token: str


class MirrorError(ValueError):
    """A schema whose marks contradict the rules; says why."""


def mirrored_in(schema: Any) -> tuple[MirroredArgument, ...]:
    """Return the arguments that a schema marks; MirrorError for a mark that is against the rules."""
    found: list[MirroredArgument] = []
    for path, part in _schemas(schema, (), 0):
        if MARK in part:
            found.append(_mirrored(path, part))
    tokens = [one.token.lower() for one in found]
    if len(tokens) != len(frozenset(tokens)):
        raise MirrorError(f"two arguments have the same {MARK}")
    return tuple(found)


def _mirrored(path: tuple[str, ...] | None, part: Mapping[str, Any]) -> MirroredArgument:
    if not path:
        raise MirrorError(f"{MARK} stands where no path of properties leads")
    token = part[MARK]
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise MirrorError(f"{MARK} of {'.'.join(path)} is no name of a header")
    if part.get("type") not in _TYPES:
        raise MirrorError(f"{MARK} of {'.'.join(path)}: only string, integer and boolean can be")
    return MirroredArgument(path, token)


def _schemas(
    part: Any, path: tuple[str, ...] | None, depth: int
) -> Iterator[tuple[tuple[str, ...] | None, Mapping[str, Any]]]:
    """Yield a schema and all inside it, with the path of properties that leads there, None where none does."""
    if not isinstance(part, dict):
        return
    if depth > DEPTH_MAX:
        raise MirrorError(f"a schema of more than {DEPTH_MAX} levels")
    yield path, part
    properties = part.get("properties")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            yield from _schemas(inner, None if path is None else (*path, name), depth + 1)
    for keyword in _ONE:
        yield from _schemas(part.get(keyword), None, depth + 1)
    for keyword in _LISTS:
        if isinstance(listed := part.get(keyword), list):
            for inner in listed:
                yield from _schemas(inner, None, depth + 1)
    for keyword in _MAPPINGS:
        if isinstance(mapped := part.get(keyword), dict):
            for inner in mapped.values():
                yield from _schemas(inner, None, depth + 1)


def mirrored_values(
    mirrored: tuple[MirroredArgument, ...], arguments: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Return tokens and header values of the arguments that a call has; none for what is absent, null or of another type."""
    return [
        (one.token, header_value(spelled))
        for one in mirrored
        if (spelled := _spelled(_at(one.path, arguments))) is not None
    ]


def _at(path: tuple[str, ...], arguments: Any) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def _spelled(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case _:
            return None
