"""Parameters of a Messages body that stand alone: lengths, sampling, labels, and what is refused."""

import re
from hashlib import blake2b
from typing import Any, Final

import msgspec

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.request.context_edits import read_edits
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.openai.constraint import CONSTRAINTS
from smg_node.dialects.openai.extras import EXTRAS
from smg_node.dialects.openai.request_draft import Draft, Take, refused
from smg_node.dialects.openai.sampling import SAMPLING, TOKENS_MAX
from smg_node.dialects.openai.template_variables import take_kwargs, take_verbosity

_USER_MAX: Final = 1_024
_LABEL_MAX: Final = 1_024
_TIERS: Final = ("auto", "standard_only")
_KEY_BYTES: Final = 16
_OLDER_SESSION: Final = re.compile(r"_session_([0-9a-fA-F-]{36})\Z")


class _User(msgspec.Struct):
    session_id: str


_user: Final = msgspec.json.Decoder(_User).decode


def take_max_tokens(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the length of an answer; 0 asks for the prompt to be read only, which takes one token."""
    value = cursor.integer(key, low=0)
    if value is None:
        return
    if value == 0:
        draft.view["silent"] = True
    draft.draw("max_tokens", min(max(value, 1), TOKENS_MAX), key)


def take_stop_sequences(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the texts that end an answer; each non-empty, doubles count once."""
    options = draft.options
    values = cursor.array(key, at_most=options.stop_max)
    stops = values and cursor.elements(key, str, "a string", values)
    for index, stop in enumerate(stops or ()):
        if not stop:
            cursor.problem(key, "must not be empty", index=index)
        elif len(stop.encode("utf-8", "replace")) > options.stop_max_bytes:
            cursor.problem(key, f"must have at most {options.stop_max_bytes} bytes", index=index)
    if stops:
        draft.draw("stop", tuple(dict.fromkeys(stops)), key)


def take_stream(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `stream`."""
    draft.request["stream"] = cursor.flag(key) or False


def take_metadata(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `metadata`: requests of one session are best served by one worker.

    What is kept of the user is a digest: it names a person or a device.
    """
    metadata = cursor.object(key)
    if metadata is None:
        return
    metadata.only(("user_id",))
    user = metadata.text("user_id", characters_max=_USER_MAX)
    if user:
        said = _session_in(user).encode("utf-8", "replace")
        draft.request["routing_key"] = blake2b(said, digest_size=_KEY_BYTES).hexdigest()


def _session_in(user: str) -> str:
    """Return the session that a user's name tells of; all of the name without one."""
    if user.startswith("{"):
        try:
            return _user(user).session_id or user
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return user
    found = _OLDER_SESSION.search(user)
    return user if found is None else found.group(1)


def take_service_tier(_draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `service_tier`; every tier is served as the standard one, and the answer says so."""
    cursor.word(key, _TIERS)


def take_cache_control(_draft: Draft, cursor: Cursor, _key: str) -> None:
    """Take `cache_control`, which asks for what engines do by themselves."""
    check_cache_control(cursor)


def take_context_management(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take `context_management`; the edits are made when the history is read."""
    draft.edits = read_edits(cursor, key)


def take_diagnostics(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `diagnostics`: why a cache was missed is not known here, and the answer says so."""
    if cursor.object(key) is not None:
        draft.view["diagnosed"] = True


def take_servers(draft: MessagesDraft, cursor: Cursor, key: str) -> None:
    """Take `mcp_servers`; where this node runs no tools, none is asked."""
    if draft.options.tool_servers:
        draft.asked_tools().take_servers(cursor, key)
    elif cursor.array(key):
        cursor.problem(key, "tools of MCP servers are not served here", "unsupported_tool")


def read_later(_draft: Draft, _cursor: Cursor, _key: str) -> None:
    """Leave a parameter to the settling of all: it depends on others."""


def _label(_draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.text(key, characters_max=_LABEL_MAX)


def _object(_draft: Draft, cursor: Cursor, key: str) -> None:
    cursor.object(key)


def _word(*words: str) -> Take:
    def take(_draft: Draft, cursor: Cursor, key: str) -> None:
        cursor.word(key, words)

    return take


def _text_or(wanted: type, name: str) -> Take:
    def take(_draft: Draft, cursor: Cursor, key: str) -> None:
        value: Any = cursor.values[key]
        if type(value) not in (str, wanted):
            cursor.problem(key, f"must be a string or {name}", "invalid_type")

    return take


def _of(table: dict[str, Take], *names: str) -> dict[str, Take]:
    return {name: table[name] for name in names}


STANDING_ALONE: Final[dict[str, Any]] = {
    "model": EXTRAS["model"],
    "max_tokens": take_max_tokens,
    "stop_sequences": take_stop_sequences,
    "stream": take_stream,
    "metadata": take_metadata,
    "service_tier": take_service_tier,
    "cache_control": take_cache_control,
    "context_management": take_context_management,
    "diagnostics": take_diagnostics,
    "mcp_servers": take_servers,
    # Accepted, without effect: they say who pays, where, or what to do if a policy refuses.
    "speed": _word("standard", "fast"),
    "inference_geo": _label,
    "user_profile_id": _label,
    "workspace_id": _label,
    "billing_policy": _object,
    "fallbacks": _text_or(list, "an array"),
    "fallback_credit_token": _text_or(dict, "an object"),
    "compaction": refused("is not supported: this gateway sums up no conversations"),
    "container": refused("is not supported: this gateway executes no code"),
    "skills": refused("is not supported: this gateway executes no code"),
    # The engines' own.
    **_of(SAMPLING, "temperature", "top_p", "top_k", "min_p", "seed", "ignore_eos", "min_tokens"),
    **_of(SAMPLING, "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias"),
    **_of(SAMPLING, "stop_token_ids", "no_stop_trim", "include_stop_str_in_output"),
    **_of(SAMPLING, "skip_special_tokens", "spaces_between_special_tokens"),
    **_of(SAMPLING, "lora_path", "lora_id"),
    **{name: take for name, take in CONSTRAINTS.items() if name != "response_format"},
    **_of(EXTRAS, "priority", "cache_salt", "extra_key", "rid", "request_id", "session_id"),
    **_of(EXTRAS, "session_params", "mm_processor_kwargs", "media_io_kwargs", "prompt_cache_key"),
    **_of(EXTRAS, "bad_words", "allowed_token_ids", "logits_processors", "use_beam_search"),
    **_of(EXTRAS, "custom_logit_processor", "custom_params", "thinking_token_budget"),
    **_of(EXTRAS, "kv_transfer_params", "data_parallel_rank", "input_embeds", "prompt_embeds"),
    **_of(EXTRAS, "truncate_prompt_tokens", "length_penalty"),
    "chat_template_kwargs": take_kwargs,
    "verbosity": take_verbosity,
}
"""Every parameter that needs no other one, and the function that takes it."""
