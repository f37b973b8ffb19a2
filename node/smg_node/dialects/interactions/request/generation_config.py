"""Generation config of an interaction: sampling, thinking, and the form of the answer."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.json_cursor import Cursor, kind_of
from smg_node.dialects.interactions.request.tool_parameters import take_tool_choice
from smg_node.dialects.openai.constraint import take_json_format, take_schema
from smg_node.dialects.openai.request_draft import Draft, Take, refused, take_all
from smg_node.dialects.openai.sampling import take_stop
from smg_node.dialects.openai.thinking import take_effort

# Engines keep lengths in 32 bits. Whatever is longer means "as long as fits" just the same.
_INT32_MAX: Final = 2**31 - 1
_JSON: Final = "application/json"
_MIME_TYPES: Final = (_JSON, "text/plain")
_FORMATS: Final = ("text", "image", "audio", "video")
_NOT_HERE: Final = "is not served here: answers are texts"


def take_config(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `generation_config`, which the answer repeats."""
    config = cursor.object(key)
    if config is not None:
        take_all(draft, config, _CONFIG)
        draft.view[key] = config.values


def _number(name: str, low: float, high: float, *, low_excluded: bool = False) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.number(key, low=low, high=high, low_excluded=low_excluded)
        draft.draw(name, value, cursor.path(key))

    return take


def _take_length(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.integer(key, low=1)
    if value is not None:
        draft.draw("max_tokens", min(value, _INT32_MAX), cursor.path(key))


def _take_seed(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.draw("seed", cursor.integer(key, low=-(2**63), high=2**63 - 1), cursor.path(key))


def _take_top_k(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.number(key, low=0, high=_INT32_MAX)
    if value:
        draft.draw("top_k", int(value), cursor.path(key))


def _take_stops(draft: Draft, cursor: Cursor, key: str) -> None:
    take_stop(draft, cursor, key)
    draft.spelled["stop"] = cursor.path(key)


def _take_level(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key) is not None:
        take_effort(draft, cursor, key)


def _take_summaries(draft: Draft, cursor: Cursor, key: str) -> None:
    word = cursor.word(key, ("auto", "none"))
    if word is not None:
        draft.request["shows_thoughts"] = word == "auto"


_CONFIG: Final[Mapping[str, Take]] = {
    "temperature": _number("temperature", 0, 2),
    "top_p": _number("top_p", 0, 1, low_excluded=True),
    "top_k": _take_top_k,
    "seed": _take_seed,
    "max_output_tokens": _take_length,
    "stop_sequences": _take_stops,
    "thinking_level": _take_level,
    "thinking_summaries": _take_summaries,
    "tool_choice": take_tool_choice,
    "presence_penalty": _number("presence_penalty", -2, 2),
    "frequency_penalty": _number("frequency_penalty", -2, 2),
    **{
        name: refused(_NOT_HERE)
        for name in ("image_config", "speech_config", "video_config", "transcription_config")
    },
}


def take_format(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `response_format`: a format, a list with one, or a bare schema, as it was once sent."""
    value = cursor.values[key]
    if type(value) is list:
        if len(value) != 1:
            why = f"must have one format, has {len(value)}: an answer has one form"
            cursor.unsupported(key, why)
            return
        form = cursor.element(key, 0, value[0])
    elif type(value) is dict:
        form = Cursor(value, cursor.problems, cursor, key)
    else:
        cursor.problem(key, f"must be an object or an array, not {kind_of(value)}", "invalid_type")
        return
    draft.view[key] = value
    if form is None:
        return
    if form.values.get("type") in _FORMATS:
        _take_one(draft, form)
    else:
        bare = Cursor({"response_format": form.values}, cursor.problems)
        take_schema(draft, bare, "response_format")


def _take_one(draft: Draft, form: Cursor) -> None:
    if form.values["type"] != "text":
        form.unsupported("type", _NOT_HERE)
        return
    form.only(("type", "mime_type", "schema"))
    mime_type = form.word("mime_type", _MIME_TYPES)
    if form.has("schema"):
        if mime_type == "text/plain":
            form.problem("schema", f"is only allowed with mime_type {_JSON!r}")
        take_schema(draft, form, "schema")
    elif mime_type == _JSON:
        take_json_format(draft, Cursor({}, form.problems), form.path())


def take_mime_type(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the old `response_mime_type`: without a schema any JSON object is wanted."""
    mime_type = cursor.word(key, _MIME_TYPES)
    if mime_type is None:
        return
    draft.view[key] = mime_type
    if mime_type == _JSON and not cursor.has("response_format"):
        take_json_format(draft, Cursor({}, cursor.problems), key)


def take_modalities(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `response_modalities`: answers are texts."""
    values: list[Any] = cursor.array(key) or []
    for index, value in enumerate(values):
        if value not in ("text", "TEXT"):
            cursor.problem(key, _NOT_HERE, "unsupported_parameter", index=index)
