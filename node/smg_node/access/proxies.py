"""Trusted proxies: who a request comes from, where a proxy in between is believed. Pure.

Each proxy appends the address it was reached from to `x-forwarded-for`. So the list is read from its end:
addresses of proxies that are believed are passed over, and the first other one is the client's. What stands
before it is the client's own word.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

_ADDRESSES_MAX: Final = 64
"""More in one header are no way that a request came."""
_REMEMBERED_MAX: Final = 4_096


class TrustedProxies:
    """Networks of the proxies that are believed; ValueError for one that is none."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks: Final[Sequence[IPv4Network | IPv6Network]] = [
            ip_network(network) for network in networks
        ]
        self._known: Final[dict[str, bool]] = {}

    def trusts(self, peer: str) -> bool:
        """Whether `peer`, an address without its port, is that of such a proxy."""
        known = self._known.get(peer)
        if known is None:
            if len(self._known) >= _REMEMBERED_MAX:
                self._known.clear()
            known = self._known[peer] = self._looked_up(peer)
        return known

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """Return the address of the client behind a proxy at `peer`; that of the farthest proxy that is believed
        where the list ends, or goes on with something that is no address.
        """
        client = peer
        for word in reversed(forwarded_for.split(",")[-_ADDRESSES_MAX:]):
            address = address_in(word)
            if address is None:
                return client
            client = address
            if not self.trusts(address):
                return client
        return client

    def _looked_up(self, peer: str) -> bool:
        address = _address(peer)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def address_in(word: str) -> str | None:
    """Return the address in one entry of `x-forwarded-for`, which may have a port; None for what is none."""
    text = word.strip()
    if text.startswith("["):
        text, _, port = text[1:].partition("]")
        if port and not _is_port(port):
            return None
    elif text.count(":") == 1:
        text, _, port = text.partition(":")
        if not _is_port(f":{port}"):
            return None
    address = _address(text)
    return None if address is None else str(address)


def _is_port(text: str) -> bool:
    digits = text.removeprefix(":")
    return text.startswith(":") and digits.isascii() and digits.isdigit() and len(digits) <= 5


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text; one of IPv4 that is written as IPv6 is what it stands for."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
