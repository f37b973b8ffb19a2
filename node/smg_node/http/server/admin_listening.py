"""Admin listening: the listener of operators' routes, on a port of its own or a UNIX socket."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.server.connections import Listener
from smg_node.http.server.listen_sockets import UNIX, Listening, bound, listen

_LOOK_S: Final = 1.0
"""How long a process may take to accept a connection before nobody is said to listen."""


class TlsPort(Protocol):
    """Interface of what listens and shows certificates."""

    def connections_max(self) -> int:
        """Return how many connections the event loop has room for."""
        ...

    def listen(
        self, where: str, make: Callable[[], asyncio.Protocol], *, reuse_port: bool
    ) -> Listening:
        """Listen on `host:port`."""
        ...


@dataclass(slots=True)
class AdminListening:
    """A listener that is open, and where; `close` ends it, and removes the file of a socket."""

    server: Listening
    where: str
    file: tuple[int, int] | None = None
    """Device and inode of the socket's file."""

    @property
    def shown(self) -> str:
        """The address with the port that was really bound, or the socket's path behind `unix:`."""
        return self.where if self.where.startswith(UNIX) else str(bound(self.server))

    def close(self) -> None:
        """Listen no longer; safe to call twice."""
        self.server.close()
        if self.file is None:
            return
        path, self.file, ours = Path(self.where.removeprefix(UNIX)), None, self.file
        try:
            # Another process may have made a socket of its own there since.
            if _identity(path) == ours:
                path.unlink()
        except OSError:
            return


async def listen_for_operators(
    where: str, listener: Listener, tls: TlsPort | None
) -> AdminListening:
    """Listen on `host:port` or `unix:/path`; INTERNAL in an operator's words where that fails.

    `tls` makes a port show certificates; None for plain HTTP.
    """
    try:
        if where.startswith(UNIX):
            path = Path(where.removeprefix(UNIX))
            _refuse_if_used(path)
            server: Listening = await listen(where, listener, reuse_port=False)
            return AdminListening(server, where, _identity(path))
        if tls is None:
            return AdminListening(await listen(where, listener, reuse_port=False), where)
        listener.bound_connections(tls.connections_max())
        return AdminListening(tls.listen(where, listener, reuse_port=False), where)
    except OSError as error:
        reason = (error.strerror or str(error)).rpartition(": ")[2].lower()
        raise SmgError(
            ErrorKind.INTERNAL, f"http.admin_listen: cannot listen on {where}: {reason}"
        ) from error


def _refuse_if_used(path: Path) -> None:
    """Raise OSError where a process listens at `path`; a file that a killed one left is no reason."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_LOOK_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return
        except TimeoutError:
            pass
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), str(path))


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
