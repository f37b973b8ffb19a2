"""Forwardable headers: those of a request's head that servers of tools may be told, where an operator names them.

Never what lets a client in here, nor what belongs to one connection or to one body. Pure.
"""

from collections.abc import Mapping
from typing import Final

COOKIES: Final = frozenset({"cookie", "cookie2", "set-cookie"})
CONNECTION: Final = frozenset(
    {
        "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection",
        "proxy-authorization", "proxy-authenticate", "host", "expect", "http2-settings",
    }
)  # fmt: skip
"""What belongs to one connection: whoever says it for another one changes where a body ends, or what a proxy does."""
BODY: Final = frozenset(
    {"content-length", "content-type", "content-encoding", "accept", "accept-encoding", "range"}
)
"""What belongs to one body, and to the answer to it."""
_OURS: Final = COOKIES | CONNECTION | BODY | frozenset(
    {
        # What lets the client in here.
        "authorization", "x-api-key", "x-goog-api-key", "api-key", "x-amz-security-token", "x-amz-date",
        "x-amz-content-sha256",
        # What this request is about.
        "content-md5", "digest", "if-match", "if-none-match", "if-modified-since", "origin", "idempotency-key",
    }
)  # fmt: skip
_PREFIXES: Final = ("mcp-", "x-smg-", "sec-", "proxy-", ":")


def is_forwardable(name: str) -> bool:
    """Whether a header of that lower-case name may be told to a server."""
    return name not in _OURS and not name.startswith(_PREFIXES)


def forwardable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers, names in lower case, without those that stay here."""
    # What `connection` names belongs to this connection, too.
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    lowered = ((name.lower(), value) for name, value in headers.items())
    return {name: value for name, value in lowered if is_forwardable(name) and name not in named}
