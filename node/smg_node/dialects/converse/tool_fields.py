"""Tool fields of a Converse body: what may be called, what must be, and the tool that an answer by a schema is. Pure.

The API has no word for "no call": there no tools are sent. It has none for one call at most either.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import ChatPrompt, Tool
from smg_node.dialects.converse.conversation import TOOL_NAME
from smg_node.dialects.converse.vendor_answer import SCHEMA_TOOL

_OPEN: Final = {"type": "object", "properties": {}}
_ANSWER: Final = "Give the answer by calling this function once: its arguments are the answer."
_CHOICE: Final = "toolChoice"


def offered_tools(prompt: ChatPrompt) -> tuple[Tool, ...]:
    """Return the tools that may be called now."""
    choice = prompt.choice
    if choice.mode == "none":
        return ()
    if choice.allowed is None:
        return prompt.tools
    return tuple(tool for tool in prompt.tools if tool.name in choice.allowed)


def tool_config(prompt: ChatPrompt, answer_schema: Any, *, forces: bool) -> dict[str, Any] | None:
    """Return the `toolConfig`, None where nothing is to be called.

    `answer_schema` is that of an answer by a call, None for an answer in text. Without `forces` the model was found to
    take no choice among tools: INVALID_REQUEST for a wish that needs one.
    """
    tools = [{"toolSpec": _tool(tool)} for tool in offered_tools(prompt)]
    choice = prompt.choice
    wanted: dict[str, Any] | None = None
    if choice.mode == "named":
        wanted = {"tool": {"name": choice.name}}
    elif choice.mode == "required":
        wanted = {"any": {}}
    if answer_schema is not None and wanted is None:
        wanted = {"any": {}} if tools else {"tool": {"name": SCHEMA_TOOL}}
        tools.append({"toolSpec": _answer_tool(answer_schema)})
    if not tools:
        return None
    if wanted is None:
        return {"tools": tools}
    if not forces:
        raise unsupported("this model of Bedrock cannot be made to call a function", choice.where)
    return {"tools": tools, _CHOICE: wanted}


def _tool(tool: Tool) -> dict[str, Any]:
    if not TOOL_NAME.match(tool.name):
        raise unsupported(
            "at Bedrock a function's name has at most 64 letters, digits, _ and -", tool.where
        )
    if tool.name == SCHEMA_TOOL:
        raise unsupported(f"{SCHEMA_TOOL} is no name of a function at Bedrock", tool.where)
    said: dict[str, Any] = {"name": tool.name}
    if tool.description and not tool.description.isspace():
        said["description"] = tool.description
    said["inputSchema"] = {"json": _object_schema(tool.parameters)}
    if tool.strict:
        said["strict"] = True
    return said


def _answer_tool(schema: Any) -> dict[str, Any]:
    return {"name": SCHEMA_TOOL, "description": _ANSWER, "inputSchema": {"json": schema}}


def _object_schema(parameters: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if parameters is None:
        return _OPEN
    return parameters if "type" in parameters else {"type": "object", **parameters}
