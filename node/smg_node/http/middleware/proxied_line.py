"""Proxied line: a proxy's connection as one request sees it, with the client that the proxy speaks for.

A proxy sends the requests of many clients over one connection, so what it says of a client holds for one
request: that one gets a line of its own over the same connection.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from smg_node.access.identity import ANYBODY, Identity
from smg_node.core.access.permissions import Needed, Permission
from smg_node.core.errors import invalid
from smg_node.http.http_options import DataAccess
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ByteTaker, ClientLine, Flow
from smg_node.http.middleware.authorization import Authorizing

if TYPE_CHECKING:
    from smg_node.access.certificates import ClientCertificate

TENANT_HEADER: Final = "x-smg-tenant-id"


class ProxiedLine:
    """A connection of a proxy, as far as one request on it is concerned."""

    def __init__(
        self,
        line: ClientLine,
        peer: str,
        certificate: "ClientCertificate | None",
        tenant: str,
        *,
        secure: bool | None = None,
    ) -> None:
        """Take the client's address, certificate and tenant, and whether it came by https; None where that is not said."""
        self._line: Final = line
        self.peer = peer
        self.certificate = certificate
        self.tenant: Final = tenant
        self.secure: Final = secure

    @property
    def transport(self) -> asyncio.Transport | None:
        """The connection; None where it has ended."""
        return self._line.transport

    @property
    def writing_paused(self) -> bool:
        """Whether more is unread than the proxy should be given."""
        return self._line.writing_paused

    @property
    def sent_bytes(self) -> int:
        """Bytes written to the connection, of all its requests."""
        return self._line.sent_bytes

    @sent_bytes.setter
    def sent_bytes(self, count: int) -> None:
        self._line.sent_bytes = count

    async def drained(self) -> None:
        """Return when the proxy has read enough; ConnectionError where it is gone."""
        await self._line.drained()

    def upgrade(self, taker: ByteTaker) -> Flow:
        """Give all bytes behind the request, which is the last of the proxy's connection, to `taker`."""
        return self._line.upgrade(taker)


class ProxiedGuard:
    """Authorizes requests as `usual` does; one without any credential belongs to the tenant that its proxy names."""

    def __init__(self, usual: Authorizing) -> None:
        self._usual: Final = usual

    def admit(
        self, request: HttpRequest, needed: Needed, data: DataAccess, own: Permission | None = None
    ) -> Identity:
        """Return the caller; INVALID_REQUEST `invalid_tenant` for a name that no tenant can have."""
        identity = self._usual.admit(request, needed, data, own)
        tenant, route = tenant_of(request.line), request.route
        assert route is not None, "a request is admitted to a route"
        if route.access != "data" or not tenant or identity is not ANYBODY:
            return identity
        from smg_node.access.certificates import TENANT

        if not TENANT.fullmatch(tenant):
            raise invalid(
                f"{tenant[:80]!r} is nothing that a tenant can be called",
                TENANT_HEADER,
                "invalid_tenant",
            )
        return Identity("", tenant, "user")


def tenant_of(line: ClientLine) -> str:
    """Return the tenant that a believed proxy names; "" for none."""
    return line.tenant if isinstance(line, ProxiedLine) else ""
