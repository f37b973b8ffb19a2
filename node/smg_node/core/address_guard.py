"""Address guard: which hosts clients may name by URL, and which addresses may be connected with for them. Pure.

A name is not trusted to say where it leads: the address that a connection is about to be made to is looked at, each
time. Only public addresses are allowed, unless the operator listed the host or the network.
"""

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, TypeAlias
from urllib.parse import urlsplit

_Address: TypeAlias = IPv4Address | IPv6Address
_METADATA: Final = (ip_network("168.63.129.16/32"), ip_network("192.0.0.0/24"))
"""Public by their numbers, and answered by the host that a virtual machine runs on (Azure, Oracle)."""
_NAT64: Final = ip_network("64:ff9b::/96")
_UNICAST: Final = ip_network("2000::/3")
"""All IPv6 that is routed; what the library's list does not name in the rest, such as IPv4 in forms given up, is none."""
_DOCUMENTS: Final = ip_network("3fff::/20")
"""For documents, as 2001:db8::/32 is, and younger than the library's list."""
_PORTS: Final = {"http": 80, "https": 443}


class AddressGuard:
    """Guard that knows what an operator listed: hosts, `*.domain`, each with `:port` or for all ports, and networks."""

    def __init__(self, listed: Sequence[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        self._hosts: list[tuple[str, int]] = []
        for entry in listed:
            network = _network(entry)
            if network is not None:
                self._networks.append(network)
            else:
                host, colon, port = entry.lower().rpartition(":")
                self._hosts.append((host, int(port)) if colon else (entry.lower(), 0))

    def lists(self, url: str) -> bool:
        """Whether a URL names a listed host, or an address of a listed network."""
        parts = urlsplit(url)
        host = (parts.hostname or "").lower().rstrip(".")
        port = parts.port or _PORTS.get(parts.scheme, 0)
        if any(_fits(host, pattern) and wanted in (0, port) for pattern, wanted in self._hosts):
            return True
        address = _address(host)
        return address is not None and self._in_network(address)

    def names_port(self, host: str, port: int) -> bool:
        """Whether an entry names that port of the host."""
        return any(_fits(host, pattern) and wanted == port for pattern, wanted in self._hosts)

    def allows(self, url: str, address: str) -> bool:
        """Whether a connection to `address`, which `url` led to, may be made: a host is listed with its port."""
        found = _address(address)
        if found is None:
            return False
        return self.lists(url) or self._in_network(found) or _is_public(found)

    def _in_network(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _fits(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) >= len(pattern)
    return host == pattern


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry, strict=False)
    except ValueError:
        return None


def _address(text: str) -> _Address | None:
    """Return an address without its zone, None for what is none; IPv4 in IPv6 is IPv4."""
    try:
        found = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in _NAT64:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
        return found if inner is None else inner
    return found


def _is_public(address: _Address) -> bool:
    if address.is_multicast or any(address in network for network in _METADATA):
        return False
    if isinstance(address, IPv6Address) and (address not in _UNICAST or address in _DOCUMENTS):
        return False
    return address.is_global


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public network, also where it is written inside another one."""
    found = _address(address)
    return found is not None and _is_public(found)
