"""Errors of the Interactions API: Google's envelope, with its own word where the state of a history is in the way."""

from typing import Final

import msgspec

from smg_node.core.context_limit import TOO_LONG_CODE
from smg_node.core.errors import SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.dialects.google_errors import error_object, google_status

_UNMET: Final = "FAILED_PRECONDITION"
_ABOUT_STATE: Final = frozenset(
    {TOO_LONG_CODE, "previous_interaction_not_found", "history_too_long"}
)
_encode: Final = msgspec.json.Encoder().encode


class InteractionErrors:
    """Renders errors as `{"error": {"code", "message", "status"}}`."""

    def error_status(self, error: SmgError) -> int:
        """Return the HTTP status; what nothing here can do is no 501, which clients try again."""
        return google_status(error)

    def error_body(self, error: SmgError, _request_id: str) -> bytes:
        """Return the JSON envelope."""
        told = error_object(error)
        if error.code in _ABOUT_STATE:
            told["status"] = _UNMET
        return _encode({"error": told})


def unknown_event(spelled: str) -> SmgError:
    """Return the error for an event that the stream of an interaction does not have."""
    return invalid(f"last_event_id: this stream has no event {quoted(spelled)}", "last_event_id")
