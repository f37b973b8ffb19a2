"""Forwardable headers: those of a request's head that servers of tools may be told, where an operator names them.

Never what lets a client in here, nor what belongs to one connection or to one body. Pure.
"""

from collections.abc import Mapping
from typing import Final

_OURS: Final = frozenset(
    {
        # What lets the client in here.
        "authorization", "proxy-authorization", "proxy-authenticate", "x-api-key", "x-goog-api-key",
        "api-key", "cookie", "cookie2", "x-amz-security-token", "x-amz-date", "x-amz-content-sha256",
        # What belongs to this connection.
        "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection",
        "host", "expect", "http2-settings",
        # What belongs to this body, and to the answer to it.
        "content-length", "content-type", "content-encoding", "content-md5", "digest", "accept",
        "accept-encoding", "range", "if-match", "if-none-match", "if-modified-since", "origin",
        "idempotency-key",
    }
)  # fmt: skip
_PREFIXES: Final = ("mcp-", "x-smg-", "sec-", ":")


def forwardable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers, names in lower case, without those that stay here."""
    # What `connection` names belongs to this connection, too.
    named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
    lowered = ((name.lower(), value) for name, value in headers.items())
    return {
        name: value
        for name, value in lowered
        if name not in _OURS and name not in named and not name.startswith(_PREFIXES)
    }
