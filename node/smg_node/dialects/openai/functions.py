"""Functions that the model may call: names, descriptions, schemas."""

import re
from collections.abc import Iterable
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
    for function in functions:
        tool = read_function(function)
        if tool is None:
            continue
        if tool.name in tools:
            note_twice(function, tool.name)
        tools[tool.name] = tool
    check_schemas(draft, cursor, key, tools.values())
    return tuple(tools.values())


def read_function(function: Cursor) -> Tool | None:
    """Return the tool that a function declares; None without a valid name."""
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


def note_twice(function: Cursor, name: str) -> None:
    """Note that an earlier function has the same name."""
    function.problem("name", f"there are two tools called {quoted(name)}")


def check_schemas(draft: Draft, cursor: Cursor, key: str, tools: Iterable[Tool]) -> None:
    """Note at `key` if the schemas of these tools are too long all together."""
    schemas = [tool.parameters for tool in tools if tool.parameters is not None]
    limit = draft.options.schema_max_bytes
    if sum(len(_encode(schema)) for schema in schemas) > limit:
        cursor.problem(key, f"all schemas together may have at most {limit} bytes")
