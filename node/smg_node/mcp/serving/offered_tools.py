"""Offered tools: what a caller of the node's own MCP server may see, under which names, in pages. Pure.

At the address of all servers a tool is `server__tool`, at that of one server it has the server's own name. Where two
servers make the same name, it is the tool of the one with the longer name.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from smg_node.mcp.server_spec import ToolRule, Verdict
from smg_node.mcp.tool_servers import ResolvedServer
from smg_node.mcp.tools.tool import Tool

PAGE_TOOLS: Final = 100
SEPARATOR: Final = "__"
_CURSOR_BYTES_MAX: Final = 2048
_CURSOR: Final = "after:"

Policy: TypeAlias = Callable[[ResolvedServer, Tool], Verdict]
"""Whether a call of a tool may run, is asked about, or may not."""


class OfferedTool(NamedTuple):
    """One tool under the name that clients know."""

    name: str
    server: ResolvedServer
    tool: Tool

    @property
    def rule(self) -> ToolRule:
        """What the operator says of it."""
        return self.server.spec.rule(self.tool.name)


class Page(NamedTuple):
    """One page of tools, and the cursor of the next one, "" at the end."""

    tools: Sequence[OfferedTool]
    cursor: str


def qualified(server: str, tool: str) -> str:
    """Return the name of a tool among those of all servers."""
    return f"{server}{SEPARATOR}{tool}"


def splits(name: str, servers: Iterable[ResolvedServer]) -> Iterator[tuple[ResolvedServer, str]]:
    """Yield the server and tool that a name may mean, the server with the longest name first."""
    for server in sorted(servers, key=lambda one: len(one.label), reverse=True):
        if name.startswith(server.label + SEPARATOR):
            yield server, name[len(server.label) + len(SEPARATOR) :]


def offered(
    lists: Iterable[tuple[ResolvedServer, Mapping[str, Tool]]],
    policy: Policy,
    *,
    plain: bool,
) -> list[OfferedTool]:
    """Return the tools that may be seen, by name: none that is hidden or denied. `plain`: under the server's own names."""
    named: dict[str, OfferedTool] = {}
    for server, tools in sorted(lists, key=lambda one: len(one[0].label), reverse=True):
        for tool in tools.values():
            name = tool.name if plain else qualified(server.label, tool.name)
            if is_seen(server, tool, policy):
                named.setdefault(name, OfferedTool(name, server, tool))
    return [named[name] for name in sorted(named)]


def is_seen(server: ResolvedServer, tool: Tool, policy: Policy) -> bool:
    """Whether a caller may know of a tool."""
    return not server.spec.rule(tool.name).hidden and policy(server, tool) != "deny"


def page_of(tools: Sequence[OfferedTool], cursor: str) -> Page | None:
    """Return the page that a cursor means, the first one for ""; None for a cursor that is none of ours.

    A cursor names the last tool before it. So tools that come or go between two pages neither repeat nor hide others.
    """
    after = _after(cursor) if cursor else ""
    if after is None:
        return None
    rest = [one for one in tools if one.name > after]
    shown = rest[:PAGE_TOOLS]
    return Page(shown, _cursor(shown[-1].name) if len(rest) > len(shown) else "")


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode((_CURSOR + last).encode()).decode().rstrip("=")


def _after(cursor: str) -> str | None:
    if len(cursor) > _CURSOR_BYTES_MAX or not cursor.isascii():
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        plain = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return plain.removeprefix(_CURSOR) if plain.startswith(_CURSOR) else None


def listed(one: OfferedTool, *, modern: bool) -> dict[str, Any]:
    """Return a tool as `tools/list` has it, with the schema that holds after what the operator fixed and renamed.

    Before the modern era a schema of results is that of an object, or there is none.
    """
    tool = one.tool
    row: dict[str, Any] = {"name": one.name}
    if tool.description:
        row["description"] = tool.description
    row["inputSchema"] = shown_schema(tool.input_schema, one.rule)
    output = tool.output_schema
    if output is not None and (modern or output.get("type") == "object"):
        row["outputSchema"] = output
    hints = _hints(tool, one.rule)
    if hints:
        row["annotations"] = hints
    return row


def _hints(tool: Tool, rule: ToolRule) -> Mapping[str, Any]:
    """Return the server's hints, the operator's in place of those that he replaces."""
    ours = {"readOnlyHint": rule.read_only, "idempotentHint": rule.idempotent}
    return {**tool.annotations, **{name: hint for name, hint in ours.items() if hint is not None}}


def shown_schema(schema: Mapping[str, Any], rule: ToolRule) -> Mapping[str, Any]:
    """Return the schema of the arguments that a caller gives: without fixed ones, renamed as the operator has them."""
    if not (rule.fixed or rule.rename or rule.defaults):
        return {"type": "object", **schema} if schema.get("type") != "object" else schema
    names = {server: shown for shown, server in rule.rename.items()}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    needed = schema.get("required")
    needed = needed if isinstance(needed, list) else []
    optional = {*rule.fixed, *rule.defaults}
    return {
        **schema,
        "type": "object",
        "properties": {
            names.get(name, name): part
            for name, part in properties.items()
            if name not in rule.fixed
        },
        "required": [names.get(name, name) for name in needed if name not in optional],
    }


def sent_arguments(text: bytes, values: Mapping[str, Any], rule: ToolRule) -> bytes:
    """Return the arguments that the server gets, as JSON text: fixed ones win, defaults fill what is missing."""
    if not (rule.fixed or rule.rename or rule.defaults):
        return text
    given = {rule.rename.get(name, name): value for name, value in values.items()}
    return msgspec.json.encode({**rule.defaults, **given, **rule.fixed})
