"""Host addresses as operators write them: `host`, `host:7946`,
`10.0.0.1:7946`, `[fd00::1]:7946`, SRV names.

A name like `_smg._tcp.example.org` is one that only SRV records know.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Final

from smg_mesh.swim.messages import Address

HOST_CHARACTERS_MAX: Final = 253
_LABEL: Final = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}"
HOST_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")


@dataclass(frozen=True, slots=True)
class Place:
    """A host and a port as they were written; `service` marks a name that only SRV records know."""

    text: str
    host: str
    port: int
    service: bool = False

    @property
    def numeric(self) -> Address | None:
        """The address, if the host is one already."""
        host = numeric_host(self.host)
        return None if host is None else Address(host, self.port)


def parse_place(text: str, *, default_port: int) -> Place:
    """Return what `text` names; ValueError says what is wrong with it."""
    stripped = text.strip()
    scheme, there, rest = stripped.partition("://")
    if there:
        bare = rest.partition("/")[0] or "HOST:PORT"
        raise ValueError(f"{text!r} is a URL: write the address without {scheme}://, as in {bare}")
    host, port_text = _split(stripped)
    if not host or len(host) > HOST_CHARACTERS_MAX:
        raise ValueError(f"{text!r} names no host: write HOST or HOST:PORT")
    service = host.startswith("_")
    if service and port_text:
        raise ValueError(f"{text!r}: a service name carries no port, its SRV records do")
    port = _port(text, port_text) if port_text else default_port
    numeric = numeric_host(host)
    if numeric is not None:
        return Place(stripped, numeric, port)
    if ":" in host or not HOST_NAME.fullmatch(host):
        raise ValueError(f"{text!r} is neither an address nor a host name")
    if re.fullmatch(r"[0-9.]+", host):
        raise ValueError(f"{text!r} is no IPv4 address")
    return Place(stripped, host, port, service)


def numeric_host(host: str) -> str | None:
    """Return `host` in its one spelling if it is an IP address, without any mapping; None otherwise."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id:
            return None  # a zone means nothing on another machine
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
    return str(address)


def is_wildcard(host: str) -> bool:
    """Return whether `host` means every address of this machine."""
    return host in ("", "0.0.0.0", "::")


def is_local(host: str) -> bool:
    """Return whether the numeric `host` is an address of this machine: whether one can bind it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _split(text: str) -> tuple[str, str]:
    """Return host and port text; the port is empty where none was written."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or ":" not in host:
            return "", ""
        return host, rest[1:]
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return (host, port) if port else ("", "")
    return text, ""


def _port(text: str, port_text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", port_text) or not 1 <= int(port_text) <= 65_535:
        raise ValueError(f"{text!r}: the port is a number from 1 to 65535")
    return int(port_text)
