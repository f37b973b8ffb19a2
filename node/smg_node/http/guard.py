"""Who may ask what, as long as no keys exist: everyone for data, this machine for the rest.

An address alone does not prove that a request comes from this machine's operator. A proxy here speaks
for others, and a web page open in a browser here sends what its author likes. So a request that was
forwarded, that a browser sent across sites, or that names this node by a foreign host name is refused.
"""

from collections.abc import Mapping
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.request import Headers, HttpRequest

_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_DIGEST_BYTES: Final = 8
_OWN_SITE: Final = frozenset({"", "none", "same-origin"})


def credential(headers: Headers) -> str | None:
    """Return the key a client sent under any of three names; INVALID_REQUEST if it sent two."""
    found: set[str] = set()
    bearer = headers.get("authorization", "")
    if bearer[:7].lower() == "bearer ":
        found.add(bearer[7:].strip())
    for name in ("x-api-key", "x-goog-api-key"):
        if name in headers:
            found.add(headers.get(name, "").strip())
    found.discard("")
    if len(found) > 1:
        raise invalid("the request carries two different keys", None, "conflicting_credentials")
    return next(iter(found), None)


def caller_digest(headers: Headers) -> str:
    """Return 16 hexadecimal digits that stand for the key a client sent, "" if it sent none.

    The credential itself goes no further than this.
    """
    key = credential(headers)
    if key is None:
        return ""
    return blake2b(key.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).hexdigest()


def require_operator(request: HttpRequest) -> None:
    """Let a request pass that this machine's operator sent; FORBIDDEN otherwise."""
    if not is_loopback(request.peer):
        raise _forbidden(
            "this route answers only to the node's own machine as long as no key exists"
        )
    headers = request.headers
    if any(name in headers for name in _FORWARDED):
        raise _forbidden("this route answers only to direct requests as long as no key exists")
    if "origin" in headers or headers.get("sec-fetch-site", "") not in _OWN_SITE:
        raise _forbidden("this route does not answer to web pages")
    if not _is_own_name(headers.get("host", "")):
        raise _forbidden("this route must be asked under an IP address or as localhost")


def is_loopback(peer: str) -> bool:
    """Whether `peer`, an address without its port or "" for a UNIX socket, is this machine."""
    if peer == "":
        return True
    address = _address(peer.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and address.is_loopback


def peer_of(name: object) -> str:
    """Return the address in a socket's peer name, "" for a UNIX socket."""
    return str(name[0]) if isinstance(name, tuple) and name else ""


def cors_headers(headers: Headers, allowed: tuple[str, ...]) -> Mapping[str, str]:
    """Return what lets a web page of an allowed origin read the answer; nothing for others."""
    origin = headers.get("origin", "")
    if not allowed or not origin:
        return {}
    if "*" in allowed:
        return {"access-control-allow-origin": "*"}
    if origin not in allowed:
        return {"vary": "origin"}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "vary": "origin",
    }


def _is_own_name(host: str) -> bool:
    """Whether a Host header cannot have come out of somebody else's DNS."""
    if host.startswith("["):
        name = host[1:].partition("]")[0]
    else:
        name = host.rpartition(":")[0] if ":" in host else host
    name = name.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost") or _address(name) is not None


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _forbidden(message: str) -> SmgError:
    return SmgError(ErrorKind.FORBIDDEN, message)
