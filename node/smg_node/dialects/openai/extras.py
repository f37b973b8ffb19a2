"""Extras: parameters that do not change sampling: labels, hints, engine-specific and refused ones.

A hint without effect is named in the answer's headers (`Draft.ignore`). A parameter that would
change the meaning or the safety of the answer if it were dropped is refused, unless its value asks
for nothing.
"""

from typing import Any, Final

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.request_draft import OURS, Draft, Take, refused, shown

_LABEL_MAX: Final = 128
_KEY_MAX: Final = 256
_METADATA_KEY_MAX: Final = 64
_METADATA_VALUE_MAX: Final = 512
_TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")


def take_model(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the model's name."""
    draft.request["model"] = cursor.text(key, characters_min=1, characters_max=256)


def take_metadata(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take up to 16 labels, which the answer repeats."""
    labels = cursor.object(key)
    if labels is None:
        return
    limit = draft.options.metadata_max
    if len(labels.values) > limit:
        cursor.problem(key, f"must have at most {limit} entries, has {len(labels.values)}")
        return
    for name in labels.values:
        if len(name) > _METADATA_KEY_MAX:
            labels.problem(name, f"a key must have at most {_METADATA_KEY_MAX} characters")
        if labels.values[name] is None:
            labels.problem(name, "must be a string, not null", "invalid_type")
        labels.text(name, characters_max=_METADATA_VALUE_MAX)
    draft.view["metadata"] = labels.values


def take_service_tier(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `service_tier`; every tier is served as the default one, and the answer says so."""
    tier = cursor.word(key, _TIERS)
    if tier is not None:
        draft.view["service_tier"] = True
        if tier not in ("auto", "default"):
            draft.ignore(key)


def take_cache_key(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `prompt_cache_key`: requests that share it are best served by one worker."""
    draft.request["routing_key"] = cursor.text(key, characters_max=_KEY_MAX)


def take_store(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `store`; nothing is kept, which is what false asks for."""
    if cursor.flag(key):
        draft.ignore(key)


def take_truncate(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take how many last prompt tokens to keep; -1 means as many as fit."""
    value = cursor.integer(key, low=-1)
    if value == 0:
        cursor.problem(key, "must be -1 or at least 1; got 0")
    elif value is not None:
        draft.request["truncate_prompt_tokens"] = value


def take_best_of(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `best_of`: without a ranking it can only be as many as `n`."""
    value = cursor.integer(key, low=1)
    answers = cursor.values.get("n") or 1
    if value is not None and value != answers:
        cursor.unsupported(key, f"is only supported when it equals n, which is {answers}")


def _label(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key, characters_max=_LABEL_MAX) is not None:
        draft.ignore(key)


def _hint_object(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.object(key) is not None:
        draft.ignore(key)


def _hint_word(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key, characters_max=_LABEL_MAX) is not None:
        draft.ignore(key)


def _priority(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.integer(key, low=-(2**31), high=2**31 - 1) is not None:
        draft.ignore(key)


def _nothing(value: Any) -> bool:
    """Whether a value asks for nothing: false, 0, or empty."""
    return not value


def _one(value: Any) -> bool:
    return type(value) in (int, float) and value == 1


_GATEWAY: Final = refused(OURS)
_ENGINE: Final = refused("is not supported by the engines behind this gateway")
_ENGINE_UNLESS_EMPTY: Final = refused(
    "is not supported by the engines behind this gateway", _nothing
)
_ISOLATION: Final = refused("cannot be honoured: the engines' caches are not separated by it")

EXTRAS: Final[dict[str, Take]] = {
    "model": take_model,
    "metadata": take_metadata,
    "service_tier": take_service_tier,
    "store": take_store,
    "truncate_prompt_tokens": take_truncate,
    # Hints to whom or where; the key is the only one with an effect.
    "prompt_cache_key": take_cache_key,
    "prompt_cache_options": _hint_object,
    "prompt_cache_retention": _hint_word,
    "user": _label,
    "safety_identifier": _label,
    "rid": _label,
    "request_id": _label,
    "session_id": _label,
    "session_params": _ENGINE_UNLESS_EMPTY,
    "priority": _priority,
    "mm_processor_kwargs": _hint_object,
    "media_io_kwargs": _hint_object,
    "prediction": _hint_object,
    # A hosted tool: the model may use it, and need not.
    "web_search_options": _hint_object,
    # What the answer shows.
    "return_token_ids": shown("token_ids"),
    "return_tokens_as_token_ids": shown("tokens_as_ids"),
    # Not without changing what the answer means.
    "moderation": refused("cannot be honoured here, and a safety check is never dropped silently"),
    "return_hidden_states": _ENGINE_UNLESS_EMPTY,
    "bad_words": _ENGINE_UNLESS_EMPTY,
    "allowed_token_ids": _ENGINE,
    "logits_processors": _ENGINE_UNLESS_EMPTY,
    "custom_logit_processor": _ENGINE_UNLESS_EMPTY,
    "custom_params": _ENGINE_UNLESS_EMPTY,
    "best_of": take_best_of,
    "use_beam_search": _ENGINE_UNLESS_EMPTY,
    "length_penalty": refused("only works with beam search, which is not supported", _one),
    "thinking_token_budget": _ENGINE,
    "cache_salt": _ISOLATION,
    "extra_key": _ISOLATION,
    "kv_transfer_params": _GATEWAY,
    "data_parallel_rank": _GATEWAY,
    "input_embeds": refused("is not supported: engines are only sent token ids"),
    "prompt_embeds": refused("is not supported: engines are only sent token ids"),
}
