"""Socket guard: admits the users of a UNIX socket by the word of the kernel, who is at the other end.

Whoever runs this process, and root, may do everything that the process itself may; a key of theirs would
prove no more. Others are refused although the file's mode keeps them out by itself: it may be changed.
"""

import os
import socket
import struct
from typing import Final

from smg_node.access.identity import Identity
from smg_node.core.access.permissions import Needed, Permission
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.middleware.authorization import Authorizing, credentials

_CREDENTIALS: Final = struct.Struct("iII")
"""Linux's `ucred`: process, user, group (unix(7), SO_PEERCRED)."""
_ROOT: Final = 0


class SocketGuard:
    """Authorizes requests that came by a UNIX socket. `usual` judges those that bring a key."""

    def __init__(self, usual: Authorizing) -> None:
        self._usual: Final = usual

    def admit(
        self, request: HttpRequest, needed: Needed, data: DataAccess, own: Permission | None = None
    ) -> Identity:
        """Return the caller: the owner of the key that was sent, or else this process's own user or root as an
        administrator. FORBIDDEN for any other user.
        """
        uid = peer_uid(request)
        if uid is None or uid not in (os.geteuid(), _ROOT):
            raise SmgError(
                ErrorKind.FORBIDDEN,
                "this socket answers to the user that the node runs as, and to root",
                code="socket_of_another_user",
            )
        if credentials(request.headers):
            return self._usual.admit(request, needed, data, own)
        return Identity("", "", "admin", subject=f"socket:uid={uid}")


def peer_uid(request: HttpRequest) -> int | None:
    """Return the user at the other end of a request's connection; None where the system does not tell."""
    transport = request.line.transport
    raw = None if transport is None else transport.get_extra_info("socket")
    option = getattr(socket, "SO_PEERCRED", None)
    if raw is None or option is None:
        return None
    try:
        found = raw.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    except OSError:
        return None
    uid: int = _CREDENTIALS.unpack(found)[1]
    return uid
