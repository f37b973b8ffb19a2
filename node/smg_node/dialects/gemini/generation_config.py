"""Generation config: parameters of sampling, form of the answer, log probabilities, thinking."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Constraint, Effort, Thinking
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.gemini.schema import json_schema
from smg_node.dialects.gemini.spelling import both, names, spelled
from smg_node.dialects.openai.json_schema import check_schema
from smg_node.dialects.openai.request_draft import Draft, Take, refused, take_all
from smg_node.dialects.openai.sampling import TOKENS_MAX, take_stop

_LOGPROBS_MAX: Final = 20
_THINKING_KEYS: Final = names("includeThoughts", "thinkingBudget", "thinkingLevel")
_ADAPTIVE: Final = -1
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"
_ENUM: Final = "text/x.enum"
_LEVELS: Final[Mapping[str, Effort | None]] = {
    "THINKING_LEVEL_UNSPECIFIED": None,
    "MINIMAL": "minimal",
    "LOW": "low",
    "MEDIUM": "medium",
    "HIGH": "high",
    "XHIGH": "xhigh",
}
_encode: Final = msgspec.json.Encoder().encode


def take_generation_config(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `generationConfig`."""
    config = cursor.object(key)
    if config is None:
        return
    take_all(draft, config, _PARAMETERS)
    _settle_format(draft, config)
    _settle_logprobs(draft, config)


def _integer(name: str, low: int, high: int) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        draft.draw(name, cursor.integer(key, low=low, high=high), cursor.path(key))

    return take


def _number(name: str, low: float, high: float) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        draft.draw(name, cursor.number(key, low=low, high=high), cursor.path(key))

    return take


def _take_length(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.integer(key, low=1)
    if value is not None:
        draft.draw("max_tokens", min(value, TOKENS_MAX), cursor.path(key))


def _take_candidates(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.integer(key, low=1, high=draft.options.n_max)
    draft.draw("n", value, cursor.path(key))


def _take_top_p(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `topP`; 0 leaves the likeliest token alone, which engines know as `top_k` 1."""
    value = cursor.number(key, low=0, high=1)
    if value == 0:
        draft.draw("top_k", 1, cursor.path(key))
    else:
        draft.draw("top_p", value, cursor.path(key))


def _take_top_k(draft: Draft, cursor: Cursor, key: str) -> None:
    value = cursor.integer(key, low=0, high=TOKENS_MAX)
    if value is not None and "top_k" not in draft.sampling:
        draft.draw("top_k", value or -1, cursor.path(key))


def _take_stops(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.array(key) is not None:
        take_stop(draft, cursor, key)
        draft.spelled["stop"] = cursor.path(key)


def _take_modalities(_draft: Draft, cursor: Cursor, key: str) -> None:
    values = cursor.array(key)
    asked = values and cursor.elements(key, str, "a string", values)
    if any(each.upper() not in ("TEXT", "MODALITY_UNSPECIFIED") for each in asked or ()):
        cursor.unsupported(key, "only ['TEXT'] is supported: engines answer in text")


def _take_thinking(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `thinkingConfig`: whether thoughts are shown, and how much to think."""
    config = cursor.object(key)
    if config is None:
        return
    config.only(_THINKING_KEYS)
    if config.flag(spelled(config, "includeThoughts")):
        draft.view["thoughts"] = True
    budget = config.integer(spelled(config, "thinkingBudget"), low=_ADAPTIVE)
    effort = _level(config)
    said: dict[str, Any] = {} if effort is None else {"effort": effort}
    if budget == _ADAPTIVE:
        said["adaptive"] = True
    elif budget is not None:
        said["on"] = budget > 0
        if budget:
            said["budget"] = budget
    if said:
        draft.prompt["thinking"] = Thinking(where=cursor.path(key), **said)


def _level(config: Cursor) -> Effort | None:
    key = spelled(config, "thinkingLevel")
    level = config.text(key)
    if level is None or level.upper() in _LEVELS:
        return None if level is None else _LEVELS[level.upper()]
    known = ", ".join(repr(each) for each in _LEVELS)
    config.problem(key, f"must be one of {known}; got {quoted(level)}")
    return None


def _check_text(_draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.text(key)


def _check_flag(_draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.flag(key)


def _check_object(_draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.object(key)


def _hint(draft: Draft, cursor: Cursor, key: str) -> None:
    draft.ignore(cursor.path(key))


_PARAMETERS: Final[dict[str, Take]] = both(
    {
        "temperature": _number("temperature", 0, 2),
        "topP": _take_top_p,
        "topK": _take_top_k,
        "candidateCount": _take_candidates,
        "maxOutputTokens": _take_length,
        "stopSequences": _take_stops,
        "seed": _integer("seed", -(2**63), 2**63 - 1),
        "presencePenalty": _number("presence_penalty", -2, 2),
        "frequencyPenalty": _number("frequency_penalty", -2, 2),
        "thinkingConfig": _take_thinking,
        "responseModalities": _take_modalities,
        # Read together, when all of them were looked at.
        "responseMimeType": _check_text,
        "responseSchema": _check_object,
        "responseJsonSchema": _check_object,
        "responseLogprobs": _check_flag,
        "logprobs": _integer("logprobs", 0, _LOGPROBS_MAX),
        # What an engine has no part in.
        "mediaResolution": _hint,
        "audioTimestamp": _hint,
        "enableEnhancedCivicAnswers": _hint,
        "enableAffectiveDialog": _hint,
        "audioTranscriptionConfig": _hint,
        "speechConfig": refused("is not supported: engines answer in text"),
        "imageConfig": refused("is not supported: engines answer in text"),
    }
)


def _settle_format(draft: Draft, config: Cursor) -> None:
    """Make the constraint of the answer's type and schema."""
    mime_key = spelled(config, "responseMimeType")
    own, plain = spelled(config, "responseSchema"), spelled(config, "responseJsonSchema")
    mime = config.values.get(mime_key)
    key = own if config.has(own) else plain
    schema = config.values.get(key)
    if config.has(own) and config.has(plain):
        config.problem(plain, f"cannot be combined with {own}")
    elif type(mime) is str and mime not in (_JSON, _TEXT, _ENUM):
        known = f"{_JSON!r}, {_TEXT!r}, {_ENUM!r}"
        config.problem(
            mime_key, f"must be one of {known}; got {quoted(mime)}", "unsupported_parameter"
        )
    elif type(schema) is dict and mime in (None, _JSON):
        _constrain(draft, config, key, json_schema(schema) if key == own else schema)
    elif type(schema) is dict and mime == _ENUM:
        _choose(draft, config, key, schema.get("enum"))
    elif schema is not None and type(schema) is dict:
        config.problem(key, f"is only allowed when {mime_key} is {_JSON!r} or {_ENUM!r}")
    elif mime == _ENUM:
        config.problem(mime_key, f"{_ENUM!r} needs a responseSchema with an enum")
    elif mime == _JSON:
        draft.constraints.append(Constraint("json_object", "", config.path(mime_key), strict=False))


def _constrain(draft: Draft, config: Cursor, key: str, schema: dict[str, Any]) -> None:
    text = _encode(schema).decode()
    limit = draft.options.schema_max_bytes
    if len(text.encode()) > limit:
        config.problem(key, f"must have at most {limit} bytes")
        return
    check_schema(Cursor(schema, config.problems, config, key))
    draft.constraints.append(Constraint("json_schema", text, config.path(key)))


def _choose(draft: Draft, config: Cursor, key: str, choices: Any) -> None:
    """Make the constraint of an answer that is one of these texts."""
    if type(choices) is list and choices and all(type(each) is str for each in choices):
        draft.constraints.append(Constraint("choice", _encode(choices).decode(), config.path(key)))
    else:
        config.problem(key, "needs an enum of one or more strings")


def _settle_logprobs(draft: Draft, config: Cursor) -> None:
    wanted = config.values.get(spelled(config, "responseLogprobs")) is True
    key = "logprobs"
    if wanted:
        draft.sampling.setdefault("logprobs", 0)
    elif draft.sampling.get("logprobs") == 0:
        del draft.sampling["logprobs"]
    elif config.has(key) and type(draft.sampling.get("logprobs")) is int:
        config.problem(key, "is only allowed when responseLogprobs is true")
