"""Vendor answer: what Bedrock says of the end of an answer and of its cost, and objects of JSON in it. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import FinishReason, Usage
from smg_node.dialects.worker_usage import tier_in

ANTHROPIC: Final = "anthropic"
BEDROCK: Final = "bedrock"
"""Issuers of opaque state: Anthropic for its models wherever they are, Bedrock for all others."""
SCHEMA_TOOL: Final = "smg_structured_answer"
"""Name of the tool whose arguments are the answer, where a model takes no schema for it."""
TOKENS_MAX: Final = 2**40
_LONG: Final = "1h"
_REASONS: Final[Mapping[str, FinishReason]] = {
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "model_context_window_exceeded": "context_window",
    "refusal": "refusal",
    "pause_turn": "pause",
}
"""All others are a good end."""
_MALFORMED: Final = "malformed_"
_decode: Final = msgspec.json.Decoder().decode


def object_of(data: bytes) -> dict[str, Any]:
    """Return the object of JSON that `data` is; UPSTREAM_FAILED if it is none."""
    try:
        said = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise broken("the vendor's answer is no JSON") from error
    if not isinstance(said, dict):
        raise broken("the vendor's answer is no object of JSON")
    return said


def part_of(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object under that name; an empty one for null."""
    value = said.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise broken("the vendor's answer has something else where an object belongs")
    return value


def text_of(value: object) -> str:
    """Return text; "" for null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise broken("the vendor's answer has something else where text belongs")
    return value


def reason_of(told: Mapping[str, Any], *, calls: bool) -> FinishReason:
    """Return why an answer ended, with calls in it or not. UPSTREAM_FAILED if it does not say, or is none at all."""
    said = told.get("stopReason")
    if not isinstance(said, str) or not said:
        raise broken("the vendor ended its answer without a reason")
    if said.startswith(_MALFORMED):
        raise broken("the vendor's model wrote an answer that cannot be read")
    reason = _REASONS.get(said, "stop")
    if reason in ("stop", "tool_calls"):
        return "tool_calls" if calls else "stop"
    return reason


def stop_string(told: Mapping[str, Any]) -> str | None:
    """Return the stop string that ended the answer, where the model names it."""
    fields = told.get("additionalModelResponseFields")
    said = fields.get("stop_sequence") if isinstance(fields, dict) else None
    return said if isinstance(said, str) and said else None


def usage_of(said: Mapping[str, Any]) -> Usage | None:
    """Return what an answer, or its `metadata`, says of its cost, None if it says nothing.

    The input is without what was read from or written to a cache.
    """
    told = said.get("usage")
    if not isinstance(told, dict):
        return None
    fresh, answer = _count(told, "inputTokens"), _count(told, "outputTokens")
    read, written = _count(told, "cacheReadInputTokens"), _count(told, "cacheWriteInputTokens")
    prompt = fresh + read + written
    if not (prompt or answer):
        return None
    details = told.get("cacheDetails")
    rows = [row for row in details if isinstance(row, dict)] if isinstance(details, list) else []
    long = sum(_count(row, "inputTokens") for row in rows if row.get("ttl") == _LONG)
    tier = tier_in(said.get("serviceTier"), "type")
    return Usage(prompt, answer, read, 0, written, min(long, written), tier)


def broken(message: str) -> SmgError:
    """Return the error for an answer that is none."""
    return SmgError(ErrorKind.UPSTREAM_FAILED, message)


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= TOKENS_MAX else 0
