"""Listen endpoints of a node's processes: a folder for their sockets, and the port they all listen
on.
"""

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Final

from smg_node.config.address import Address
from smg_node.http.server.listen_sockets import EVERY_FAMILY, bind, serve_both_families
from smg_node.processes.process_role import Place

_PATH_BYTES_MAX: Final = 90
"""The system takes 107 for the name of a UNIX socket."""


@contextmanager
def listen_endpoints(data_dir: Path, node: str, address: Address) -> Iterator[Place]:
    """Hold a folder and a port for the processes of a node; OSError with words if the port is taken.

    The socket that holds the port does not listen: it keeps others away, and a port that the system chose.
    """
    owner = os.getpid()
    folder = data_dir / "processes" / node
    passing = len(os.fsencode(folder)) > _PATH_BYTES_MAX
    if passing:
        folder = Path(tempfile.mkdtemp(prefix="smg-"))
    else:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with _held(address) as found:
            yield Place(folder, found)
    finally:
        # Processes forked inside end inside; the folder is that of the first one.
        if passing and os.getpid() == owner:
            rmtree(folder, ignore_errors=True)


@contextmanager
def _held(address: Address) -> Iterator[Address]:
    family, kind, protocol, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        if address.host == EVERY_FAMILY:
            serve_both_families(probe)
        # Sharing a port needs the word of all who share it, and gives it to any node of this user:
        # so first a look without it, which finds a process that listens there already.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bind(probe, where)
        port = probe.getsockname()[1]
    with socket.socket(family, kind, protocol) as holder:
        if address.host == EVERY_FAMILY:
            serve_both_families(holder)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bind(holder, (where[0], port, *where[2:]))
        yield Address(address.host, port)
