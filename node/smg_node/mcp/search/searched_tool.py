"""Searched tool: a tool that a model can find, and the text by which it is found. Pure.

The text has four fields: its name, the label of its server, its description, and its parameters with theirs, those of
nested objects too. A schema is a stranger's: it is followed so deep and so far, and no reference leads out of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from smg_node.core.generation.tool_serving import ListedTool

SEARCHED_TOOLS_MAX: Final = 10_000
"""Beyond this an index of all words takes more than a second to make and tens of megabytes to keep."""
_DEPTH_MAX: Final = 8
_PARAMETERS_MAX: Final = 200
_FIELD_CHARACTERS_MAX: Final = 8_192
"""Of descriptions and parameters each; servers' own limits are below it, clients' tools may be above."""
_NESTED: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_BRANCHES: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("$defs", "definitions", "patternProperties", "dependentSchemas")


class SearchedTool(msgspec.Struct, frozen=True):
    """A tool that can be found: `called` is the name by which a model calls it, `server` the label of its server.

    Tools of the client itself have no server.
    """

    called: str
    tool: ListedTool
    server: str = ""


class ToolText(NamedTuple):
    """The text by which a tool is found, by field. `parameters` has a line for each of them."""

    name: str
    server: str
    description: str
    parameters: str

    @property
    def rest(self) -> str:
        """All but the name, a field a line."""
        return f"{self.description}\n{self.parameters}\n{self.server}"


def tool_text(searched: SearchedTool) -> ToolText:
    """Return the text by which a tool is found."""
    tool = searched.tool
    parameters = "\n".join(_lines(tool.schema))
    return ToolText(
        tool.name,
        searched.server,
        tool.description[:_FIELD_CHARACTERS_MAX],
        parameters[:_FIELD_CHARACTERS_MAX],
    )


def ordered(tools: Iterable[SearchedTool]) -> tuple[SearchedTool, ...]:
    """Return tools in an order that does not depend on the one they come in: by name, then by server."""
    return tuple(sorted(tools, key=_order))[:SEARCHED_TOOLS_MAX]


def _order(searched: SearchedTool) -> tuple[str, str, str, str]:
    return (searched.called, searched.server, searched.tool.name, searched.tool.description)


def _lines(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield `name: description` of each parameter, outer ones first."""
    open_schemas: list[tuple[Any, int]] = [(schema, 0)]
    told = 0
    # The list grows while it is read: nearer parameters come before deeper ones.
    for one, depth in open_schemas:
        if not isinstance(one, dict):
            continue
        properties = one.get("properties")
        for name, parameter in properties.items() if isinstance(properties, dict) else ():
            if told == _PARAMETERS_MAX:
                return
            told += 1
            description = parameter.get("description") if isinstance(parameter, dict) else None
            yield f"{name}: {description}" if isinstance(description, str) else str(name)
            _open(open_schemas, parameter, depth)
        if depth < _DEPTH_MAX and len(open_schemas) <= _PARAMETERS_MAX:
            open_schemas += [(inner, depth + 1) for inner in _inner(one)]


def _open(open_schemas: list[tuple[Any, int]], parameter: Any, depth: int) -> None:
    if isinstance(parameter, dict) and depth < _DEPTH_MAX:
        open_schemas.append((parameter, depth + 1))


def _inner(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key in _NESTED:
        yield schema.get(key)
    for key in _BRANCHES:
        branches = schema.get(key)
        yield from branches if isinstance(branches, list) else ()
    for key in _NAMED:
        named = schema.get(key)
        yield from named.values() if isinstance(named, dict) else ()
