"""Listen sockets: a TCP port, or a UNIX socket that only this user may open."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from smg_node.config.address import Address, parse_address

UNIX: Final = "unix:"
"""What stands before the path of a UNIX socket."""
_BACKLOG: Final = 2048


async def listen(
    where: str, make: Callable[[], asyncio.Protocol], *, reuse_port: bool
) -> asyncio.Server:
    """Listen on `host:port` or `unix:/path`. OSError if it is taken, ValueError for an address that is none."""
    loop = asyncio.get_running_loop()
    if where.startswith(UNIX):
        raw = _unix_socket(Path(where.removeprefix(UNIX)))
        return await loop.create_unix_server(make, sock=raw, backlog=_BACKLOG)
    address = parse_address(where)
    return await loop.create_server(
        make, address.host, address.port, backlog=_BACKLOG, reuse_port=reuse_port or None
    )


def bound(server: asyncio.Server) -> Address:
    """Return the address a server really listens on; of a UNIX socket, its path and no port."""
    name = server.sockets[0].getsockname()
    return Address(name, 0) if isinstance(name, str) else Address(*name[:2])


def _unix_socket(path: Path) -> socket.socket:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        # What a process left behind that was killed: binding would fail for ever.
        path.unlink()
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        raw.bind(str(path))
        # Nobody can connect before it listens, so there is no moment at which others may.
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    except OSError:
        raw.close()
        raise
    return raw
