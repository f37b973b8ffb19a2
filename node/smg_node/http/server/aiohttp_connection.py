"""aiohttp connection: the alternative server, aiohttp's protocol under this node's limits.

It serves what our own (`http1_connection`) serves, at several times the cost, and exists for two
reasons: it is the reference that our own is compared with, and a setting falls back to it. Missing
features of the framework are added here: our limits, and JSON errors for requests that cannot be
parsed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, cast

from aiohttp.abc import AbstractAccessLogger, AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import StreamReader

# Not from `aiohttp.web`: that is 1.4 MB of an application layer which is not used here.
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from smg_node.http.message.body_stream import OfferedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ByteTaker, Flow, FramingError, Head
from smg_node.http.middleware.authorization import certificate_of, peer_of
from smg_node.http.server.connections import LINGER_S, ConnectionLimits, Dispatcher, Listener, Pace
from smg_node.http.server.request_parser import head_too_large, no_request

if TYPE_CHECKING:
    from smg_node.access.certificates import ClientCertificate

_TOO_MANY_HEADERS: Final = "Too many headers received"


class FrameworkConnection(RequestHandler):
    """One client connection."""

    __slots__ = (
        "_limits",
        "_listener",
        "_pace",
        "_refused",
        "body",
        "busy",
        "certificate",
        "head_since_s",
        "peer",
        "sent_bytes",
    )

    def __init__(self, server: Server, listener: Listener) -> None:
        limits = listener.limits
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.idle_keepalive_s,
            max_line_size=limits.header_line_max_bytes,
            max_field_size=limits.header_line_max_bytes,
            max_headers=limits.header_count_max,
            lingering_time=LINGER_S,
            access_log_class=_NoAccessLog,
            auto_decompress=False,
        )
        self._listener = listener
        self._limits = limits
        self._refused = False
        self._pace = Pace()
        self.busy = False
        self.body: StreamReader | None = None
        self.head_since_s: float | None = None
        self.sent_bytes = 0
        self.peer = ""
        self.certificate: ClientCertificate | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or refuse the client."""
        # Not an isinstance: uvloop's transports do not inherit from asyncio's.
        transport = cast("asyncio.Transport", transport)
        if not self._listener.admit(self, transport):
            self._refused = True
            return
        self.peer = peer_of(transport.get_extra_info("peername"))
        self.certificate = certificate_of(transport)
        super().connection_made(transport)

    def retune(self, transport: asyncio.Transport, limits: ConnectionLimits) -> None:
        """Apply other limits from now on; the framework's own hold for new connections only."""
        self._limits = limits
        transport.set_write_buffer_limits(high=limits.slow_client_bytes)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection; the framework cancels the request it was for."""
        self._listener.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed bytes; the first ones of a head start its timeout."""
        if self._refused:
            return
        if self.head_since_s is None and not self.busy:
            self.head_since_s = asyncio.get_running_loop().time()
        super().data_received(data)
        body = self.body
        if self._messages and body is not None and not body.is_eof():
            # Nothing can follow a body that has not ended, so what was queued is the parser's
            # complaint about it, and it forgets to tell whoever is waiting for the rest.
            body.set_exception(RequestPayloadError("the body is not framed as HTTP demands"))

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer a request that could not be parsed, in our error envelope."""
        self.head_since_s = None
        large = isinstance(exc, LineTooLong) or message == _TOO_MANY_HEADERS
        self._listener.door.unparsed(self, head_too_large() if large else no_request())
        return _Verdict(keep_alive=False)

    def overdue(self, transport: asyncio.Transport, now_s: float) -> str:
        """Return which limit this connection exceeds now, or "" for none."""
        since_s = self.head_since_s
        if since_s is not None and now_s - since_s > self._limits.header_read_s:
            return "header_timeout"
        stands = self._pace.stands(transport, self.sent_bytes, now_s, self._limits.slow_client_s)
        return "slow_client" if stands else ""

    def leave(self) -> None:
        """Close now if no request is being answered, else after its answer."""
        self.close()
        if not self.busy and self.transport is not None:
            self.transport.close()

    def cut(self) -> None:
        """Cancel the request that is being answered."""
        self.force_close()

    async def drained(self) -> None:
        """Return when the client has read enough; ConnectionError where it is gone."""
        await self._drain_helper()

    def upgrade(self, taker: ByteTaker) -> Flow:
        """Give all bytes behind the request that is being answered to `taker`."""
        self.set_parser(cast("Any", _Taken(taker)))
        return self


class _Taken:
    """A reader of another protocol as the framework wants it, under the framework's names."""

    __slots__ = ("_taker", "feed_data", "feed_eof")

    def __init__(self, taker: ByteTaker) -> None:
        self._taker = taker
        self.feed_data = self._feed
        # Whoever answers is ended by the framework itself.
        self.feed_eof = _nothing

    def _feed(self, data: bytes) -> tuple[bool, bytes]:
        """Take bytes; it never ends by itself."""
        self._taker.feed(data)
        return False, b""


def _nothing() -> None:
    return


class _StreamBody:
    """A body in the framework's stream; see `request_head.Body`."""

    __slots__ = ("_stream",)

    def __init__(self, stream: StreamReader) -> None:
        self._stream = stream

    @property
    def whole(self) -> bool:
        """Whether its last byte is here."""
        return self._stream.is_eof()

    def take(self) -> bytes:
        """Return what is here, without waiting."""
        try:
            return self._stream.read_nowait()
        except RequestPayloadError as error:
            raise FramingError from error

    async def more(self) -> bytes:
        """Return what came since, b"" at the end."""
        try:
            return await self._stream.readany()
        except RequestPayloadError as error:
            raise FramingError from error


class _Verdict(StreamResponse):
    """Return value for the framework: the answer is written, and whether the connection goes on."""

    def __init__(self, *, keep_alive: bool) -> None:
        super().__init__()
        if not keep_alive:
            self.force_close()
        self._goes_on = keep_alive

    @property
    def keep_alive(self) -> bool:
        """Whether another request may follow on this connection."""
        return self._goes_on

    async def prepare(self, request: BaseRequest) -> None:
        """Do nothing: the head is written."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing: the body is written."""


def framework_listener(door: Dispatcher, limits: ConnectionLimits) -> Listener:
    """Return a listener with connections of the framework's protocol."""
    server = Server(_serve(door), request_factory=_begin, handler_cancellation=True)
    return Listener(door, limits, lambda listener: FrameworkConnection(server, listener))


def _begin(
    message: Any,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> BaseRequest:
    assert isinstance(protocol, FrameworkConnection)
    protocol.busy = True
    protocol.body = payload
    protocol.head_since_s = None
    return BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())


def _serve(door: Dispatcher) -> Callable[[BaseRequest], Awaitable[StreamResponse]]:
    go_on, stop = _Verdict(keep_alive=True), _Verdict(keep_alive=False)

    async def serve(request: BaseRequest) -> StreamResponse:
        connection = request.protocol
        assert isinstance(connection, FrameworkConnection)
        head = Head(
            request.method,
            request.raw_path,
            request.headers,
            request._message.raw_headers,
            http11=request.version >= (1, 1),
            keep_alive=request.keep_alive,
        )
        task = asyncio.current_task()
        message = request._message
        offered = message.upgrade and request.headers.get("upgrade", "").lower() == "websocket"
        # As our own server has it: behind an offer of WebSocket there are no more requests.
        body = OfferedBody() if offered else _StreamBody(request.content)
        incoming = HttpRequest(head, body, connection, task)
        try:
            return go_on if await door.serve(incoming) else stop
        finally:
            connection.busy = False
            connection.body = None

    return serve


class _NoAccessLog(AbstractAccessLogger):
    """Disabled access log: ours is written elsewhere; the framework's formats a line for every
    request.
    """

    @property
    def enabled(self) -> bool:
        """Return false, so that the framework does not even read the clock."""
        return False

    def log(self, request: BaseRequest, response: StreamResponse, time: float) -> None:
        """Write nothing."""
