"""Offered tools: what a caller of the node's own MCP server may see, under which names, in pages. Pure.

At the address of all servers a tool is `server__tool`, at that of one server it has the server's own name. Where two
servers make the same name, it is the tool of the one with the longer name.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from smg_node.mcp.catalog.arguments import shown_schema
from smg_node.mcp.catalog.hints import hints_of
from smg_node.mcp.catalog.pins import is_changed
from smg_node.mcp.policy import Decision, decide
from smg_node.mcp.server_spec import ToolRule
from smg_node.mcp.tool_servers import ResolvedServer
from smg_node.mcp.tools.tool import Tool

PAGE_TOOLS: Final = 100
SEPARATOR: Final = "__"
_CURSOR_BYTES_MAX: Final = 2048
_CURSOR: Final = "after:"


class OfferedTool(NamedTuple):
    """One tool under the name that clients know."""

    name: str
    server: ResolvedServer
    tool: Tool

    @property
    def rule(self) -> ToolRule:
        """What the operator says of it."""
        return self.server.spec.rule(self.tool.name)

    @property
    def schema(self) -> Mapping[str, Any]:
        """Schema of the arguments that a caller gives, which is that of an object whatever the server says."""
        shown = shown_schema(self.tool.input_schema, self.rule)
        return shown if shown.get("type") == "object" else {**shown, "type": "object"}


class HasName(Protocol):
    """Whatever is listed by its name."""

    @property
    def name(self) -> str:
        """The name that clients know."""
        ...


_Listed = TypeVar("_Listed", bound=HasName)


class Page(NamedTuple, Generic[_Listed]):
    """One page of tools, and the cursor of the next one, "" at the end."""

    tools: Sequence[_Listed]
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
    *,
    plain: bool,
) -> list[OfferedTool]:
    """Return the tools that may be seen, by name: none that is hidden or denied. `plain`: under the server's own names."""
    named: dict[str, OfferedTool] = {}
    for server, tools in sorted(lists, key=lambda one: len(one[0].label), reverse=True):
        for tool in tools.values():
            name = tool.name if plain else qualified(server.label, tool.name)
            if is_seen(server, tool):
                named.setdefault(name, OfferedTool(name, server, tool))
    return [named[name] for name in sorted(named)]


def is_seen(server: ResolvedServer, tool: Tool) -> bool:
    """Whether a caller may know of a tool."""
    return not server.spec.rule(tool.name).hidden and decision(server, tool).verdict != "deny"


def decision(server: ResolvedServer, tool: Tool) -> Decision:
    """Return whether a tool may run, by the operator's word alone: a client of this server has no say in it."""
    hints = hints_of(server.spec, tool.name, tool.annotations)
    changed = is_changed(
        server.spec, tool.name, tool.description, tool.input_schema, tool.annotations
    )
    return decide(server.spec, tool.name, hints, None, changed=changed)


def page_of(tools: Sequence[_Listed], cursor: str) -> Page[_Listed] | None:
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
    row["inputSchema"] = one.schema
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
