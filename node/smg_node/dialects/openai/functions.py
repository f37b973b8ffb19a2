"""Functions that the model may call: names, descriptions, schemas; and custom tools, whose argument is any text.

A custom tool is told to the model as a function of one string: the model's call `{"input": "SELECT 1"}` is the
client's input `SELECT 1`. A grammar of the input is told in words; nothing holds the model to it, and the answer says so.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Constraint, ConstraintKind, Tool
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.request_draft import Draft

NAME_PATTERN: Final = "^[A-Za-z0-9_-]{1,64}$"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
# In Responses the type, and the format of a custom tool's text, stand beside them.
_KEYS: Final = frozenset({"name", "description", "parameters", "strict", "type", "format"})
CUSTOM_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_FORMATS: Final = ("text", "grammar")
_SYNTAXES: Final = ("lark", "regex")
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


def read_function(function: Cursor, *, also: Collection[str] = ()) -> Tool | None:
    """Return the tool that a function declares; None without a valid name. Its caller reads the keys `also`."""
    function.only(_KEYS.union(also) if also else _KEYS)
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


# ── Custom tools ─────────────────────────────────────────────────────────────


class _Argument(msgspec.Struct):
    input: str


_argument: Final = msgspec.json.Decoder(_Argument).decode


def custom_input(arguments: str) -> str:
    """Return the string in the arguments; the arguments themselves if there is none."""
    try:
        return _argument(arguments).input
    except (msgspec.DecodeError, RecursionError):
        return arguments


def custom_arguments(given: str) -> str:
    """Return the arguments of the call whose input is given."""
    return _encode({"input": given}).decode()


def custom_tool(draft: Draft, tool: Cursor, found: Tool, *, inside: bool) -> Tool:
    """Return the function that the model is shown for a custom tool, of which this is name and description.

    `inside`: the grammar is an object in the format, as in Chat Completions, and not the format itself.
    """
    form = _form(draft, tool, inside=inside)
    if form is None:
        return Tool(found.name, found.description, CUSTOM_PARAMETERS)
    syntax = "regex" if form.kind == "regex" else "lark"
    told = f"The input must match this grammar ({syntax}):\n{form.value}"
    about = f"{found.description}\n\n{told}" if found.description else told
    return Tool(found.name, about, CUSTOM_PARAMETERS, form=form)


def _form(draft: Draft, tool: Cursor, *, inside: bool) -> Constraint | None:
    """Return the grammar of a custom tool's input, if it has one."""
    form = tool.object("format")
    if form is None or form.word("type", _FORMATS, required=True) != "grammar":
        return None
    grammar = form.object("grammar", required=True) if inside else form
    if grammar is None:
        return None
    syntax = grammar.word("syntax", _SYNTAXES, required=True)
    definition = grammar.text("definition", required=True, characters_min=1)
    if syntax is None or definition is None:
        return None
    limit = draft.options.grammar_max_bytes
    if len(definition.encode()) > limit:
        grammar.problem("definition", f"must have at most {limit} bytes")
    draft.ignore(form.path())
    kind: ConstraintKind = "regex" if syntax == "regex" else "ebnf"
    return Constraint(kind, definition, grammar.path("definition"))
