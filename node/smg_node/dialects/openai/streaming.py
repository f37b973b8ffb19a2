"""Streaming parameters: `stream` and its options."""

from collections.abc import Mapping
from typing import Final

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.request_draft import Draft, Take, shown, take_all


def take_stream(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `stream`."""
    draft.request["stream"] = cursor.flag(key) or False


def take_stream_options(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `stream_options`; they mean nothing without `stream`, so that is a mistake."""
    options = cursor.object(key)
    if options is None:
        return
    if cursor.values.get("stream") is not True:
        cursor.problem(key, "is only allowed when stream is true")
    take_all(draft, options, _OPTIONS)


def take_obfuscation(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `include_obfuscation`; frames are never padded, so only false is honoured."""
    if cursor.flag(key):
        draft.ignore(cursor.path(key))


_OPTIONS: Final[Mapping[str, Take]] = {
    "include_usage": shown("include_usage"),
    "continuous_usage_stats": shown("continuous_usage"),
    "include_obfuscation": take_obfuscation,
}

STREAMING: Final[dict[str, Take]] = {
    "stream": take_stream,
    "stream_options": take_stream_options,
}
