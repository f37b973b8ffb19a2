"""OpenAI errors: the OpenAI error envelope, for every route that has no dialect with another one."""

from typing import Any, Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError

# What a client reads when we are wrong; the details are in our log, not in the answer.
_OURS: Final = "The server had an error while processing the request."
_encode: Final = msgspec.json.Encoder().encode


def error_type(status: int) -> str:
    """Return the `type` that goes with an HTTP status of 400 or more."""
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def error_object(error: SmgError) -> dict[str, Any]:
    """Return `message`, `type`, `param` and `code` of an error."""
    return {
        "message": _OURS if error.kind is ErrorKind.INTERNAL else error.message,
        "type": error_type(error.status),
        "param": error.where,
        "code": error.code,
    }


def error_body(error: SmgError) -> bytes:
    """Return the JSON envelope: `{"error": {…}}`."""
    return _encode({"error": error_object(error)})


def error_frame(error: SmgError) -> bytes:
    """Return the envelope as the last frame of an SSE stream; no `[DONE]` follows it."""
    return b"data: " + error_body(error) + b"\n\n"
