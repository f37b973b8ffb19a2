"""Tools of a generateContent body: function declarations, and which of them may or must be called.

Tools that Google's servers execute themselves (`googleSearch`, `codeExecution` …) are refused: a client
asks for them only where the answer is to rest on them.
"""

import re
from dataclasses import replace
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Tool, ToolChoice, ToolMode
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.gemini.schema import json_schema
from smg_node.dialects.gemini.spelling import names, spelled
from smg_node.dialects.openai.json_schema import check_schema
from smg_node.dialects.openai.request_draft import Draft

NAME_CHARACTERS_MAX: Final = 128
_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}\Z")
_TOOL_KEYS: Final = names("functionDeclarations")
_FUNCTION_KEYS: Final = names(
    "name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema",
    "behavior",
)  # fmt: skip
_CALLING_KEYS: Final = names("mode", "allowedFunctionNames")
_CONFIG_KEYS: Final = names("functionCallingConfig")
_MODES: Final[dict[str, ToolMode]] = {
    "MODE_UNSPECIFIED": "auto",
    "AUTO": "auto",
    "ANY": "required",
    "NONE": "none",
    "VALIDATED": "auto",
}
_VALIDATED: Final = "VALIDATED"
_encode: Final = msgspec.json.Encoder().encode


def take_tools(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `tools`: objects of function declarations."""
    tools: dict[str, Tool] = {}
    for group in cursor.objects(key, at_most=draft.options.tools_max):
        for name, value in group.values.items():
            if value is not None and name not in _TOOL_KEYS:
                why = "is not supported: nothing here executes it"
                group.problem(name, why, "unsupported_tool")
        left = draft.options.tools_max - len(tools)
        for declared in group.objects(spelled(group, "functionDeclarations"), at_most=left):
            tool = _declared(declared)
            if tool is None:
                continue
            if tool.name in tools:
                declared.problem("name", f"there are two functions called {quoted(tool.name)}")
            tools[tool.name] = tool
    schemas = [tool.parameters for tool in tools.values() if tool.parameters is not None]
    limit = draft.options.schema_max_bytes
    if sum(len(_encode(schema)) for schema in schemas) > limit:
        cursor.problem(key, f"all schemas together may have at most {limit} bytes")
    draft.prompt["tools"] = tuple(tools.values())


def _declared(function: Cursor) -> Tool | None:
    """Return the tool that is declared here; None without a valid name."""
    function.only(_FUNCTION_KEYS)
    name = function.text("name", required=True)
    if name is not None and not _NAME.match(name):
        why = f"must be 1 to {NAME_CHARACTERS_MAX} letters, digits, underscores, dots, colons and hyphens"
        function.problem("name", why)
        name = None
    description = function.text("description")
    parameters, where = _parameters(function)
    if name is None:
        return None
    return Tool(name, description, parameters, where=where)


def _parameters(function: Cursor) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON Schema of the parameters, and its path."""
    own, plain = spelled(function, "parameters"), spelled(function, "parametersJsonSchema")
    if function.has(own) and function.has(plain):
        function.problem(plain, f"cannot be combined with {own}")
        return None, function.path()
    if function.has(plain):
        given = function.object(plain)
        return None if given is None else given.values, function.path(plain)
    given = function.object(own)
    if given is None:
        return None, function.path()
    made = json_schema(given.values)
    check_schema(Cursor(made, function.problems, function, own))
    return made, function.path(own)


def take_tool_config(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `toolConfig`; the names in it are looked up by `settle_choice`."""
    config = cursor.object(key)
    if config is None:
        return
    config.only(_CONFIG_KEYS)
    calling = config.object(spelled(config, "functionCallingConfig"))
    if calling is None:
        return
    calling.only(_CALLING_KEYS)
    mode = _mode(calling)
    key = spelled(calling, "allowedFunctionNames")
    allowed = calling.array(key)
    chosen = calling.elements(key, str, "a string", allowed) if allowed else None
    if mode is None:
        return
    draft.prompt["choice"] = ToolChoice(
        _MODES[mode],
        allowed=tuple(dict.fromkeys(chosen)) if chosen else None,
        where=calling.path(key if chosen else "mode"),
    )
    if mode == _VALIDATED:
        draft.view["validated"] = True


def _mode(calling: Cursor) -> str | None:
    """Return the mode in capitals; None for one that is unknown, which is noted."""
    mode = calling.text("mode")
    if mode is None:
        return None if calling.has("mode") else "AUTO"
    if mode.upper() in _MODES:
        return mode.upper()
    known = ", ".join(repr(each) for each in _MODES)
    calling.problem("mode", f"must be one of {known}; got {quoted(mode)}")
    return None


def settle_choice(draft: Draft, cursor: Cursor) -> None:
    """Check the choice against the functions that are declared."""
    choice = draft.prompt.get("choice")
    tools: tuple[Tool, ...] = draft.prompt.get("tools", ())
    if draft.view.pop("validated", False):
        draft.prompt["tools"] = tuple(replace(tool, strict=True) for tool in tools)
    if not isinstance(choice, ToolChoice) or choice.mode == "none" or cursor.problems:
        return
    declared = {tool.name for tool in tools}
    if choice.mode == "required" and not tools:
        cursor.problems.add(choice.where, "ANY is only allowed when functions are declared")
    for name in choice.allowed or ():
        if name not in declared:
            cursor.problems.add(choice.where, f"there is no function called {quoted(name)}")
