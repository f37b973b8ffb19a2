"""Errors of the Interactions API: Google's envelope, whose words of status follow from the kind."""

from collections.abc import Mapping
from typing import Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.openai_errors import error_object

_WORDS: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.INVALID_REQUEST: "INVALID_ARGUMENT",
    ErrorKind.UNAUTHENTICATED: "UNAUTHENTICATED",
    ErrorKind.FORBIDDEN: "PERMISSION_DENIED",
    ErrorKind.NOT_FOUND: "NOT_FOUND",
    ErrorKind.CONFLICT: "ABORTED",
    ErrorKind.TOO_LARGE: "INVALID_ARGUMENT",
    ErrorKind.RATE_LIMITED: "RESOURCE_EXHAUSTED",
    ErrorKind.CLIENT_GONE: "CANCELLED",
    ErrorKind.INTERNAL: "INTERNAL",
    ErrorKind.UPSTREAM_FAILED: "UNAVAILABLE",
    ErrorKind.OVERLOADED: "UNAVAILABLE",
    ErrorKind.UPSTREAM_TIMEOUT: "DEADLINE_EXCEEDED",
}
_FAILED: Final = frozenset({TOO_LONG_CODE, "previous_interaction_not_found", "history_too_long"})
_NOT_IMPLEMENTED: Final = 501
_encode: Final = msgspec.json.Encoder().encode


class InteractionErrors:
    """Renders errors as `{"error": {"code", "message", "status"}}`."""

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status; what nothing here can do is no 501, which clients try again."""
        return 400 if error.status == _NOT_IMPLEMENTED else error.status

    def error_body(self, error: SmgError, _request_id: str) -> bytes:
        """Return the JSON envelope."""
        status = self.error_status(error)
        return _encode(
            {"error": {"code": status, "message": _message(error), "status": _word(error)}}
        )


def _word(error: SmgError) -> str:
    if error.code in _FAILED:
        return "FAILED_PRECONDITION"
    return "INVALID_ARGUMENT" if error.status == _NOT_IMPLEMENTED else _WORDS[error.kind]


def _message(error: SmgError) -> str:
    if error.code == TOO_LONG_CODE and error.excess is not None:
        return (
            f"The input token count ({error.excess.tokens}) exceeds the maximum number of tokens"
            f" allowed ({error.excess.most})."
        )
    message: str = error_object(error)["message"]
    return message
