"""Proxy door: dispatcher of a listener that proxies reach, which are believed whom each request comes from.

What anybody else says of clients' certificates is taken away before anything can read it.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, Final

from smg_node.access.certificates import ClientCertificate
from smg_node.access.forwarded_certificate import HEADER, forwarded_name
from smg_node.access.proxies import TrustedProxies
from smg_node.core.errors import SmgError
from smg_node.http.message.head_findings import NEVER_MS
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ClientLine, Head
from smg_node.http.middleware.proxied_line import TENANT_HEADER, ProxiedLine
from smg_node.http.server.connections import Dispatcher

_FORWARDED_FOR: Final = "x-forwarded-for"
_PROTO: Final = "x-forwarded-proto"


class ProxyDoor:
    """Dispatcher of a listener that proxies reach as well as others."""

    def __init__(self, door: Dispatcher, networks: Sequence[str]) -> None:
        self._door: Final = door
        self._proxies: Final = TrustedProxies(networks)

    def serve(self, incoming: HttpRequest) -> Coroutine[Any, Any, bool]:
        """Answer one request, as one of whom it comes from."""
        if self._proxies.trusts(incoming.line.peer):
            incoming.line = self._told(incoming)
        elif HEADER in incoming.headers:
            incoming.head = _without(incoming.head, HEADER)
        return self._door.serve(incoming)

    def unparsed(self, line: ClientLine, error: SmgError) -> None:
        """Answer bytes that are no request."""
        self._door.unparsed(line, error)

    def cut(self, reason: str) -> None:
        """Count a connection that a limit refused or ended."""
        self._door.cut(reason)

    def _told(self, incoming: HttpRequest) -> ProxiedLine:
        """Return the line of a request with what its proxy says of the client."""
        line, headers = incoming.line, incoming.headers
        peer, certificate = line.peer, line.certificate
        if _FORWARDED_FOR in headers:
            peer = self._proxies.client_of(peer, _joined(incoming.head, _FORWARDED_FOR))
        if HEADER in headers:
            # Then the proxy's own certificate is nobody's but its own, also where the header cannot be read.
            name = forwarded_name(_joined(incoming.head, HEADER))
            certificate = None if name is None else ClientCertificate(name, NEVER_MS)
        tenant = headers.get(TENANT_HEADER, "").strip()
        scheme = headers.get(_PROTO, "").strip().lower()
        secure = scheme == "https" if scheme in ("http", "https") else None
        return ProxiedLine(line, peer, certificate, tenant, secure=secure)


def _joined(head: Head, name: str) -> str:
    """Return the values of all headers of a name, in their order, as one list."""
    wanted = name.encode("ascii")
    found = [value for key, value in head.raw if key.lower() == wanted]
    return b",".join(found).decode("utf-8", "surrogateescape")


def _without(head: Head, name: str) -> Head:
    """Return a head without the headers of a name."""
    wanted = name.encode("ascii")
    return Head(
        head.method,
        head.target,
        {key.lower(): head.headers[key] for key in head.headers if key.lower() != name},
        [(key, value) for key, value in head.raw if key.lower() != wanted],
        http11=head.http11,
        keep_alive=head.keep_alive,
    )
