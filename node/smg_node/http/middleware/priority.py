"""Priority of a request: its class of work, from the header `x-smg-priority`, or from what a coding client says of it."""

from collections.abc import Mapping
from typing import Final

from smg_node.core.errors import invalid
from smg_node.core.request_context import PRIORITIES, Priority
from smg_node.http.message.http_request import Headers

HEADER: Final = "x-smg-priority"
CLASS_HEADER: Final = "x-claude-code-request-class"
_OF_CLASS: Final[Mapping[str, Priority]] = {
    "main": "interactive",
    "side_reply": "interactive",
    "auxiliary": "bulk",
}


def priority_of(headers: Headers, most: Priority) -> Priority:
    """Return the class that a client claims, `most` if it claims a more urgent one; INVALID_REQUEST
    for an unknown one. Without a claim, its client's own word for the request counts.
    """
    claimed = headers.get(HEADER, "").strip().lower()
    if not claimed:
        if CLASS_HEADER not in headers:
            return "default"
        claimed = _OF_CLASS.get(headers[CLASS_HEADER], "default")
    if claimed not in PRIORITIES:
        raise invalid(f"{HEADER} is one of {', '.join(PRIORITIES)}; got {claimed[:40]!r}", HEADER)
    level = max(PRIORITIES.index(claimed), PRIORITIES.index(most))
    return PRIORITIES[level]


def claimed_priority(headers: Headers) -> Priority | None:
    """Return the class that a client claims in so many words; None if it claims none, or none that there is."""
    claimed = headers.get(HEADER, "").strip().lower()
    return next((one for one in PRIORITIES if one == claimed), None)
