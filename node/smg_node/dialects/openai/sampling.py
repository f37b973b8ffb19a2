"""Sampling parameters that both OpenAI dialects share."""

import re
from typing import Any, Final

from smg_node.core.generation.request import Sampling
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.request_draft import Draft, Take, flag, integer, number

# Engines keep lengths in 32 bits. Whatever is longer means "as long as fits" just the same.
_INT32_MAX: Final = 2**31 - 1
TOKENS_MAX: Final = _INT32_MAX
_TOKEN_ID_MAX: Final = 2**32 - 1
_STOP_IDS_MAX: Final = 1_024
_TOP_LOGPROBS_MAX: Final = 20
_ID: Final = re.compile(r"[0-9]{1,10}\Z")


def take_max_tokens(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the length of an answer; `max_completion_tokens` wins over `max_tokens`."""
    value = cursor.integer(key, low=1)
    if value is None or (key == "max_tokens" and cursor.has("max_completion_tokens")):
        return
    draft.draw("max_tokens", min(value, _INT32_MAX), key)


def take_n(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the number of answers per prompt."""
    draft.draw("n", cursor.integer(key, low=1, high=draft.options.n_max), key)


def take_top_k(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `top_k`; 0 is an older way to say -1, off."""
    value = cursor.integer(key, low=-1, high=_INT32_MAX)
    draft.draw("top_k", -1 if value == 0 else value, key)


def take_stop(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take one stop string or several; each non-empty, doubles count once."""
    value = cursor.values[key]
    if type(value) is str:
        stops = [value]
    elif type(value) is list:
        stops = cursor.elements(key, str, "a string", value) or []
    else:
        cursor.problem(key, "must be a string or an array of strings", "invalid_type")
        return
    options = draft.options
    if len(stops) > options.stop_max:
        cursor.problem(key, f"must have at most {options.stop_max} elements, has {len(stops)}")
        return
    for index, stop in enumerate(stops):
        at = index if type(value) is list else None
        if not stop:
            cursor.problem(key, "must not be empty", index=at)
        elif len(stop.encode()) > options.stop_max_bytes:
            cursor.problem(key, f"must have at most {options.stop_max_bytes} bytes", index=at)
    draft.draw("stop", tuple(dict.fromkeys(stops)), key)


def take_stop_ids(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take ids that end an answer."""
    values = cursor.array(key, at_most=_STOP_IDS_MAX)
    ids = values and cursor.elements(key, int, "an integer", values)
    for index, token_id in enumerate(ids or ()):
        if not 0 <= token_id <= _TOKEN_ID_MAX:
            cursor.problem(key, "must be a token id", index=index)
    if ids:
        draft.draw("stop_token_ids", tuple(dict.fromkeys(ids)), key)


def take_logit_bias(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take a map of token ids, spelled as strings, to a bias of -100..100."""
    bias = cursor.object(key)
    if bias is None:
        return
    if len(bias.values) > draft.options.logit_bias_max:
        cursor.problem(key, f"must have at most {draft.options.logit_bias_max} entries")
        return
    biases: dict[int, float] = {}
    for spelled in bias.values:
        if not _ID.match(spelled) or int(spelled) > _TOKEN_ID_MAX:
            bias.problem(spelled, "the key must be a token id")
        elif bias.values[spelled] is None:
            bias.problem(spelled, "must be a number, not null", "invalid_type")
        else:
            biases[int(spelled)] = bias.number(spelled, low=-100, high=100) or 0.0
    draft.draw("logit_bias", biases, key)


def take_keep_stop(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take either spelling of "leave the stop string in the text"; two must agree."""
    value = cursor.flag(key)
    if value is not None and draft.sampling.setdefault("keep_stop", value) is not value:
        cursor.problem(key, "contradicts its synonym (no_stop_trim, include_stop_str_in_output)")
    if value is not None:
        draft.spelled["keep_stop"] = key


def take_lora(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take either spelling of the adapter's name; two must agree."""
    value = cursor.text(key, characters_min=1, characters_max=256)
    if value is not None and draft.sampling.setdefault("adapter", value) != value:
        cursor.problem(key, "contradicts its synonym (lora_path, lora_id)")
    if value is not None:
        draft.spelled["adapter"] = key


SAMPLING: Final[dict[str, Take]] = {
    "max_completion_tokens": take_max_tokens,
    "max_tokens": take_max_tokens,
    "temperature": number("temperature", 0, 2),
    "top_p": number("top_p", 0, 1, low_excluded=True),
    "top_k": take_top_k,
    "min_p": number("min_p", 0, 1),
    "frequency_penalty": number("frequency_penalty", -2, 2),
    "presence_penalty": number("presence_penalty", -2, 2),
    "repetition_penalty": number("repetition_penalty", 0, 2, low_excluded=True),
    "n": take_n,
    "seed": integer("seed", -(2**63), 2**63 - 1),
    "stop": take_stop,
    "stop_token_ids": take_stop_ids,
    "ignore_eos": flag("ignore_eos"),
    "min_tokens": integer("min_tokens", 0, _INT32_MAX),
    "no_stop_trim": take_keep_stop,
    "include_stop_str_in_output": take_keep_stop,
    "skip_special_tokens": flag("skip_special_tokens"),
    "spaces_between_special_tokens": flag("spaces_between_special_tokens"),
    "logit_bias": take_logit_bias,
    "prompt_logprobs": integer("prompt_logprobs", 0, _TOP_LOGPROBS_MAX),
    "lora_path": take_lora,
    "lora_id": take_lora,
}


def settle_sampling(draft: Draft, cursor: Cursor) -> None:
    """Check what depends on several sampling parameters."""
    drawn = draft.sampling
    limit: int | None = drawn.get("max_tokens")
    if limit is not None and drawn.get("min_tokens", 0) > limit:
        cursor.problem(
            "min_tokens", f"must be at most {draft.spelled.get('max_tokens', 'max_tokens')}"
        )
    if len(draft.constraints) > 1:
        first, second, *_ = draft.constraints
        cursor.problems.add(second.where, f"cannot be combined with {first.where}")
    elif draft.constraints:
        drawn["constraint"] = draft.constraints[0]
    if draft.view.get("token_ids"):
        draft.request["prompt_ids"] = True


def sampling_of(draft: Draft) -> Sampling:
    """Return the sampling options of a draft."""
    values: dict[str, Any] = draft.sampling
    if draft.spelled:
        return Sampling(**values, where=draft.spelled)
    return Sampling(**values)
