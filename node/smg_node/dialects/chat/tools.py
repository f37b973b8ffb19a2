"""Tools of a Chat Completions body: functions, custom tools, and the legacy `functions`."""

from typing import Final

from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.functions import (
    check_schemas,
    custom_tool,
    note_twice,
    read_function,
    read_functions,
)
from smg_node.dialects.openai.hosted_tools import leave_out
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.tool_choice import (
    take_function_call,
    take_parallel,
    take_tool_choice,
)


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: functions and custom tools. An empty list declares none, and hosted tools are left out."""
    tools: list[Tool] = []
    customs: list[str] = []
    seen: set[str] = set()
    for declared in cursor.objects(key, at_most=draft.options.tools_max):
        kind = declared.text("type", required=True)
        if kind not in ("function", "custom"):
            if kind is not None:
                leave_out(draft, declared, kind, "'function' and 'custom' are")
            continue
        declared.only(("type", kind))
        place = declared.object(kind, required=True)
        found = None if place is None else _tool(draft, place, custom=kind == "custom")
        if place is None or found is None:
            continue
        if found.name in seen:
            note_twice(place, found.name)
        seen.add(found.name)
        tools.append(found)
        if kind == "custom":
            customs.append(found.name)
    check_schemas(draft, cursor, key, (tool for tool in tools if tool.name not in customs))
    draft.prompt["tools"] = tuple(tools)
    if customs:
        draft.view["custom_tools"] = frozenset(customs)


def _tool(draft: Draft, place: Cursor, *, custom: bool) -> Tool | None:
    """Return the tool that is declared here; None without a valid name."""
    found = read_function(place)
    if found is None or not custom:
        return found
    return custom_tool(draft, place, found, inside=True)


def take_functions(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the legacy `functions`; the answer then says `function_call`."""
    if cursor.has("tools"):
        cursor.problem(key, "cannot be combined with tools")
        return
    functions = list(cursor.objects(key, at_most=draft.options.tools_max))
    draft.prompt["tools"] = read_functions(draft, cursor, key, functions)
    draft.view["legacy_call"] = True


TOOLS: Final[dict[str, Take]] = {
    "tools": take_tools,
    "functions": take_functions,
    "tool_choice": take_tool_choice,
    "function_call": take_function_call,
    "parallel_tool_calls": take_parallel,
}
