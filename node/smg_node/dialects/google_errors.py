"""Errors of Google's APIs: status words beside the HTTP status, and details that their clients read.

    {"error": {"code": 400, "message": "…", "status": "INVALID_ARGUMENT", "details": […]}}

`BadRequest` names the place of a mistake, `RetryInfo` the time after which to ask again: clients that wait
by themselves look for it there and not in the headers.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import ErrorKind, SmgError

_INVALID: Final = "INVALID_ARGUMENT"
_WORDS: Final[Mapping[int, str]] = {
    400: _INVALID,
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_OURS: Final = "An internal error has occurred."
_BAD_REQUEST: Final = "type.googleapis.com/google.rpc.BadRequest"
_RETRY_INFO: Final = "type.googleapis.com/google.rpc.RetryInfo"
_RETRY_MAX_S: Final = 60.0
"""As the headers have it: some clients sleep for as long as they are told."""
_NOT_IMPLEMENTED: Final = 501
_encode: Final = msgspec.json.Encoder().encode


def google_status(error: SmgError) -> int:
    """Return the HTTP status: never 501, which Google's clients ask for again and again."""
    return 400 if error.status == _NOT_IMPLEMENTED else error.status


def status_word(status: int) -> str:
    """Return the word that goes with an HTTP status of 400 or more."""
    return _WORDS.get(status) or (_INVALID if status < 500 else "INTERNAL")


def error_object(error: SmgError) -> dict[str, Any]:
    """Return `code`, `message`, `status` and perhaps `details` of an error."""
    status = google_status(error)
    told = {"code": status, "message": _message(error), "status": status_word(status)}
    details = _details(error)
    return {**told, "details": details} if details else told


def error_body(error: SmgError) -> bytes:
    """Return the JSON envelope: `{"error": {…}}`."""
    return _encode({"error": error_object(error)})


def _message(error: SmgError) -> str:
    if error.kind is ErrorKind.INTERNAL:
        return _OURS
    if error.code == TOO_LONG_CODE and error.excess is not None:
        tokens, most = error.excess.tokens, error.excess.most
        return (
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed"
            f" ({most})."
        )
    return error.message


def _details(error: SmgError) -> list[dict[str, Any]]:
    details: list[dict[str, Any]] = []
    if error.where:
        violation = {"field": error.where, "description": error.message}
        details.append({"@type": _BAD_REQUEST, "fieldViolations": [violation]})
    if error.retry_after_s is not None:
        after_s = f"{min(max(error.retry_after_s, 0.0), _RETRY_MAX_S):.3f}".rstrip("0").rstrip(".")
        details.append({"@type": _RETRY_INFO, "retryDelay": f"{after_s}s"})
    return details
