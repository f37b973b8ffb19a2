"""Documents of an issuer: discovery document, key set as it is shared, and how long it may be kept. Pure.

What an issuer answers is not trusted: it is bounded, its own name must be the configured one to the byte (OpenID Connect
Discovery 1.0, 4.3), and the key set is found where it is only by https, or on this machine. A key set is shared without
certificates and without anything private: whatever secret an issuer showed by mistake stays nowhere, and that there was
one still shows, so that its key is not used.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

DISCOVERY: Final = "/.well-known/openid-configuration"
DISCOVERY_BYTES_MAX: Final = 65_536
KEYS_BYTES_MAX: Final = 1_048_576
SHARED_BYTES_MAX: Final = 65_536
"""Of a key set after what nobody needs is left out."""
URL_CHARS_MAX: Final = 2_048
_PUBLIC: Final = ("kty", "kid", "use", "key_ops", "alg", "crv", "n", "e", "x", "y")
_PRIVATE: Final = ("d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv")
_MAX_AGE: Final = re.compile(
    r'(?:^|[,\s])max-age\s*=\s*"?([0-9]{1,10})"?', re.IGNORECASE | re.ASCII
)
_NEVER_KEPT: Final = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?:[,\s=]|$)", re.IGNORECASE)
_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode


class DocumentError(ValueError):
    """A document that is not what an issuer should answer; the message holds nothing secret, and fits into a line."""


def discovery_url(issuer: str) -> str:
    """Return where an issuer's discovery document is (OpenID Connect Discovery 1.0, 4.1)."""
    return issuer.removesuffix("/") + DISCOVERY


def read_discovery(body: bytes, issuer: str) -> str:
    """Return where the keys are; DocumentError for the document of another issuer, or for none."""
    found = _object(body, DISCOVERY_BYTES_MAX, "the discovery document")
    named = found.get("issuer")
    if named != issuer:
        said = f"{named[:256]!r}" if isinstance(named, str) else "no issuer"
        raise DocumentError(f"its discovery document is of {said}, not of {issuer!r}")
    url = found.get("jwks_uri")
    if not isinstance(url, str) or not url:
        raise DocumentError("its discovery document has no jwks_uri")
    if (why := url_trouble(url)) is not None:
        raise DocumentError(f"jwks_uri of its discovery document {why}")
    return url


def url_trouble(url: str) -> str | None:
    """Return what is wrong with the URL of an issuer, None if it may be asked."""
    if len(url) > URL_CHARS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        return "is no URL"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is no URL"
    if not host or parts.username is not None or parts.password is not None or parts.fragment:
        return "is no URL of a host and a path"
    if parts.scheme == "https" or (parts.scheme == "http" and is_own_machine(host)):
        return None
    return "is not by https; http is for this machine only"


def is_own_machine(host: str) -> bool:
    """Return whether a host of a URL is this machine by its name."""
    name = host.lower().removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def shared_keys(body: bytes) -> bytes:
    """Return a key set as it is shared: the same bytes for the same keys. DocumentError for none, or for one too large."""
    found = _object(body, KEYS_BYTES_MAX, "the key set")
    keys = found.get("keys")
    if not isinstance(keys, list):
        raise DocumentError("the key set has no list of keys")
    shared = _ENCODE({"keys": [_shared(key) for key in keys]})
    if len(shared) > SHARED_BYTES_MAX:
        most = f"{SHARED_BYTES_MAX:,}"
        raise DocumentError(
            f"the key set has {len(shared):,} bytes of keys, at most {most} are taken"
        )
    return shared


def max_age_ms(headers: Mapping[str, str]) -> int:
    """Return how long an answer may be kept by its headers, whose names are small; -1 if it does not say."""
    told = headers.get("cache-control", "")
    if _NEVER_KEPT.search(told):
        return 0
    found = _MAX_AGE.search(told)
    return -1 if found is None else int(found[1]) * 1000


def _shared(key: Any) -> Any:
    if not isinstance(key, dict):
        # Only that it is there: what it says is nobody's business.
        return None
    # What makes no sense stays there without its content: it must not look like something that was never said.
    public = {name: key[name] if _is_plain(key[name]) else "" for name in _PUBLIC if name in key}
    return {**public, **{name: "" for name in _PRIVATE if name in key}}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return isinstance(value, str)


def _object(body: bytes, most: int, what: str) -> dict[str, Any]:
    if len(body) > most:
        raise DocumentError(f"{what} has more than {most:,} bytes")
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise DocumentError(f"{what} is no JSON object") from None
