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
from typing import TYPE_CHECKING, Final, Protocol

from smg_node.access.api_key import read_key_text
from smg_node.access.foreign_key import foreign_digest, foreign_id, sha256_of
from smg_node.access.identity import (
    ANYBODY,
    LOCAL,
    AccessError,
    Authenticator,
    Identity,
    KeysWantedError,
    missing_key,
)
from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.core.access.permissions import ACCESS, Needed, Permission, may_any
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.http_options import DataAccess, HttpOptions
from smg_node.http.message.http_request import Headers, HttpRequest

if TYPE_CHECKING:
    from smg_node.access.certificates import CertificateRules, ClientCertificate
    from smg_node.http.http_parts import HttpParts

_FORWARDED: Final = (
    *("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"),
    "x-forwarded-client-cert",
)
_MAPPED: Final = "::ffff:"
_DIGEST_BYTES: Final = 8
_OWN_SITE: Final = frozenset({"", "none", "same-origin"})
_GOOGLES: Final = frozenset({"gemini", "interactions"})
_JOINING_RETRY_S: Final = 1.0
_WHAT: Final = {
    "": "the key sent",
    "certificate": "the certificate shown",
    "token": "the token sent",
}
"""What a caller came with, by the kind of its subject."""


class Authorizing(Protocol):
    """Interface that admits requests."""

    def admit(
        self, request: HttpRequest, needed: Needed, data: DataAccess, own: Permission | None = None
    ) -> Identity:
        """Return the caller; an SmgError for one who may not ask."""
        ...


class UsualGuard:
    """Guard by whatever knows credentials now: that is another one from the first issuer of tokens on, and with other
    roles.
    """

    def __init__(self, parts: "HttpParts") -> None:
        self._parts = parts
        self._authenticator = parts.authenticator
        self._roles = parts.options.roles
        self._guard = _guard_of(parts)

    def admit(
        self, request: HttpRequest, needed: Needed, data: DataAccess, own: Permission | None = None
    ) -> Identity:
        """Return the caller; see `Guard`."""
        parts = self._parts
        if parts.authenticator is not self._authenticator or parts.options.roles is not self._roles:
            self._authenticator, self._roles = parts.authenticator, parts.options.roles
            self._guard = _guard_of(parts)
        return self._guard.admit(request, needed, data, own)


def usual_guard(parts: "HttpParts") -> Authorizing:
    """Return what admits requests by their keys, tokens and certificates."""
    return UsualGuard(parts)


def _guard_of(parts: "HttpParts") -> "Guard":
    options = parts.options
    return Guard(parts.authenticator, _certificate_rules(options), options.roles)


def _certificate_rules(options: HttpOptions) -> "CertificateRules | None":
    if not options.certificates:
        return None
    from smg_node.access.certificates import CertificateRules

    return CertificateRules(options.certificates)


class Guard:
    """Authorizes requests and identifies their callers."""

    def __init__(
        self,
        authenticator: Authenticator,
        certificates: "CertificateRules | None" = None,
        roles: Roles = BUILT_IN_ROLES,
    ) -> None:
        """Take `certificates`, the rules of clients' certificates; None while there are none. Rules close
        what the first admin key closes.
        """
        self._authenticator = authenticator
        self._certificates = certificates
        self._roles = roles

    def admit(
        self, request: HttpRequest, needed: Needed, data: DataAccess, own: Permission | None = None
    ) -> Identity:
        """Return the caller; INVALID_REQUEST, UNAUTHENTICATED, FORBIDDEN, or OVERLOADED while keys
        are not known yet.

        `needed` is the permission that the route needs, and `own` one that does as well; `data` says which callers
        may use the data routes.
        """
        if needed == "public":
            return ANYBODY
        given = self._counting(credentials(request.headers, key_in_query(request)))
        shown = self._shown(request, given)
        if ACCESS[needed] == "data":
            return self._permitted(request, shown or self._tenant(given, data), needed, own)
        if not self._authenticator.closed and self._certificates is None:
            require_operator(request)
            return LOCAL
        return self._permitted(request, shown or self._known(given), needed, own)

    def _permitted(
        self, request: HttpRequest, identity: Identity, needed: Permission, own: Permission | None
    ) -> Identity:
        """Return the caller that may do this, by its role and from where it asks; FORBIDDEN."""
        if not may_any(self._roles.of(identity.role), needed, own):
            known = "" if identity.role in self._roles.names else ", which is not known here"
            error = _forbidden(
                f"this needs the permission {needed}; {_WHAT[_kind(identity)]} has role {identity.role}{known}"
            )
            error.challenge = 'error="insufficient_scope"'
            raise error
        if identity.restrictions is not None:
            # Most nodes have no such credential.
            from smg_node.http.middleware.restricted_requests import check_request

            check_request(request, identity.restrictions)
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
        """Return the one that counts of what a client sent: the one that is a key of ours, else the first that an issuer
        can be asked about, else the first.

        INVALID_REQUEST for two keys of ours. Each is looked at whatever the others are, so the time says
        nothing about which of them is one. But no issuer sees what may be another service's: of several it is asked
        about one, where none is known here.
        """
        if len(given) < 2:
            return given[0] if given else None
        good: list[str] = []
        wanted: KeysWantedError | None = None
        others = [key for key in given if self._authenticator.is_asked_about(key)]
        for key in given:
            if key in others:
                continue
            try:
                self._authenticator.identify(key)
            except KeysWantedError as error:
                wanted = error
            except SmgError:
                continue
            else:
                good.append(key)
        if len(good) > 1:
            raise invalid("the request carries two different keys", None, "conflicting_credentials")
        if not good and wanted is not None:
            # One of them may be good: that is known in a moment.
            raise wanted
        return (*good, *others, *given)[0]

    def _tenant(self, given: str | None, data: DataAccess) -> Identity:
        keys = self._authenticator
        if data == "closed" or (data == "auto" and (keys.closed or self._certificates is not None)):
            return self._known(given)
        if data == "auto" and not keys.settled:
            # It joins a cluster of which it knows nothing yet: there may be keys.
            raise _joining()
        if given is None or not keys.expects(given):
            # Some clients cannot be without a key, and send any.
            return ANYBODY
        return keys.identify(given)

    def _known(self, given: str | None) -> Identity:
        keys = self._authenticator
        if given is None:
            raise missing_key()
        try:
            return keys.identify(given)
        except (AccessError, KeysWantedError):
            # Nothing that this node has yet to learn of the cluster's keys changes it.
            raise
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
    given, identity = credentials(request.headers, key_in_query(request)), request.identity
    if identity.subject:
        # Of a certificate's or a token's name that has the beginning only, and the id a digest of all; the next token
        # is of the same caller.
        return _digest(identity.key_id)
    if not given:
        return ""
    key = given[0]
    if len(given) > 1:
        own = (one for one in given if _id_of(one) == identity.key_id)
        key = next(own, key)
    return _digest(key)


def _kind(identity: Identity) -> str:
    """Return what kind of credential an identity was found by: the beginning of its subject, "" for a key."""
    kind = identity.subject.partition(":")[0]
    return kind if kind in _WHAT else ""


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=_DIGEST_BYTES).hexdigest()


def _id_of(key: str) -> str:
    """Return the id of a key, as its text has it or as that of another gateway's."""
    found = read_key_text(key)
    return foreign_id(foreign_digest(sha256_of(key))) if found is None else found[0]


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
