"""Answer facts: how a response ended, what it cost, and which error it is instead, as vendors say it. Pure.

prompt     input_tokens
answer     output_tokens; what the prompt leaves of the total, where that is more
thought    output_tokens_details.reasoning_tokens
cached     input_tokens_details.cached_tokens, written: .cache_write_tokens
tier       service_tier of the response
tools      items that are calls of the vendor's own tools, as web_search_call
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.events import FinishReason, Usage
from smg_node.dialects.openai.provider.answer_values import broken, object_at, string_at
from smg_node.dialects.worker_errors import NO_WORDS, WorkerError, error_of
from smg_node.dialects.worker_usage import own_bill, tier_in, worker_usage

WHOLE: Final = ("completed", "incomplete")
TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_REASONS: Final[Mapping[str, FinishReason]] = {"content_filter": "content_filter"}
"""Reasons of incomplete responses; of any other the answer was cut."""
_STATUSES: Final = {
    "server_error": 500,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "bio_policy": 400,
    "cyber_policy": 400,
    "misalignment_policy_violation": 400,
    "data_residency_mismatch": 400,
    "model_not_found": 404,
    "vector_store_timeout": 504,
    "failed_to_download_image": 400,
    "image_file_not_found": 400,
    "image_file_too_large": 400,
    "image_too_large": 400,
    "image_too_small": 400,
    "image_parse_error": 400,
    "image_content_policy_violation": 400,
    "unsupported_image_media_type": 400,
    "empty_image_file": 400,
}
"""Statuses that errors inside of an answer would have had."""
_INVALID: Final = "invalid_"
_CALL: Final = "_call"
_CLIENTS: Final = frozenset({"function", "custom_tool", "computer", "local_shell", "apply_patch"})
"""Tools whose calls the client answers: nobody is billed for them."""


def finish_of(response: Mapping[str, Any]) -> FinishReason:
    """Return why a whole response ended; UPSTREAM_FAILED if it is not whole."""
    status = response.get("status", "completed")
    if status == "completed":
        return "stop"
    if status != "incomplete":
        raise broken("the vendor ended its answer before the end of it")
    return _REASONS.get(string_at(response, "incomplete_details", "reason"), "length")


def usage_of(response: Mapping[str, Any]) -> Usage | None:
    """Return what a response cost; None if it does not say so."""
    told = object_at(response, "usage")
    used = worker_usage(
        {
            "prompt_tokens": told.get("input_tokens"),
            "completion_tokens": told.get("output_tokens"),
            "total_tokens": told.get("total_tokens"),
            "prompt_tokens_details": told.get("input_tokens_details"),
            "completion_tokens_details": told.get("output_tokens_details"),
        }
    )
    if not (used.prompt or used.answer):
        return None
    return Usage(
        used.prompt,
        used.answer,
        used.cached,
        used.thought,
        used.written,
        used.written_long,
        tier_in(response),
        _tools_in(response.get("output")),
        own_bill(told),
    )


def _tools_in(output: object) -> tuple[tuple[str, int], ...]:
    """Return how often the vendor ran which of its own tools, sorted."""
    found: dict[str, int] = {}
    for item in output if isinstance(output, list) else ():
        kind = string_at(item, "type") if isinstance(item, dict) else ""
        tool = kind.removesuffix(_CALL)
        if kind.endswith(_CALL) and tool not in _CLIENTS:
            found[tool] = found.get(tool, 0) + 1
    return tuple(sorted(found.items()))


def error_in(said: Mapping[str, Any], kind: str) -> WorkerError | None:
    """Return the error that an event, or the body of an answer, is; None if it is none."""
    if kind == "response.failed":
        said = object_at(said, "response")
        return _error({"error": said.get("error") or {"message": ""}})
    if kind == "error":
        # The words stand in the event itself, or in an object of their own.
        inside = said.get("error")
        return _error({"error": inside if isinstance(inside, dict) else {**said, "type": ""}})
    if said.get("error"):
        return _error(said)
    return error_of(said) if said.get("object") == "error" else None


def _error(said: Mapping[str, Any]) -> WorkerError:
    found = error_of(dict(said)) or NO_WORDS
    error = object_at(said, "error")
    kind = found.code or string_at(error, "type")
    status = _STATUSES.get(kind, 400 if kind.startswith(_INVALID) else 0)
    code = found.code or (kind if status else "")
    return WorkerError(found.status or status or 500, found.message, code, found.param)
