"""Namespaces of the network, by system calls: made, entered, given an interface; no tool needed and
nothing named.

A namespace here has no name in the file system. It lives as long as a process is inside it or holds
it open, so whatever way the lab ends, SIGKILL included, the kernel takes all of it away: there are
no leftovers to find.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

INTERFACE: Final = "mesh0"
MTU: Final = 1500
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_CLONE_NEWNS: Final = 0x00020000
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
_SET_DEATH_SIGNAL: Final = 1
_TUNSETIFF: Final = 0x400454CA
_TAP, _NO_PACKET_HEADER, _UP = 0x0002, 0x1000, 0x1
_SET_FLAGS, _SET_ADDRESS, _SET_NETMASK = 0x8914, 0x8916, 0x891C
_SET_HARDWARE, _SET_NEIGHBOUR = 0x8924, 0x8955
_ETHERNET: Final = 1
_COMPLETE, _PERMANENT = 0x02, 0x04
_NETMASK: Final = "255.255.0.0"


class NamespaceError(Exception):
    """The kernel refuses to make a network namespace; the message is one line that says why."""


@dataclass(frozen=True, slots=True)
class Plug:
    """One end of the network: a place's hardware address, its IPv4 addresses, and its name."""

    name: str
    hardware: bytes
    addresses: tuple[str, ...]


def become_root() -> None:
    """Become root of new namespaces, which needs no privilege where user namespaces are allowed.

    The process must have one thread. Root stays what it is.
    """
    user, group = os.geteuid(), os.getegid()
    if user:
        _call("unshare", _CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def leave_network() -> None:
    """Move this thread into a new and empty network namespace."""
    _call("unshare", _CLONE_NEWNET)


def leave_mounts() -> None:
    """Give this process a mount namespace of its own: what it mounts from then on is invisible
    outside.
    """
    _call("unshare", _CLONE_NEWNS, made="mounts of one's own")
    _call("mount", None, b"/", None, _PRIVATE | _RECURSIVE, None, made="mounts of one's own")


def mounted(folder: Path, size_bytes: int) -> None:
    """Mount a disk of so many bytes, in memory, on a folder."""
    options = f"size={size_bytes},mode=0700".encode()
    _call("mount", b"tmpfs", str(folder).encode(), b"tmpfs", 0, options, made="disk")


def here() -> int:
    """Return a file descriptor of the network namespace this thread is in."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(namespace: int) -> None:
    """Move this thread into the namespace behind a file descriptor."""
    _call("setns", namespace, _CLONE_NEWNET)


def plugged(plug: Plug) -> int:
    """Give the namespace this thread is in a loopback and a TAP interface; return the TAP's file descriptor.

    What the place sends can be read there, frame by frame, and what is written there it receives.
    """
    for knob in ("disable_ipv6", "accept_dad"):
        path = Path("/proc/sys/net/ipv6/conf/default") / knob
        if path.exists():  # a kernel without IPv6 sends none of its chatter
            path.write_text("1" if knob == "disable_ipv6" else "0")
    tap = _tap()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:
        _set(talk, _SET_FLAGS, "lo", struct.pack("<h", _UP))
        _set(talk, _SET_HARDWARE, INTERFACE, struct.pack("<h", _ETHERNET) + plug.hardware)
        for number, address in enumerate(plug.addresses):
            alias = f"{INTERFACE}:{number}" if number else INTERFACE
            _set(talk, _SET_ADDRESS, alias, _inet(address))
            _set(talk, _SET_NETMASK, alias, _inet(_NETMASK))
        _set(talk, _SET_FLAGS, INTERFACE, struct.pack("<h", _UP))
    return tap


def introduce(others: list[Plug]) -> None:
    """Set the hardware addresses of others in this namespace, permanently.

    Without this, lost packets would also be lost ARP answers, and the fault another than the one
    asked for.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:
        for other in others:
            hardware = struct.pack("<h", _ETHERNET) + other.hardware
            for address in other.addresses:
                request = _inet(address) + hardware.ljust(16, b"\0")
                request += struct.pack("<i", _COMPLETE | _PERMANENT) + bytes(16)
                fcntl.ioctl(talk, _SET_NEIGHBOUR, request + INTERFACE.encode().ljust(16, b"\0"))


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends; end now if that has happened already."""
    _call("prctl", _SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _tap() -> int:
    try:
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("<16sH22x", INTERFACE.encode(), _TAP | _NO_PACKET_HEADER)
        fcntl.ioctl(tap, _TUNSETIFF, request)
    except OSError as error:
        raise NamespaceError(
            f"no TAP interface can be made: /dev/net/tun: {error.strerror}"
        ) from error
    return tap


def _set(talk: socket.socket, what: int, interface: str, value: bytes) -> None:
    fcntl.ioctl(talk, what, interface.encode().ljust(16, b"\0") + value.ljust(24, b"\0"))


def _inet(address: str) -> bytes:
    return struct.pack("<hH4s8x", socket.AF_INET, 0, socket.inet_aton(address))


def _call(name: str, *arguments: int | bytes | None, made: str = "network namespace") -> None:
    """Call the C library, as Python 3.11 has no name for it; NamespaceError if the kernel refuses."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        why = os.strerror(ctypes.get_errno())
        raise NamespaceError(f"no {made} can be made: {name}: {why}")
