"""Tools of a Responses body, in this API's flat shape, and the choice among them."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.functions import read_functions
from smg_node.dialects.openai.request_draft import Draft, Take
from smg_node.dialects.openai.tool_choice import take_flat_choice, take_parallel

# A model that knows functions is shown a tool of free text as a function of one string.
CUSTOM_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_FORMATS: Final = ("text", "grammar")
# Keys that one of the two public schemas demands of a function.
_UNSAID: Final = {"description": None, "parameters": None, "strict": None}


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: functions, and custom tools whose argument is any text."""
    readable: list[Cursor] = []
    custom: list[str] = []
    shown: list[dict[str, Any]] = []
    for tool in cursor.objects(key, at_most=draft.options.tools_max):
        kind = tool.text("type", required=True)
        if kind == "function":
            shown.append({**_UNSAID, **tool.values})
        elif kind == "custom":
            _check_format(tool)
            custom.append(str(tool.values.get("name")))
            shown.append(tool.values)
        else:
            if kind is not None:
                why = f"tools of type {quoted(kind)} are not supported; 'function' and 'custom' are"
                tool.problem("type", why, "unsupported_tool")
            continue
        readable.append(tool)
    tools = read_functions(draft, cursor, key, readable)
    names = frozenset(custom)
    draft.prompt["tools"] = tuple(_as_function(t) if t.name in names else t for t in tools)
    draft.request["custom_tools"] = tuple(custom)
    draft.view["tools"] = shown


def _check_format(tool: Cursor) -> None:
    form = tool.object("format")
    kind = None if form is None else form.word("type", _FORMATS, required=True)
    if form is not None and kind == "grammar":
        form.problem(
            "type",
            "is not supported yet: the input of a tool cannot be held to a grammar",
            "unsupported_tool",
        )


def _as_function(tool: Tool) -> Tool:
    return Tool(tool.name, tool.description, CUSTOM_PARAMETERS)


def take_tool_choice(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tool_choice`, which the answer repeats."""
    take_flat_choice(draft, cursor, key)
    draft.view["tool_choice"] = cursor.values[key]


def take_parallel_calls(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `parallel_tool_calls`, which the answer repeats."""
    take_parallel(draft, cursor, key)
    draft.view["parallel_tool_calls"] = cursor.values[key]


def take_calls_max(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `max_tool_calls`: a limit for tools that run here; the client's own are not counted."""
    draft.view["max_tool_calls"] = cursor.integer(key, low=1)


TOOLS: Final[dict[str, Take]] = {
    "tools": take_tools,
    "tool_choice": take_tool_choice,
    "parallel_tool_calls": take_parallel_calls,
    "max_tool_calls": take_calls_max,
}
