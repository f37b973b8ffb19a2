"""Fetch rules: which URLs of clients are asked for media, and which addresses may be connected with for them. Pure.

A URL is parsed once, by the library that then connects, so that no second parser can read another host in it. Hosts
that look like numbers without being addresses (`127.1`, `0x7f000001`) are refused, as resolvers read those too.
"""

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, Literal, TypeAlias

from yarl import URL

from smg_node.core.address_guard import AddressGuard
from smg_node.core.errors import SmgError, invalid

FetchMode: TypeAlias = Literal["public", "none", "hosts"]

REDIRECTS_MAX: Final = 3
_PORTS: Final = (80, 443)
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252}[a-z0-9_])?\Z")
_NUMBER: Final = re.compile(r"(\d+|0x[0-9a-f]*)\Z")
"""A last label that resolvers take for the end of an address."""
_ODD: Final = re.compile(r"[\x00-\x20\x7f\\]")


class FetchRules:
    """What an operator allows: a mode, the hosts of mode `hosts`, and the hosts and networks that may be private.

    Entries are host names, `*.domain`, both with `:port` for that port, and networks among the private ones. Ports
    other than 80 and 443 are open only where an entry names them.
    """

    def __init__(self, mode: FetchMode, hosts: Sequence[str], private_hosts: Sequence[str]) -> None:
        self._mode = mode
        self._hosts = AddressGuard(hosts)
        self._private = AddressGuard(private_hosts)

    def checked(self, address: str, where: str) -> URL:
        """Return the URL to ask; INVALID_REQUEST `media_forbidden` at the path `where` for one that is not asked."""
        if self._mode == "none":
            raise forbidden("this node fetches nothing; send the data itself (media.fetch)", where)
        if _ODD.search(address):
            raise forbidden("its URL has a character that no URL has", where)
        # The library looks at some parts of a URL when they are asked for.
        try:
            return self._allowed(URL(address, encoded=address.isascii()), where)
        except ValueError as error:
            raise forbidden("its URL cannot be read", where) from error

    def redirected(self, url: URL, location: str, where: str) -> URL:
        """Return where an answer of `url` sends us; INVALID_REQUEST `media_forbidden` if that is not asked."""
        if not location or _ODD.search(location):
            raise forbidden("its origin redirects to no URL", where)
        try:
            joined = url.join(URL(location, encoded=location.isascii()))
            if url.scheme == "https" and joined.scheme == "http":
                raise forbidden("its origin redirects from https to http", where)
            return self._allowed(joined, where)
        except ValueError as error:
            raise forbidden("its origin redirects to no URL", where) from error

    def allows(self, host: str, port: int, address: str) -> bool:
        """Whether a connection to the IP `address`, which `host` led to, may be made."""
        return self._private.allows(_plain(host, port), address)

    def _allowed(self, url: URL, where: str) -> URL:
        if url.scheme not in ("http", "https"):
            raise forbidden("only http and https URLs are fetched", where)
        if url.raw_user is not None or url.raw_password is not None:
            raise forbidden("a URL with a user or a password is not fetched", where)
        host = (url.raw_host or "").lower().rstrip(".")
        port = url.port or 0
        literal = _is_address(host)
        if not literal and (not _HOST.match(host) or _NUMBER.match(host.rpartition(".")[2])):
            raise forbidden("its URL names no host", where)
        plain = _plain(host, port)
        if self._mode == "hosts" and not (self._hosts.lists(plain) or self._private.lists(plain)):
            raise forbidden("its host is none of those that this node fetches from", where)
        named = self._hosts.names_port(host, port) or self._private.names_port(host, port)
        if port not in _PORTS and not named:
            raise forbidden(f"port {port} is not fetched from", where)
        if literal and not self.allows(host, port, host):
            raise forbidden("its host is not on the public network", where)
        return url.with_fragment(None)


def forbidden(why: str, where: str) -> SmgError:
    """Return the error for what the operator's rules refuse."""
    return invalid(why, where, "media_forbidden")


def unavailable(why: str, where: str) -> SmgError:
    """Return the error for an origin that did not give what it was asked for."""
    return invalid(why, where, "media_unavailable")


def _plain(host: str, port: int) -> str:
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host
