"""Priority of a request: its class of work, from the header `x-smg-priority`."""

from typing import Final

from smg_node.core.errors import invalid
from smg_node.core.request_context import PRIORITIES, Priority
from smg_node.http.message.http_request import Headers

HEADER: Final = "x-smg-priority"


def priority_of(headers: Headers, most: Priority) -> Priority:
    """Return the class that a client claims, `most` if it claims a more urgent one; INVALID_REQUEST
    for an unknown one.
    """
    if HEADER not in headers:
        return "default"
    claimed = headers[HEADER].strip().lower()
    if not claimed:
        return "default"
    if claimed not in PRIORITIES:
        raise invalid(f"{HEADER} is one of {', '.join(PRIORITIES)}; got {claimed[:40]!r}", HEADER)
    level = max(PRIORITIES.index(claimed), PRIORITIES.index(most))
    return PRIORITIES[level]
