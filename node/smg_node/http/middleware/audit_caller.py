"""Audit caller: the caller of a request as the audit log records it."""

from typing import Final

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.shared_state import Caller

LOOPBACK: Final = "loopback"
"""As long as no admin key exists, only this machine may change anything."""
_KEY: Final = "key"
_SOCKET: Final = "unix socket"


def caller_of(request: HttpRequest) -> Caller:
    """Return the caller: the id of a key, or this machine's operator."""
    key_id = request.identity.key_id
    who = f"{_KEY}:{key_id}" if key_id else LOOPBACK
    return Caller(who, request.peer or _SOCKET, request.request_id)
