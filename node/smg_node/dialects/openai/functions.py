"""Functions that the model may call: names, descriptions, schemas."""

import re
from typing import Final

import msgspec

from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.request_draft import Draft

NAME_PATTERN: Final = "^[A-Za-z0-9_-]{1,64}$"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
# In Responses the type, and the format of a custom tool's text, stand beside them.
_KEYS: Final = frozenset({"name", "description", "parameters", "strict", "type", "format"})
_encode: Final = msgspec.json.Encoder().encode


def read_functions(
    draft: Draft, cursor: Cursor, key: str, functions: list[Cursor]
) -> tuple[Tool, ...]:
    """Return the tools these functions declare; two of one name, or too long schemas, are noted at `key`."""
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
    function.only(_KEYS)
    name = function.text("name", required=True)
    if name is not None and not _NAME.match(name):
        function.problem("name", "must be 1 to 64 letters, digits, underscores and hyphens")
        name = None
    description = function.text("description")
    parameters = function.object("parameters")
    strict = function.flag("strict") or False
    if name is None:
        return None
    if parameters is None:
        return Tool(name, description, None, strict, function.path())
    return Tool(name, description, parameters.values, strict, parameters.path())
