"""One HTTP request on its way through the node, and what the log will say about it."""

import asyncio
from collections.abc import Mapping

from smg_node.core.errors import SmgError
from smg_node.http.identity import Identity
from smg_node.http.incoming import Body, ClientLine, Head, Headers
from smg_node.http.routes import Route
from smg_node.http.standing import NOBODY, Standing
from smg_node.http.wire import Wire
from smg_node.telemetry.scope import NO_TRACE, Trace

__all__ = ["Headers", "HttpRequest"]


class HttpRequest:
    """What a server hands to the door, and the door to a route.

    A server knows the first three, the door sets most of the others. Each value is the request's own from the start: to
    read one from its class would cost three times as much.
    """

    __slots__ = (
        "body", "cut", "error_code", "head", "line", "model", "received_ms", "received_s", "reply_headers", "request_id",
        "standing", "task", "token", "trace", "wire", "worker",
    )  # fmt: skip

    wire: Wire
    """Where the answer goes."""
    received_s: float
    """When it came, on the monotonic clock."""
    received_ms: int
    """When it came, by the wall clock."""
    request_id: str
    token: str
    """32 hexadecimal digits that no other request has."""
    reply_headers: dict[str, str]
    """Headers of the answer, whether it succeeds or fails."""

    def __init__(self, head: Head, body: Body, line: ClientLine) -> None:
        self.head = head
        self.body = body
        self.line = line
        self.standing: Standing = NOBODY
        """What the door has found about its head."""
        self.trace: Trace = NO_TRACE
        self.task: asyncio.Task[object] | None = None
        self.cut: SmgError | None = None
        """Why the node itself ends this request, if it does."""
        self.model = self.worker = self.error_code = ""

    @property
    def method(self) -> str:
        """What is to be done."""
        return self.head.method

    @property
    def path(self) -> str:
        """With what, still percent-encoded and without its query."""
        return self.head.path

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters behind the path."""
        return self.head.query

    @property
    def headers(self) -> Headers:
        """What the client sent besides."""
        return self.head.headers

    @property
    def peer(self) -> str:
        """The client's address, "" on a UNIX socket."""
        return self.line.peer

    @property
    def route(self) -> Route | None:
        """The line of the table of routes, as soon as it was found."""
        return self.standing.route

    @property
    def values(self) -> Mapping[str, str]:
        """The `{…}` parts of the path."""
        return self.standing.values

    @property
    def identity(self) -> Identity:
        """Who asks, once the guard has looked."""
        return self.standing.identity

    def stop(self, error: SmgError) -> None:
        """End this request now; its client is told `error`."""
        if self.cut is None and self.task is not None:
            self.cut = error
            self.task.cancel()
