"""Built-in tools as functions: what a model is offered for each kind, whatever server does the work. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from smg_node.core.generation.request import Tool
from smg_node.core.generation.tool_serving import BuiltinKind

QUERIES_MAX: Final = 5
"""Queries of one call; more are one call's work for a person's impatience."""


class _Offer(NamedTuple):
    """What a model is told of a kind: the description, and its one argument."""

    description: str
    argument: str
    schema: Mapping[str, Any]


_CITE: Final = (
    "Results are numbered. Where an answer rests on one of them, write its number in brackets"
    " behind the sentence, like [1] or [2][5]; never make up a number."
)
_OFFERS: Final[Mapping[str, _Offer]] = {
    "web_search": _Offer(
        "Search the web. Use it for what is recent, local, or not surely known, and for what the"
        f" user wants to be looked up. {_CITE}",
        "query",
        {
            "type": "string",
            "description": "What to search for: a few words that a page about it would hold,"
            " names and years included.",
        },
    ),
    "web_fetch": _Offer(
        "Fetch a page of the web by its address, and read it. Use it for addresses that the user has"
        " given or a search has found; never make one up.",
        "url",
        {
            "type": "string",
            "description": "The whole address of the page, as https://example.com/page.",
        },
    ),
    "file_search": _Offer(
        "Search the user's files by meaning, and get the passages that fit. Use it before"
        f" answering a question that the files may answer. {_CITE}",
        "queries",
        {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": QUERIES_MAX,
            "description": "Questions or phrases that stand for themselves, each about one thing.",
        },
    ),
    "code_interpreter": _Offer(
        "Run Python code, and get what it prints and the pictures it draws. Use it for"
        " arithmetic, data, files and plots. Print what is to be seen: a value alone is not shown.",
        "code",
        {"type": "string", "description": "A whole Python program."},
    ),
    "image_generation": _Offer(
        "Make a picture from a description. The user is shown it as soon as it is made.",
        "prompt",
        {
            "type": "string",
            "description": "What the picture shows: subject, composition, style, colours, and any"
            " text in it, word for word.",
        },
    ),
    "tool_search": _Offer(
        "Find tools that are not listed here. There are more tools than this prompt shows; the"
        " best matches come back with their definitions, and can be called from then on. Search"
        " before saying that something cannot be done.",
        "query",
        {
            "type": "string",
            "description": "What a tool is to do, in a few words: the action, the thing, and the"
            " service if it is known, as in 'create issue github'.",
        },
    ),
}
_BY_PATTERN: Final = _Offer(
    "Find tools that are not listed here, by a regular expression over their names, descriptions"
    " and parameters. The matches come back with their definitions, and can be called from then"
    " on. Search before saying that something cannot be done.",
    "pattern",
    {
        "type": "string",
        "maxLength": 256,
        "description": "A pattern as for Python's re.search, in either case, without looking"
        " around or referring back: 'weather', 'get_.*_data', 'database.*query|query.*database'.",
    },
)


def builtin_tool(
    kind: BuiltinKind, settings: Mapping[str, Any], *, spelled: str = "", name: str = ""
) -> Tool:
    """Return the function that a model is offered for a built-in tool, under `name`, else under that of its kind.

    `spelled` is the type as the request has it: one kind of search for tools takes a pattern. `settings` are not
    arguments: what they say is told to the server, not to the model.
    """
    offer = _BY_PATTERN if by_pattern(kind, spelled) else _OFFERS[kind]
    parameters = {
        "type": "object",
        "properties": {offer.argument: offer.schema},
        "required": [offer.argument],
        "additionalProperties": False,
    }
    return Tool(name or kind, offer.description, parameters, builtin=kind)


def by_pattern(kind: BuiltinKind, spelled: str) -> bool:
    """Return whether a search for tools is one by pattern."""
    return kind == "tool_search" and spelled.startswith("tool_search_tool_regex")


def argument_of(kind: BuiltinKind, spelled: str = "") -> str:
    """Return the name of the one argument that the function of a kind has."""
    return (_BY_PATTERN if by_pattern(kind, spelled) else _OFFERS[kind]).argument
