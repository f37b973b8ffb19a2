"""OpenAI errors: the OpenAI error envelope, for every route that has no dialect with another one."""

from typing import Any, Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
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
        "message": _message(error),
        "type": error_type(error.status),
        "param": error.where,
        "code": error.code,
    }


def _message(error: SmgError) -> str:
    if error.kind is ErrorKind.INTERNAL:
        return _OURS
    if error.code != TOO_LONG_CODE:
        return error.message
    return _about_context(error)


def _about_context(error: SmgError) -> str:
    """Return the words by which clients of this API know a prompt that is too long.

    Each looks for others: for `prompt is too long`, `This model's maximum context length is`, or, in a
    stream, `exceeds the context window`.
    """
    words = error.message
    if error.excess is None:
        known = (
            "maximum context length is" in words.lower() or "prompt is too long" in words.lower()
        )
        return words if known else f"prompt is too long: {words}"
    context = error.excess.context if error.excess.context is not None else error.excess.most
    return (
        f"{words}. This model's maximum context length is {context} tokens;"
        " your input exceeds the context window of this model."
    )


def error_body(error: SmgError) -> bytes:
    """Return the JSON envelope: `{"error": {…}}`."""
    return _encode({"error": error_object(error)})


def error_frame(error: SmgError) -> bytes:
    """Return the envelope as the last frame of an SSE stream; no `[DONE]` follows it."""
    return b"data: " + error_body(error) + b"\n\n"
