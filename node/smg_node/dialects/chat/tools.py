"""Tools of a Chat Completions body, including the legacy `functions`."""

from typing import Final

from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.functions import read_functions
from smg_node.dialects.openai.hosted_tools import leave_out
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.tool_choice import (
    take_function_call,
    take_parallel,
    take_tool_choice,
)


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`; an empty list declares none, and hosted tools are left out."""
    functions: list[Cursor] = []
    for tool in cursor.objects(key, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind == "function":
            tool.only(("type", "function"))
            function = tool.object("function", required=True)
            if function is not None:
                functions.append(function)
        elif kind == "custom":
            why = f"only tools of type 'function' are supported; got {quoted(kind)}"
            tool.unsupported("type", why)
        elif kind is not None:
            leave_out(draft, tool, kind, "only tools of type 'function' are")
    draft.prompt["tools"] = read_functions(draft, cursor, key, functions)


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
