"""Tools the model may call: names, descriptions, schemas. Also the legacy `functions`."""

import re
from typing import Final

import msgspec

from smg_node.core.cursor import Cursor, quoted
from smg_node.core.request import Tool
from smg_node.dialects.chat.tool_choice import take_function_call, take_parallel, take_tool_choice
from smg_node.dialects.openai.draft import Draft, Take

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_encode: Final = msgspec.json.Encoder().encode


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`; an empty list declares none."""
    functions: list[Cursor] = []
    for tool in cursor.objects(key, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind == "function":
            function = tool.object("function", required=True)
            if function is not None:
                functions.append(function)
        elif kind is not None:
            tool.unsupported(
                "type", f"only tools of type 'function' are supported; got {quoted(kind)}"
            )
    draft.prompt["tools"] = _read_tools(draft, cursor, key, functions)


def take_functions(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the legacy `functions`; the answer then says `function_call`."""
    if cursor.has("tools"):
        cursor.problem(key, "cannot be combined with tools")
        return
    functions = list(cursor.objects(key, at_most=draft.options.tools_max))
    draft.prompt["tools"] = _read_tools(draft, cursor, key, functions)
    draft.view["legacy_call"] = True


def _read_tools(
    draft: Draft, cursor: Cursor, key: str, functions: list[Cursor]
) -> tuple[Tool, ...]:
    tools: dict[str, Tool] = {}
    schema_bytes = 0
    for function in functions:
        tool = _read_function(function)
        if tool is None:
            continue
        if tool.name in tools:
            function.problem("name", f"there are two tools called {quoted(tool.name)}")
        tools[tool.name] = tool
        if tool.parameters is not None:
            schema_bytes += len(_encode(tool.parameters))
    limit = draft.options.schema_max_bytes
    if schema_bytes > limit:
        cursor.problem(key, f"all schemas together may have at most {limit} bytes")
    return tuple(tools.values())


def _read_function(function: Cursor) -> Tool | None:
    name = function.text("name", required=True)
    if name is not None and not _NAME.match(name):
        function.problem("name", "must be 1 to 64 letters, digits, underscores and hyphens")
        name = None
    description = function.text("description")
    parameters = function.object("parameters")
    strict = function.flag("strict") or False
    if name is None:
        return None
    return Tool(name, description, None if parameters is None else parameters.values, strict)


TOOLS: Final[dict[str, Take]] = {
    "tools": take_tools,
    "functions": take_functions,
    "tool_choice": take_tool_choice,
    "function_call": take_function_call,
    "parallel_tool_calls": take_parallel,
}
