"""Reader of parse bodies: a text that a model printed, and the name of its format."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Tool
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.chat.tools import take_tools
from smg_node.dialects.openai.request_draft import Draft, Take, problems_for, take_all
from smg_node.dialects.options import ReaderOptions


class ParseBody(msgspec.Struct, frozen=True):
    """A text to parse. `parser` is the name of a format, `prompt` the end of the prompt before the
    text.
    """

    text: str
    parser: str
    prompt: str = ""
    tools: tuple[Tool, ...] = ()
    ignored: tuple[str, ...] = ()


def _text(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.request[key] = cursor.text(key)


REASONING: Final[dict[str, Take]] = {"text": _text, "reasoning_parser": _text, "prompt": _text}
CALLS: Final[dict[str, Take]] = {
    "text": _text,
    "tool_call_parser": _text,
    "prompt": _text,
    "tools": take_tools,
}


def read_parse_calls(body: dict[str, Any], options: ReaderOptions) -> ParseBody:
    """Return the text to be parsed for calls of `tools`, and its format."""
    return _read(body, options, CALLS, "tool_call_parser")


def read_parse_reasoning(body: dict[str, Any], options: ReaderOptions) -> ParseBody:
    """Return the text to be parsed for reasoning, and its format."""
    return _read(body, options, REASONING, "reasoning_parser")


def _read(
    body: dict[str, Any], options: ReaderOptions, table: Mapping[str, Take], parser: str
) -> ParseBody:
    draft = Draft(options)
    cursor = Cursor(body, problems_for(options))
    take_all(draft, cursor, table)
    for key in ("text", parser):
        if not cursor.has(key):
            cursor.raw(key, required=True)
    cursor.problems.check()
    found = draft.request
    return ParseBody(
        found["text"],
        found[parser],
        found.get("prompt", ""),
        draft.prompt.get("tools", ()),
        draft.ignored_in(cursor.problems),
    )
