"""WebSocket handshake: checks of a request that asks for an upgrade. Pure.

The order is: credential and route (`middleware`), this, then 101. Whatever is refused is refused as
any other request is, with a status and the JSON envelope.

An upgrade is not under CORS: a browser lets any page ask. Where a node's data routes are open to
callers without a key, such a page would be one of them, so its origin must be allowed. So it must where
a certificate is all that a caller has: browsers show theirs for any page.

Source: RFC 6455, section 4.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import sha1
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.message.body_stream import OfferedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.route_table import UpgradeRequiredError

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_VERSION: Final = "13"
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})


def offers(request: HttpRequest) -> bool:
    """Return whether a request asks for a WebSocket."""
    headers = request.headers
    return (
        headers.get("upgrade", "").strip().lower() == "websocket" and "sec-websocket-key" in headers
    )


def no_socket_here(path: str) -> SmgError:
    """Return the error for an upgrade of a route that has none."""
    return invalid(f"there is no WebSocket at {path[:200]}", None, "no_websocket_here")


def check_handshake(request: HttpRequest, allowed_origins: Sequence[str]) -> None:
    """Refuse what is no handshake, or comes from a page that may not ask.

    INVALID_REQUEST with status 426 for a request that does not ask for a WebSocket of this version, 400 for one that
    asks wrongly; FORBIDDEN for the origin.
    """
    headers = request.headers
    tokens = [token.strip().lower() for token in headers.get("connection", "").split(",")]
    wanted = headers.get("upgrade", "").strip().lower() == "websocket" and "upgrade" in tokens
    if wanted and not _FRAMING.isdisjoint(name.lower() for name in headers):
        # Where such a body ends and frames begin, proxies might see otherwise than we do.
        raise invalid("an upgrade to WebSocket has no body", None, "invalid_handshake")
    # What the server has not read as an offer cannot be taken: what follows may have been read as requests.
    wanted = wanted and isinstance(request.body, OfferedBody)
    if request.method != "GET" or not request.head.http11 or not wanted:
        raise UpgradeRequiredError(
            f"{request.path[:200]} speaks WebSocket here: ask for an upgrade with GET over HTTP/1.1",
            {"upgrade": "websocket", "connection": "upgrade"},
        )
    if headers.get("sec-websocket-version", "").strip() != _VERSION:
        raise UpgradeRequiredError(
            f"WebSocket is spoken in version {_VERSION}", {"sec-websocket-version": _VERSION}
        )
    if not _is_key(headers.get("sec-websocket-key", "").strip()):
        raise invalid("sec-websocket-key must be 16 bytes in base64", None, "invalid_handshake")
    _check_origin(request, allowed_origins)


def accept_key(key: str) -> str:
    """Return the answer to a handshake's key."""
    return b64encode(sha1(key.encode("ascii") + _GUID, usedforsecurity=False).digest()).decode()


def _is_key(text: str) -> bool:
    try:
        return len(b64decode(text, validate=True)) == _KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def _check_origin(request: HttpRequest, allowed: Sequence[str]) -> None:
    origin, who = request.headers.get("origin"), request.identity
    if origin is None or "*" in allowed or origin in allowed:
        return
    if who.key_id and not who.subject.startswith("certificate:"):
        return
    raise SmgError(
        ErrorKind.FORBIDDEN,
        "pages of this origin may not open a socket here without a key; see http.cors_allowed_origins",
        code="origin_not_allowed",
    )
