"""HTTP request: one request on its way through the node, with the fields of its access log line."""

import asyncio
from collections.abc import Mapping
from typing import Final, cast

import msgspec

from smg_node.access.identity import Identity
from smg_node.core.errors import SmgError
from smg_node.http.message.head_findings import NOBODY, HeadFindings
from smg_node.http.message.request_head import Body, ClientLine, Head, Headers
from smg_node.http.message.response_writer import Wire
from smg_node.http.route_table import Route
from smg_node.telemetry.traces.request_scope import NO_TRACE, Trace

__all__ = ["Headers", "HttpRequest"]

_NO_WIRE: Final = cast("Wire", None)


class HttpRequest(msgspec.Struct, eq=False):
    """What a server hands to the dispatcher, and the dispatcher to a route.

    A server sets the first three, and the task that answers; the middleware sets most of the
    others. A struct, because one is made for every request, in a third of the time.
    """

    head: Head
    body: Body
    line: ClientLine
    task: asyncio.Task[None] | None = None
    """Where it is answered."""
    standing: HeadFindings = NOBODY
    """What the door has found about its head."""
    wire: Wire = _NO_WIRE
    """Where the answer goes. The door sets it before anybody else sees the request."""
    received_s: float = 0.0
    """When it came, on the monotonic clock."""
    received_ms: int = 0
    """When it came, by the wall clock."""
    request_id: str = ""
    token: str = ""
    """32 hexadecimal digits that no other request has."""
    trace: Trace = NO_TRACE
    cut: SmgError | None = None
    """Why the node itself ends this request, if it does."""
    model: str = ""
    worker: str = ""
    error_code: str = ""
    status: int = 0
    """How it ended."""
    duration_s: float = 0.0
    """How long it took, in the end."""
    own_headers: dict[str, str] | None = None
    """See `reply_headers`; None until somebody asked for them."""

    @property
    def reply_headers(self) -> dict[str, str]:
        """Headers of the answer, whether it succeeds or fails."""
        headers = self.own_headers
        if headers is None:
            request_id = self.request_id
            headers = {"x-request-id": request_id, "request-id": request_id}
            headers.update(self.standing.reply_headers)
            self.own_headers = headers
        return headers

    @property
    def method(self) -> str:
        """HTTP method."""
        return self.head.method

    @property
    def path(self) -> str:
        """Path, still percent-encoded and without its query."""
        return self.head.path

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters."""
        return self.head.query

    @property
    def headers(self) -> Headers:
        """Request headers."""
        return self.head.headers

    @property
    def peer(self) -> str:
        """The client's address, "" on a UNIX socket."""
        return self.line.peer

    @property
    def route(self) -> Route | None:
        """Its row of the route table, once found."""
        return self.standing.route

    @property
    def values(self) -> Mapping[str, str]:
        """The `{…}` parts of the path."""
        return self.standing.values

    @property
    def tenant(self) -> str:
        """The caller's tenant, once authorization has run; "" without one."""
        return self.standing.identity.tenant

    @property
    def identity(self) -> Identity:
        """The caller, once authorization has run."""
        return self.standing.identity

    def stop(self, error: SmgError) -> None:
        """End this request now; its client gets `error`."""
        if self.cut is None and self.task is not None:
            self.cut = error
            self.task.cancel()
