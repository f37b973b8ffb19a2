"""TLS of a store's URL: files of certificates put into it, and passwords that would travel in plain text. Pure."""

from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from smg_storage.url import StoreUrl, StoreUrlError

_NAMES: Final[Mapping[str, tuple[str, str, str]]] = {
    "postgresql": ("sslrootcert", "sslcert", "sslkey"),
    "redis": ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"),
}
"""What the drivers call authority, certificate and key in a URL."""
_MODE: Final = "sslmode"
_VERIFIED: Final = "verify-full"
_SURE: Final = frozenset({"require", "verify-ca", "verify-full", "true"})
"""Modes of PostgreSQL in which nothing is sent without TLS."""
_TLS_SCHEMES: Final = frozenset({"rediss", "rediss+cluster"})


def secured(url: StoreUrl, *, authority: str, certificate: str = "", key: str = "") -> StoreUrl:
    """Return the URL with files of TLS in it; the server must prove to be the host that it names.

    StoreUrlError for a store that is not spoken to so, and for a URL that says something of TLS itself.
    """
    names = _NAMES.get(url.kind)
    if names is None:
        raise StoreUrlError(f"storage.tls is for PostgreSQL and Redis, and not for {url.kind}")
    if url.kind == "redis" and url.scheme not in _TLS_SCHEMES:
        raise StoreUrlError(f"storage.tls needs rediss://, and not {url.scheme}://")
    if said := sorted(name for name in url.query if name.startswith("ssl")):
        raise StoreUrlError(f"storage.tls and {said[0]} of the URL say the same: one of them goes")
    files = dict(zip(names, (authority, certificate, key), strict=True))
    added = {name: path for name, path in files.items() if path}
    if url.kind == "postgresql":
        added[_MODE] = _VERIFIED
    return replace(url, query=MappingProxyType({**url.query, **added}))


def shows_password(url: StoreUrl) -> bool:
    """Whether the URL's password may cross a network in plain text, or what is made of it."""
    if not url.password or url.kind not in _NAMES or url.scheme in _TLS_SCHEMES:
        return False
    if {url.query.get(_MODE, ""), url.query.get("ssl", "")} & _SURE:
        return False
    return any(not _is_here(host) for host, _ in url.hosts)


def _is_here(host: str) -> bool:
    if host.lower().removesuffix(".") == "localhost" or host.startswith("/"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
