"""Listen sockets: a TCP port, on `[::]` of IPv6 and IPv4, or a UNIX socket that only this user may open."""

import asyncio
import errno
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from smg_node.config.address import Address, parse_address

UNIX: Final = "unix:"
"""What stands before the path of a UNIX socket."""
EVERY_FAMILY: Final = "::"
"""Every address of the machine, IPv6 and IPv4; `0.0.0.0` is IPv4 alone."""
_BACKLOG: Final = 2048
_ATTACH_FILTER: Final = 26
"""`SO_ATTACH_FILTER` of Linux's socket.h."""
_WITHOUT_SYN: Final = (
    (0x30, 0, 0, 13),  # the flags of the TCP header
    (0x45, 0, 1, 0x02),  # is SYN among them?
    (0x06, 0, 0, 0),  # then not a byte of it
    (0x06, 0, 0, 0xFFFFFFFF),  # else all
)
"""A program of the kernel's packet filter: code, jump if true, jump if false, number."""


async def listen(
    where: str, make: Callable[[], asyncio.Protocol], *, reuse_port: bool
) -> asyncio.Server:
    """Listen on `host:port` or `unix:/path`. OSError if it is taken, ValueError for an address that is none."""
    loop = asyncio.get_running_loop()
    if where.startswith(UNIX):
        raw = _unix_socket(Path(where.removeprefix(UNIX)))
        return await loop.create_unix_server(make, sock=raw, backlog=_BACKLOG)
    address = parse_address(where)
    if address.host == EVERY_FAMILY:
        both = _both_families(address.port, reuse_port=reuse_port)
        return await loop.create_server(make, sock=both, backlog=_BACKLOG)
    return await loop.create_server(
        make, address.host, address.port, backlog=_BACKLOG, reuse_port=reuse_port or None
    )


def tcp_sockets(where: str, *, reuse_port: bool) -> list[socket.socket]:
    """Return sockets that listen on `host:port`, one for each address that the host has here.

    OSError if one is taken, ValueError for an address that is none.
    """
    address = parse_address(where)
    if address.host == EVERY_FAMILY:
        return [_listening(_both_families(address.port, reuse_port=reuse_port))]
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    port = address.port
    try:
        found = socket.getaddrinfo(
            address.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _name, place in dict.fromkeys(found):
            try:
                raw = socket.socket(family, kind, protocol)
            except OSError as error:
                if error.errno != errno.EAFNOSUPPORT:
                    raise
                # A kernel without IPv6, whose file of hosts has an address of it all the same.
                missing = error
                continue
            sockets.append(raw)
            _share(raw, reuse_port=reuse_port)
            if family == socket.AF_INET6:
                raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            # Port 0: the second address of a host gets the port that the first one was given.
            bind(raw, (place[0], port, *place[2:]))
            port = port or raw.getsockname()[1]
            _listening(raw)
        if missing is not None and not sockets:
            raise missing
    except OSError:
        for raw in sockets:
            raw.close()
        raise
    return sockets


def leave_to_others(raw: socket.socket) -> None:
    """Let a listening socket take no new connections: the others of its port will have them.

    Closing it would reset those that are being made, which the kernel has given to it already. So it ignores the first packet of
    new ones, and its owner closes it when those before are through. Who is ignored asks again within a second. Linux only;
    nothing happens in a sandbox without packet filters.
    """
    if sys.platform != "linux":
        return
    # Half a megabyte, for a process that ends.
    import ctypes

    steps = b"".join(struct.pack("HBBI", *step) for step in _WITHOUT_SYN)
    code = ctypes.create_string_buffer(steps)
    program = struct.pack("HP", len(_WITHOUT_SYN), ctypes.addressof(code))
    # Whoever leaves leaves without it as well: a connection that is reset is less than a process that stays for ever.
    with suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


class Listening(Protocol):
    """A server that listens: the event loop's, or one of TLS."""

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Sockets it listens on."""
        ...

    def close(self) -> None:
        """Listen no longer; open connections go on."""
        ...


def bound(server: Listening) -> Address:
    """Return the address a server really listens on; of a UNIX socket, its path and no port."""
    name = server.sockets[0].getsockname()
    return Address(name, 0) if isinstance(name, str) else Address(*name[:2])


def serve_both_families(raw: socket.socket) -> None:
    """Let an IPv6 socket that is not bound yet serve IPv4 as well; event loops forbid that to theirs."""
    raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)


def _both_families(port: int, *, reuse_port: bool) -> socket.socket:
    """Return a socket on a port of all addresses; OSError in the words of the event loops."""
    raw = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        _share(raw, reuse_port=reuse_port)
        serve_both_families(raw)
        bind(raw, (EVERY_FAMILY, port))
    except OSError:
        raw.close()
        raise
    return raw


def _share(raw: socket.socket, *, reuse_port: bool) -> None:
    """Let a port be taken again at once, and by other processes of this node if they are to share it."""
    raw.setblocking(False)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse_port:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _listening(raw: socket.socket) -> socket.socket:
    raw.listen(_BACKLOG)
    return raw


def bind(raw: socket.socket, where: tuple[object, ...]) -> None:
    """Bind a socket; OSError in the words of the event loops, which name the address."""
    try:
        raw.bind(where)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        words = f"error while attempting to bind on address {where[:2]!r}: {reason}"
        raise OSError(error.errno, words) from error


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
