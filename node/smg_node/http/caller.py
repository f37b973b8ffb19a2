"""Whose request this is, for the audit log."""

from typing import Final

from smg_node.http.request import HttpRequest
from smg_node.http.shared_ports import Caller

LOOPBACK: Final = "loopback"
"""As long as no key exists, only this machine may change anything."""
_SOCKET: Final = "unix socket"


def caller_of(request: HttpRequest) -> Caller:
    """Return who asks."""
    return Caller(LOOPBACK, request.peer or _SOCKET, request.request_id)
