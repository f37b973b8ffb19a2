"""Audit caller: the caller of a request as the audit log records it."""

from typing import Final

from smg_node.http.message.http_request import HttpRequest
from smg_node.http.ports.shared_state import Caller

LOOPBACK: Final = "loopback"
"""As long as no admin key exists, only this machine may change anything."""
_KEY: Final = "key"
_SOCKET: Final = "unix socket"


def caller_of(request: HttpRequest) -> Caller:
    """Return the caller: the id of a key, who showed a certificate, or this machine's operator."""
    identity = request.identity
    who = f"{_KEY}:{identity.key_id}" if identity.key_id else LOOPBACK
    if identity.subject:
        who = identity.subject
    return Caller(who, request.peer or _SOCKET, request.request_id)
