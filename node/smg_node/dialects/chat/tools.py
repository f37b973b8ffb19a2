"""Tools of a Chat Completions body: functions, custom tools, the legacy `functions`, and tools that this node runs.

Those stand in `tools` as they do in Responses, and are asked for where the request has the header `x-smg-mcp: enabled`.
Without it they are left out, as other nodes leave them out that have none.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor
from smg_node.core.tool_switch import ON, SWITCH, is_switched_on
from smg_node.dialects.openai.functions import (
    check_schemas,
    custom_tool,
    note_twice,
    read_function,
    read_functions,
)
from smg_node.dialects.openai.hosted_tools import is_hosted, leave_out
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.tool_choice import (
    settle_choice,
    take_function_call,
    take_parallel,
    take_tool_choice,
)

if TYPE_CHECKING:
    # Loaded with the first request that names tools of this node.
    from smg_node.dialects.openai.served.asked_tools import AskedTools

SHOWING: Final = "x-smg-tool-runs"
"""The header of clients that want to be shown what was run."""
_SHOW: Final = "show"
_ASKED: Final = "asked_tools"
"""What a draft calls the tools that it asks for, where it may."""
_HEADERS: Final = "headers"
_CHOICE: Final = "tool_choice"
_OPT_IN: Final = (
    f"needs the header {SWITCH}: {ON} with the request, for tools that this gateway runs"
)


def may_ask(draft: Draft, headers: Mapping[str, str]) -> None:
    """Take note of whether a request may ask for tools on this node's side."""
    if is_switched_on(headers) and draft.options.tool_servers:
        draft.request[_ASKED] = None
        draft.request[_HEADERS] = headers


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: functions and custom tools. An empty list declares none, and hosted tools are left out."""
    tools: list[Tool] = []
    customs: list[str] = []
    seen: set[str] = set()
    for declared in cursor.objects(key, at_most=draft.options.tools_max):
        kind = declared.text("type", required=True)
        if kind not in ("function", "custom"):
            if kind is not None and not _take_served(draft, declared, kind):
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


def _take_served(draft: Draft, declared: Cursor, kind: str) -> bool:
    """Take a tool that this node runs, if it may be asked for; false for any other."""
    if _ASKED not in draft.request or not is_hosted(kind):
        return False
    if draft.request[_ASKED] is None:
        from smg_node.dialects.openai.served import asked_tools

        draft.request[_ASKED] = asked_tools.AskedTools(approvals=False)
    asked: AskedTools = draft.request[_ASKED]
    return asked.take(declared, kind)


def take_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice`; where tools of this node are asked for, it waits until all of them are known."""
    if _ASKED in draft.request:
        return
    choice = cursor.values[key]
    if type(choice) is dict:
        kind = choice.get("type")
        if type(kind) is str and is_hosted(kind) and draft.options.tool_servers:
            cursor.problem(key, _OPT_IN, "unsupported_tool")
            return
    take_tool_choice(draft, cursor, key)


def settle_tools(draft: Draft, cursor: Cursor) -> None:
    """Settle which tools are asked for, and the choice among all."""
    if _ASKED not in draft.request:
        nothing = draft.left_out and not draft.prompt.get("tools")
        insists = nothing and cursor.values.get(_CHOICE) == "required"
        if insists and draft.options.tool_servers:
            cursor.problem(_CHOICE, _OPT_IN, "unsupported_tool")
        settle_choice(draft, cursor)
        return
    asked: AskedTools | None = draft.request.pop(_ASKED)
    headers = draft.request.pop(_HEADERS)
    serving = None if asked is None else asked.serving()
    if serving is None:
        if cursor.has(_CHOICE):
            take_tool_choice(draft, cursor, _CHOICE)
        settle_choice(draft, cursor)
        return
    from msgspec.structs import replace

    from smg_node.core.forwardable_headers import forwardable
    from smg_node.dialects.chat.tool_runs.chosen_tools import settle_choice as settle_among

    serving = settle_among(draft, cursor, serving)
    draft.request["serving"] = replace(serving, headers=forwardable(headers))
    draft.view["served"] = True
    if headers.get(SHOWING, "").strip().lower() == _SHOW:
        draft.view["tool_runs"] = True


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
    "tool_choice": take_choice,
    "function_call": take_function_call,
    "parallel_tool_calls": take_parallel,
}
