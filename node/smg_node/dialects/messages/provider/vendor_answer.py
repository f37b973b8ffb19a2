"""Parts of a vendor's Messages answer that its listener and its judge both read: usage, reason, error. Pure.

    prompt     input_tokens + cache_read_input_tokens + cache_creation_input_tokens
    cached     cache_read_input_tokens
    written    cache_creation_input_tokens, or the sum of what `cache_creation` says; of it for an hour
               cache_creation.ephemeral_1h_input_tokens
    answer     output_tokens, with the thoughts in it
    thought    output_tokens_details.thinking_tokens; never more than the answer
    tier       service_tier
    tools      server_tool_use, as web_search_requests

`iterations` of a vendor that first summed up the conversation has what that cost, which is in no other number.
A stream says them twice. What `message_delta` says counts, and what it leaves out is what `message_start` said, but for
the length of the answer: at its start that means nothing.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import FinishReason, Usage
from smg_node.dialects.worker_errors import NO_WORDS, WorkerError, error_of
from smg_node.dialects.worker_usage import TOKENS_MAX, own_bill, tier_in, tools_in

_OF_ANSWER: Final = ("output_tokens", "output_tokens_details")
_REASONS: Final[Mapping[str, FinishReason]] = {
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "context_window",
}
_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Statuses that errors inside of a stream would have had."""
_decode: Final = msgspec.json.Decoder().decode


class UsageCounts:
    """Merges what the parts of an answer say of its tokens."""

    def __init__(self) -> None:
        self._told: dict[str, Any] = {}

    def take(self, usage: object, *, at_start: bool = False) -> None:
        """Take a `usage`, whatever it is; `at_start` is that of a message that has only begun."""
        if not isinstance(usage, dict):
            return
        for name, value in usage.items():
            if value is not None and not (at_start and name in _OF_ANSWER):
                self._told[name] = value

    def usage(self, prompt_tokens: int = 0, answer_tokens: int = 0) -> Usage | None:
        """Return all of it, with these numbers where nothing was said; None if nothing was said at all."""
        parts = [_counted(part) for part in (self._told, *_summaries(self._told))]
        prompt, answer, cached, thought, written, long = map(sum, zip(*parts, strict=True))
        if not (prompt or answer):
            return None
        return Usage(
            prompt or prompt_tokens,
            answer or answer_tokens,
            cached,
            thought,
            written,
            long,
            tier_in(self._told),
            tools_in(self._told),
            own_bill(self._told),
        )


def object_of(data: bytes) -> dict[str, Any]:
    """Return the object of an event or a body; UPSTREAM_FAILED for anything else, `WorkerError` for an error."""
    try:
        said = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise broken("the vendor's answer is no JSON") from error
    if not isinstance(said, dict):
        raise broken("the vendor's answer is no object of JSON")
    if said.get("type") == "error" or said.get("error"):
        raise _error_in(said)
    return said


def reason_of(said: Mapping[str, Any]) -> str:
    """Return the `stop_reason` of a message or a delta of it, "" for none; UPSTREAM_FAILED if it is no word."""
    reason = said.get("stop_reason")
    if reason is not None and not isinstance(reason, str):
        raise broken("the vendor's answer ended for a reason that is no word")
    return reason or ""


def finish_reason(reason: str, *, called: bool) -> FinishReason:
    """Return the reason for a vendor's word; a call that was made is one to be answered, whatever ended its turn."""
    found = _REASONS.get(reason, "stop")
    return "tool_calls" if found == "stop" and called else found


def broken(message: str) -> SmgError:
    """Return the error for an answer that is none."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)


def _counted(told: Mapping[str, Any]) -> tuple[int, int, int, int, int, int]:
    """Return prompt, answer, cached, thought, written, and written for an hour."""
    cached = _count(told, "cache_read_input_tokens")
    parts = told.get("cache_creation")
    long = _count(parts, "ephemeral_1h_input_tokens")
    if told.get("cache_creation_input_tokens") is None:
        written = long + _count(parts, "ephemeral_5m_input_tokens")
    else:
        written = _count(told, "cache_creation_input_tokens")
        long = min(long, written)
    answer = _count(told, "output_tokens")
    thought = min(_count(told.get("output_tokens_details"), "thinking_tokens"), answer)
    return _count(told, "input_tokens") + cached + written, answer, cached, thought, written, long


def _summaries(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the usages of passes that summed up the conversation."""
    passes = told.get("iterations")
    if not isinstance(passes, list):
        return []
    return [one for one in passes if isinstance(one, dict) and one.get("type") == "compaction"]


def _error_in(said: dict[str, Any]) -> WorkerError:
    found = error_of(said) or NO_WORDS
    error = said.get("error")
    kind = error.get("type") if isinstance(error, dict) else None
    kind = kind if isinstance(kind, str) else ""
    status = _STATUSES.get(kind, 0)
    code = kind if status else ""
    return WorkerError(found.status or status, found.message, found.code or code, found.param)


def _count(told: object, name: str) -> int:
    return _tokens(told.get(name)) if isinstance(told, dict) else 0


def _tokens(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= TOKENS_MAX else 0
