"""Errors of Messages: status, envelope and words, as clients of this API know them.

The envelope has no place for a path, so the message begins with it, spelled as this API spells paths:
`messages.2.content.0.text: must be a string`. A client's exception is chosen by status and `error_code`.
"""

import re
from typing import Any, Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import ErrorKind, SmgError

_TYPES: Final = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OVERLOADED: Final = 529
"""Status of this API for work that there is too much of."""
_FULL: Final = frozenset({"overloaded", "queue_full", "queue_timeout"})
"""Codes of errors that say so; others of their kind say that nobody is there to do it."""
_KNOWN: Final = frozenset(
    {
        "compaction_block_ambiguous",
        "compaction_block_misplaced",
        "compaction_content_mismatch",
        "compaction_incomplete_turn",
        "compaction_nothing_to_summarize",
        "compaction_signature_invalid",
        "compaction_too_many_tool_references",
        "compaction_tool_changes_mismatch",
        "compaction_unavailable",
        "file_expired",
        "image_dimensions_too_large",
        "thread_already_continued",
        "thread_continue_in_flight",
        "thread_fingerprint_mismatch",
        "thread_not_found",
        "thread_unsupported_request",
        "tool_name_conflict",
        "tool_reference_unresolved",
    }
)
"""Codes for which the official client has an exception of its own, as far as a generation may fail so."""
_OURS: Final = "The server had an error while processing the request."
_TOO_LONG: Final = "prompt is too long"
_INDEX: Final = re.compile(r"\[(\d+)\]")
# A path where a message tells of one: at its beginning, or at that of one of several problems.
_PATH: Final = re.compile(r"(?:(?<=: )|(?<=; )|^)[A-Za-z_][\w.-]*(?:\[\d+\][\w.-]*)+(?=[: ])")
_encode: Final = msgspec.json.Encoder().encode


def status_of(error: SmgError) -> int:
    """Return the HTTP status of an error."""
    if error.kind is ErrorKind.OVERLOADED and error.code in _FULL:
        return OVERLOADED
    return error.status


def error_type(status: int) -> str:
    """Return the `type` that goes with an HTTP status of 400 or more."""
    return _TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")


def error_body(error: SmgError, request_id: str) -> bytes:
    """Return the JSON envelope."""
    told: dict[str, Any] = {"type": error_type(status_of(error)), "message": message_of(error)}
    if error.code in _KNOWN:
        told["details"] = {"error_code": error.code}
    return _encode({"type": "error", "error": told, "request_id": request_id})


def error_frame(error: SmgError, request_id: str) -> bytes:
    """Return the envelope as the last event of a stream."""
    return b"event: error\ndata: " + error_body(error, request_id) + b"\n\n"


def message_of(error: SmgError) -> str:
    """Return what a client is told: nothing of our own mistakes, and of a prompt that is too long the words
    at which it sums up the conversation.
    """
    if error.kind is ErrorKind.INTERNAL:
        return _OURS
    if error.code == TOO_LONG_CODE:
        excess = error.excess
        if excess is not None:
            return f"{_TOO_LONG}: {excess.tokens} tokens > {excess.most} maximum"
        return error.message if _TOO_LONG in error.message else f"{_TOO_LONG}: {error.message}"
    message = _PATH.sub(lambda found: spelled(found.group()), error.message)
    path = spelled(error.where or "")
    told = message.startswith((f"{path} ", f"{path}: ")) or f" {path}: " in message
    return message if told or not path else f"{path}: {message}"


def spelled(path: str) -> str:
    """Return a JSON path as this API spells it: `messages.2.content` for `messages[2].content`."""
    return _INDEX.sub(r".\1", path)
