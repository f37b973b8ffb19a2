"""HTTP headers of MCP requests, and the spelling of values that a header cannot hold as they are. Pure."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from smg_node.mcp.revisions import NAME_PARAMETERS, Revision

SESSION_ID: Final = "mcp-session-id"
VERSION: Final = "mcp-protocol-version"
LAST_EVENT_ID: Final = "last-event-id"
PARAMETER_PREFIX: Final = "mcp-param-"
POST_HEADERS: Final[Mapping[str, str]] = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}
GET_HEADERS: Final[Mapping[str, str]] = {"accept": "text/event-stream"}
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]*")
_LOOKS_ENCODED: Final = re.compile(r"=\?base64\?.*\?=", re.IGNORECASE)
_SESSION_ID: Final = re.compile(r"[\x21-\x7e]{1,1024}")


def header_value(value: str) -> str:
    """Return a value as it stands in a header: itself if it is printable ASCII without blanks around it, else base64."""
    if (
        _PRINTABLE.fullmatch(value)
        and value == value.strip()
        and not _LOOKS_ENCODED.fullmatch(value)
    ):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def session_id_of(value: str) -> str | None:
    """Return a session id that may be sent back, None for one that no header could hold."""
    return value if _SESSION_ID.fullmatch(value) else None


def request_headers(
    revision: Revision,
    method: str,
    params: Mapping[str, Any],
    mirrored: Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return the headers of a request or notification that its revision wants, beside those of HTTP itself.

    `mirrored` are tokens and values of arguments that stand in headers too. `initialize` agrees on a revision, and so
    names none.
    """
    headers = dict(POST_HEADERS)
    if revision.version_header and method != "initialize":
        headers[VERSION] = revision.name
    if revision.modern:
        headers["mcp-method"] = method
        named = params.get(NAME_PARAMETERS.get(method, ""))
        if isinstance(named, str):
            headers["mcp-name"] = header_value(named)
        headers.update((PARAMETER_PREFIX + token.lower(), value) for token, value in mirrored)
    return headers
