"""Custom tools: tools whose argument is any text, told to the model as functions of one string.

a call   {"input": "SELECT 1"} of the model is the input `SELECT 1` of the client, and the other way round
a grammar of the input is told to the model in words; nothing holds it to that, which the answer says
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Constraint, ConstraintKind, Tool
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.request_draft import Draft

CUSTOM_PARAMETERS: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_FORMATS: Final = ("text", "grammar")
_SYNTAXES: Final = ("lark", "regex")


class _Argument(msgspec.Struct):
    input: str


_argument: Final = msgspec.json.Decoder(_Argument).decode
_encode: Final = msgspec.json.Encoder().encode


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
