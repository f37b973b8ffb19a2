"""Listen endpoints of a node's processes: a folder for their sockets, and the port they all listen
on.
"""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, Final

from smg_node.config.address import Address
from smg_node.http.server.listen_sockets import EVERY_FAMILY, bind, serve_both_families
from smg_node.processes.process_role import Place

_PATH_BYTES_MAX: Final = 90
"""The system takes 107 for the name of a UNIX socket."""


@contextmanager
def listen_endpoints(data_dir: Path, node: str, address: Address) -> Iterator[Place]:
    """Hold a folder and a port for the processes of a node; OSError with words if the port is taken.

    The folder is one of the data dir, or a passing one where its path is too long or another node has it.

    The socket that holds the port does not listen: it keeps others away, and a port that the system chose.
    """
    owner = os.getpid()
    folder = data_dir / "processes" / node
    lock = None
    if len(os.fsencode(folder)) <= _PATH_BYTES_MAX:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _locked(folder)
    passing = lock is None
    if passing:
        folder = Path(tempfile.mkdtemp(prefix="smg-"))
    try:
        with lock or nullcontext(), _held(address) as found:
            yield Place(folder, found)
    finally:
        # Processes forked inside end inside; the folder is that of the first one.
        if passing and os.getpid() == owner:
            rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> BinaryIO | None:
    """Return what holds `folder` until all processes of this node have closed it; None where another node has it.

    Two nodes of one name and data dir would take each other's sockets, and processes of one be linked to the other.
    """
    lock = open(folder / "lock", "ab")  # noqa: SIM115 - whoever asks for it closes it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    except OSError:
        # A file system without locks.
        return lock
    return lock


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
