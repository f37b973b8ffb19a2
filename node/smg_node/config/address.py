"""Address of a listening socket: host and port, parsed from and written as `host:port`."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

_PORT_MAX = 65535
_NAME_MAX_CHARACTERS = 253  # RFC 1035 2.3.4, without the final dot
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """A host name, IPv4 or IPv6 address (without brackets) and a port; port 0 is "any free one"."""

    host: str
    port: int

    def __str__(self) -> str:
        return join_host_port(self.host, self.port)


def join_host_port(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> Address:
    """Return the address that `text` names: `host:port`, `:port` (every IPv4 interface), `[v6]:port`.

    Raises ValueError with words for an operator.
    """
    host, port = split_host_port(text)
    return Address(host or "0.0.0.0", port)


def split_host_port(text: str) -> tuple[str, int]:
    """Return host (lower-case, no brackets, empty for `:port`) and port 0..65535 of `text`.

    Raises ValueError with words for an operator.
    """
    _refuse_url(text)
    if text.startswith("["):
        inside, bracket, port = text[1:].partition("]")
        if not bracket or not port.startswith(":"):
            raise ValueError("an IPv6 address is written [address]:port")
        return _ipv6(inside), _port(port[1:])
    host, colon, port = text.rpartition(":")
    if not colon:
        hint = f"; write :{text}" if text.isdecimal() else ""
        raise ValueError(f"it needs a host and a port, as in 127.0.0.1:30000{hint}")
    if ":" in host:
        raise ValueError("an IPv6 address needs brackets, as in [::1]:30000")
    return _host(host), _port(port)


def split_peer(text: str) -> tuple[str, int | None]:
    """Return host (lower-case, no brackets) and port of `HOST[:PORT]`; None where no port is given.

    Raises ValueError with words for an operator.
    """
    _refuse_url(text)
    if text.startswith("[") and text.endswith("]"):
        return _ipv6(text[1:-1]), None
    if not text.startswith("[") and text.count(":") > 1:
        raise ValueError(f"an IPv6 address needs brackets, as in [{text[:80]}]")
    if ":" in text:
        host, port = split_host_port(text)
    else:
        host, port = _host(text), None
    if not host:
        raise ValueError(f"{text[:80]!r} names no host")
    return host, port


def _refuse_url(text: str) -> None:
    scheme, there, rest = text.partition("://")
    if there:
        bare = rest.partition("/")[0] or "HOST:PORT"
        raise ValueError(f"it takes an address without {scheme[:20]}://, as in {bare[:80]}")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= _PORT_MAX):
        raise ValueError(f"the port must be a number from 0 to {_PORT_MAX}, got {text[:40]!r}")
    return int(text)


def _ipv6(text: str) -> str:
    try:
        # A zone (`fe80::1%eth0`) is part of the address for the socket, so it stays as written.
        return str(IPv6Address(text))
    except ValueError:
        raise ValueError(f"{text[:80]!r} is not an IPv6 address") from None


def _host(text: str) -> str:
    if text == "":
        return text
    labels = text.removesuffix(".").split(".")
    if len(text) > _NAME_MAX_CHARACTERS or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{text[:80]!r} is not a host name or IPv4 address")
    if labels[-1].isdecimal():
        # A name never ends in digits (RFC 3696 2), so this is a mistyped IPv4 address, or a right one.
        try:
            return str(ip_address(text))
        except ValueError:
            raise ValueError(f"{text[:80]!r} is not an IPv4 address") from None
    return text.lower()
