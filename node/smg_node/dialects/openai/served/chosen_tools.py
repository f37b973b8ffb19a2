"""Chosen tools: entries of `tool_choice` that name tools which this node runs.

A server's names are known only when it was asked for them, so a choice keeps what the body says: a server, one of its
tools, or a built-in tool.
"""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from smg_node.core.generation.tool_serving import ChosenTool, ServedChoice, ToolServing
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.hosted_tools import builtin_named

_NAME_CHARACTERS_MAX: Final = 256


def names_ours(serving: ToolServing, kind: str) -> bool:
    """Whether an entry of this type can only mean a tool that this node runs."""
    builtin = builtin_named(kind)
    return kind == "mcp" or any(asked.kind == builtin for asked in serving.builtins)


def chosen_tool(serving: ToolServing, entry: Cursor, kind: str) -> ChosenTool | None:
    """Return what an entry names; None for a server that the request does not name, which is noted."""
    if kind != "mcp":
        return ChosenTool(builtin=builtin_named(kind))
    entry.only(("type", "server_label", "name"))
    label = entry.text("server_label", required=True)
    name = entry.text("name", characters_min=1, characters_max=_NAME_CHARACTERS_MAX)
    if label is None:
        return None
    server = next((server for server in serving.servers if server.label == label), None)
    if server is None:
        entry.problem("server_label", f"there is no server called {quoted(label)}")
        return None
    allowed = None if server.tools is None else server.tools.names
    if name is not None and allowed is not None and name not in allowed:
        entry.problem("name", f"{quoted(name)} is none of the allowed tools of that server")
    return ChosenTool(label, name or "")


def with_choice(
    serving: ToolServing, chosen: Sequence[ChosenTool], *, insists: bool
) -> ToolServing:
    """Return the tools with a choice among them; `insists`: one of these has to be called, and no other."""
    tools = tuple(dict.fromkeys(chosen))
    kinds = {tool.builtin for tool in tools} if insists else set()
    builtins = tuple(
        replace(asked, insisted=True) if asked.kind in kinds else asked
        for asked in serving.builtins
    )
    return replace(serving, builtins=builtins, choice=ServedChoice(tools))


def with_some_call(serving: ToolServing, *, functions: bool) -> ToolServing:
    """Return the tools where any call is required; `functions`: the client has some of its own."""
    if functions or serving.servers or len(serving.builtins) > 1:
        return serving
    return replace(serving, builtins=tuple(replace(one, insisted=True) for one in serving.builtins))
