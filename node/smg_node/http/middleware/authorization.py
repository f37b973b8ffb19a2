"""Authorization by API keys with roles; without a key, data for all and the rest for this machine.

The first admin key closes both, data and the rest, to callers without a key.

An address alone does not prove that a request comes from this machine's operator. A proxy here speaks
for others, and a web page open in a browser here sends what its author likes. So a request that was
forwarded, that a browser sent across sites, or that names this node by a foreign host name is refused.
"""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Final

from smg_node.access.api_key import PREFIX, read_key_text
from smg_node.access.identity import (
    ANYBODY,
    LOCAL,
    RANK,
    Authenticator,
    Identity,
    Role,
    missing_key,
)
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import Headers, HttpRequest
from smg_node.http.route_table import Access

if TYPE_CHECKING:
    from smg_node.access.certificates import CertificateRules, ClientCertificate

_FORWARDED: Final = (
    *("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"),
    "x-forwarded-client-cert",
)
_MAPPED: Final = "::ffff:"
_DIGEST_BYTES: Final = 8
_OWN_SITE: Final = frozenset({"", "none", "same-origin"})
_GOOGLES: Final = frozenset({"gemini", "interactions"})
_NEEDED: Final[Mapping[Access, Role]] = {"data": "user", "view": "operator", "admin": "admin"}
_JOINING_RETRY_S: Final = 1.0
_WHAT: Final = {False: "the key sent", True: "the certificate shown"}


class Guard:
    """Authorizes requests and identifies their callers."""

    def __init__(
        self, authenticator: Authenticator, certificates: "CertificateRules | None" = None
    ) -> None:
        """Take `certificates`, the rules of clients' certificates; None while there are none. Rules close
        what the first admin key closes.
        """
        self._authenticator = authenticator
        self._certificates = certificates

    def admit(self, request: HttpRequest, access: Access, data: DataAccess) -> Identity:
        """Return the caller; INVALID_REQUEST, UNAUTHENTICATED, FORBIDDEN, or OVERLOADED while keys
        are not known yet.

        `data` says which callers may use the data routes.
        """
        if access == "public":
            return ANYBODY
        given = self._counting(credentials(request.headers, key_in_query(request)))
        shown = self._shown(request, given)
        if access == "data":
            return shown or self._tenant(given, data)
        if not self._authenticator.closed and self._certificates is None:
            require_operator(request)
            return LOCAL
        identity = shown or self._known(given)
        if RANK[identity.role] < RANK[_NEEDED[access]]:
            raise _forbidden(
                f"this needs the role {_NEEDED[access]}; {_WHAT[bool(identity.subject)]} has role {identity.role}"
            )
        return identity

    def _shown(self, request: HttpRequest, given: str | None) -> Identity | None:
        """Return who showed a certificate and sent no key; None where none counts. FORBIDDEN for one of nobody,
        UNAUTHENTICATED for one that has expired since.
        """
        certificate = request.line.certificate
        if given is not None or certificate is None or self._certificates is None:
            return None
        if request.received_ms >= certificate.expires_ms:
            # It was valid at the handshake, and a kept connection may outlive it.
            raise SmgError(
                ErrorKind.UNAUTHENTICATED,
                "the certificate shown has expired: connect again with a renewed one",
                code="expired_certificate",
            )
        return self._certificates.identify(certificate)

    def _counting(self, given: Sequence[str]) -> str | None:
        """Return the one that counts of what a client sent: the one that is a key of ours, else the first.

        INVALID_REQUEST for two keys of ours. Each is looked at whatever the others are, so the time says
        nothing about which of them is one.
        """
        if len(given) < 2:
            return given[0] if given else None
        good = [key for key in given if self._is_key(key)]
        if len(good) > 1:
            raise invalid("the request carries two different keys", None, "conflicting_credentials")
        return good[0] if good else given[0]

    def _is_key(self, credential: str) -> bool:
        try:
            self._authenticator.identify(credential)
        except SmgError:
            return False
        return True

    def _tenant(self, given: str | None, data: DataAccess) -> Identity:
        keys = self._authenticator
        if data == "closed" or (data == "auto" and (keys.closed or self._certificates is not None)):
            return self._known(given)
        if data == "auto" and not keys.settled:
            # It joins a cluster of which it knows nothing yet: there may be keys.
            raise _joining()
        if given is None or keys.empty or not given.startswith(PREFIX):
            # Some clients cannot be without a key, and send any.
            return ANYBODY
        return keys.identify(given)

    def _known(self, given: str | None) -> Identity:
        keys = self._authenticator
        if given is None:
            raise missing_key()
        try:
            return keys.identify(given)
        except SmgError:
            if not keys.settled:
                raise _joining() from None
            raise


def key_in_query(request: HttpRequest) -> str:
    """Return the key in a query, where Google's API takes one; "" for none. A query is not logged."""
    route = request.route
    if route is None or route.dialect not in _GOOGLES:
        return ""
    return request.query.get("key", "").strip()


def credentials(headers: Headers, in_query: str = "") -> Sequence[str]:
    """Return the different keys that a client sent under any of three names or in its query, in a fixed order.

    Some clients send two: one that was configured for them, and one that its user has for another service.
    """
    bearer = headers.get("authorization", "")
    said = bearer[7:].strip() if bearer[:7].lower() == "bearer " else ""
    if not in_query and "x-api-key" not in headers and "x-goog-api-key" not in headers:
        return (said,) if said else ()
    names = ("x-api-key", "x-goog-api-key")
    found = (said, *(headers.get(name, "").strip() for name in names), in_query)
    return tuple(dict.fromkeys(key for key in found if key))


def caller_digest(request: HttpRequest) -> str:
    """Return 16 hexadecimal digits that identify the key that the client was admitted by, or else the
    first one that it sent; "" for none.

    The credential itself goes no further than this.
    """
    given = credentials(request.headers, key_in_query(request))
    if not given:
        # Of a certificate's name the subject has the beginning only, and the id a digest of all.
        identity = request.identity
        return _digest(identity.key_id) if identity.subject else ""
    key = given[0]
    if len(given) > 1:
        own = (one for one in given if _id_of(one) == request.identity.key_id)
        key = next(own, key)
    return _digest(key)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).hexdigest()


def _id_of(key: str) -> str | None:
    """Return the id in the text of a key; None for what is none."""
    found = read_key_text(key)
    return None if found is None else found[0]


def require_operator(request: HttpRequest) -> None:
    """Return if this machine's operator sent the request; FORBIDDEN otherwise."""
    if not is_loopback(request.peer):
        raise _forbidden(
            "this route answers only to the node's own machine as long as no admin key exists"
        )
    headers = request.headers
    if any(name in headers for name in _FORWARDED):
        raise _forbidden(
            "this route answers only to direct requests as long as no admin key exists"
        )
    if "origin" in headers or headers.get("sec-fetch-site", "") not in _OWN_SITE:
        raise _forbidden("this route does not answer to web pages")
    if not is_own_name(headers.get("host", "")):
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
    """Return the address in a socket's peer name, "" for a UNIX socket.

    One of IPv4 is written as such, also where an IPv6 socket took the connection.
    """
    host = str(name[0]) if isinstance(name, tuple) and name else ""
    return host.removeprefix(_MAPPED) if "." in host else host


def certificate_of(transport: asyncio.BaseTransport) -> "ClientCertificate | None":
    """Return the verified certificate that the client of a connection showed; None for none."""
    found = transport.get_extra_info("peercert")
    if not found:
        return None
    # Not loaded by a node whose clients show none.
    import ssl

    from smg_node.access.certificates import read_certificate

    return read_certificate(found, ssl.cert_time_to_seconds(found["notAfter"]))


def is_own_name(host: str) -> bool:
    """Whether a Host header cannot come from a foreign DNS name (DNS rebinding)."""
    if host.startswith("["):
        name = host[1:].partition("]")[0]
    else:
        name = host.rpartition(":")[0] if ":" in host else host
    name = name.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost") or _address(name) is not None


def cors_headers(headers: Headers, allowed: tuple[str, ...]) -> Mapping[str, str]:
    """Return the headers that let a web page of an allowed origin read the answer; none for others."""
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


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _forbidden(message: str) -> SmgError:
    return SmgError(ErrorKind.FORBIDDEN, message)


def _joining() -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node is joining its cluster and does not know its keys yet",
        code="joining",
        retry_after_s=_JOINING_RETRY_S,
    )
