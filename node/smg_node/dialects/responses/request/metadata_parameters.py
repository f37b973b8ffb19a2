"""Metadata parameters, which do not change sampling: labels, cache key, safety id, hints."""

from typing import Final

from smg_node.core.json_cursor import Cursor, whole
from smg_node.dialects.openai.extras import take_cache_key, take_metadata, take_service_tier
from smg_node.dialects.openai.request_draft import Draft, Take, refused, take_all
from smg_node.dialects.openai.streaming import take_obfuscation, take_stream

_SAFETY_MAX: Final = 128
_USER_MAX: Final = 512


def take_stream_options(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `stream_options`; they mean nothing without `stream`, so that is a mistake."""
    options = cursor.object(key)
    if options is None:
        return
    if cursor.values.get("stream") is not True:
        cursor.problem(key, "is only allowed when stream is true")
    take_all(draft, options, {"include_obfuscation": take_obfuscation})


def take_cache_label(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `prompt_cache_key`, which the answer repeats."""
    take_cache_key(draft, cursor, key)
    draft.view["prompt_cache_key"] = cursor.values[key]


def take_safety(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the client's user identifier; responses stored under it can be deleted by it.

    It is a name that stores look up, so it has no NUL, which a text of PostgreSQL cannot hold.
    """
    value = cursor.text(key, characters_max=_SAFETY_MAX)
    if value is not None and "\0" in value:
        cursor.problem(key, "must not contain a NUL character")
    draft.request["safety_identifier"] = value or ""
    draft.view["safety_identifier"] = value


def take_user(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the older `user`, which the answer repeats."""
    draft.view["user"] = cursor.text(key, characters_max=_USER_MAX)


def _switch(name: str) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.flag(key)
        if value is not None:
            draft.request[name] = value

    return take


def _hint(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.ignore(cursor.path(key))


def _take_truncation(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.request["truncation"] = cursor.word(key, ("disabled", "auto")) or "disabled"


def _take_compaction(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `context_management`: automatic compaction is not supported, and the answer says so."""
    if cursor.array(key, at_most=16):
        draft.ignore(key)


LABELS: Final[dict[str, Take]] = {
    "store": _switch("store"),
    "background": _switch("background"),
    "stream": take_stream,
    "stream_options": take_stream_options,
    "truncation": _take_truncation,
    "metadata": take_metadata,
    "service_tier": take_service_tier,
    "safety_identifier": take_safety,
    "user": take_user,
    "prompt_cache_key": take_cache_label,
    "prompt_cache_options": _hint,
    "prompt_cache_retention": _hint,
    "image": _hint,
    "access_programs": _hint,
    "context_management": _take_compaction,
    "prompt": refused("is not supported: this gateway stores no prompt templates"),
    "n": refused("is not supported in Responses", lambda value: whole(value) == 1),
}
