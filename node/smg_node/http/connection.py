"""Client connections: the framework's protocol with our limits on it.

What the framework lacks and is added here: refusing connections beyond a number, closing those that
dawdle over a request's head or do not read their answer, and speaking JSON to those whose request
cannot even be parsed. One coarse sweep looks at all connections; a timer each would cost every request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from aiohttp.abc import AbstractAccessLogger, AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import StreamReader

# Not from `aiohttp.web`: that is 1.4 MB of an application layer which is not used here.
from aiohttp.web_protocol import RequestHandler, RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from smg_node.core.errors import SmgError, invalid
from smg_node.http.wire import reset, unacknowledged_bytes

# After an early answer the rest of a body is read and thrown away for so long: closing at once would
# destroy the answer before the client has seen it.
_LINGER_S: Final = 2.0
_SWEEPS_PER_LIMIT: Final = 4
_SWEEP_MIN_S: Final = 0.02
_SWEEP_MAX_S: Final = 5.0
_TOO_MANY_HEADERS: Final = "Too many headers received"
_FULL_BODY: Final = (
    b'{"error":{"message":"this node has as many connections as it may have",'
    b'"type":"rate_limit_error","param":null,"code":"too_many_connections"}}'
)
_FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_FULL_BODY), _FULL_BODY)


class Door(Protocol):
    """Answers requests."""

    async def serve(self, incoming: BaseRequest) -> StreamResponse:
        """Answer one request and say whether the connection goes on."""
        ...

    def unparsed(self, incoming: BaseRequest, error: SmgError) -> StreamResponse:
        """Answer what was no request."""
        ...

    def cut(self, reason: str) -> None:
        """Count a connection that a limit turned away or ended."""
        ...


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one connection may do, and how many there may be."""

    connections_max: int
    body_max_bytes: int
    header_line_max_bytes: int
    header_count_max: int
    header_read_s: float
    idle_keepalive_s: float
    slow_client_bytes: int
    slow_client_s: float


class Connection(RequestHandler):
    """One client connection."""

    __slots__ = (
        "_limits",
        "_listener",
        "_moved",
        "_moved_s",
        "_refused",
        "body",
        "busy",
        "head_since_s",
        "sent_bytes",
    )

    def __init__(self, listener: "Listener", limits: ConnectionLimits) -> None:
        super().__init__(
            listener,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=limits.idle_keepalive_s,
            max_line_size=limits.header_line_max_bytes,
            max_field_size=limits.header_line_max_bytes,
            max_headers=limits.header_count_max,
            lingering_time=_LINGER_S,
            access_log_class=_NoAccessLog,
            auto_decompress=False,
        )
        self._listener = listener
        self._limits = limits
        self._refused = False
        self.busy = False
        self.body: StreamReader | None = None
        self.head_since_s: float | None = None
        self.sent_bytes = 0
        self._moved = 0
        self._moved_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or turn the client away."""
        # Not an isinstance: uvloop's transports do not inherit from asyncio's.
        transport = cast("asyncio.Transport", transport)
        if not self._listener.admit(self, transport):
            self._refused = True
            transport.write(_FULL)
            transport.close()
            return
        transport.set_write_buffer_limits(high=self._limits.slow_client_bytes)
        super().connection_made(transport)

    def retune(self, transport: asyncio.Transport, limits: ConnectionLimits) -> None:
        """Take other limits from now on."""
        self._limits = limits
        transport.set_write_buffer_limits(high=limits.slow_client_bytes)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection; the framework cancels the request it was for."""
        self._listener.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the first ones of a head start its clock."""
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
        """Answer what could not be parsed, in our envelope."""
        self.head_since_s = None
        return self._listener.door.unparsed(request, _parse_error(exc, message))

    def overdue(self, transport: asyncio.Transport, now_s: float) -> str:
        """Return which limit this connection has broken by now, or "" for none."""
        since_s = self.head_since_s
        if since_s is not None and now_s - since_s > self._limits.header_read_s:
            return "header_timeout"
        waiting = transport.get_write_buffer_size()
        moved = self.sent_bytes - waiting - (unacknowledged_bytes(transport) if waiting else 0)
        if waiting == 0 or moved != self._moved:
            self._moved = moved
            self._moved_s = now_s
            return ""
        return "slow_client" if now_s - self._moved_s > self._limits.slow_client_s else ""


class Listener(Server):
    """Makes connections, keeps them, and ends those that break a limit."""

    def __init__(self, door: Door, limits: ConnectionLimits) -> None:
        super().__init__(_serve(door), request_factory=self._begin, handler_cancellation=True)
        self.door = door
        self._limits = limits
        self._open: dict[Connection, asyncio.Transport] = {}
        self._empty = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._interval_s = _interval_s(limits)

    def retune(self, limits: ConnectionLimits) -> None:
        """Take other limits, for open connections as well; the framework's own hold for new ones only."""
        self._limits = limits
        self._interval_s = _interval_s(limits)
        for connection, transport in self._open.items():
            connection.retune(transport, limits)
        if self._timer is not None:
            self._timer.cancel()
            self._wind()

    def __call__(self) -> Connection:
        """Return the protocol for a new connection."""
        return Connection(self, self._limits)

    @property
    def count(self) -> int:
        """How many connections are open."""
        return len(self._open)

    def admit(self, connection: Connection, transport: asyncio.Transport) -> bool:
        """Keep a new connection, or refuse it when there are too many."""
        if len(self._open) >= self._limits.connections_max:
            self.door.cut("too_many_connections")
            return False
        self._open[connection] = transport
        if self._timer is None:
            self._wind()
        return True

    def forget(self, connection: Connection) -> None:
        """Let go of a lost connection."""
        self._open.pop(connection, None)
        if not self._open:
            self._empty.set()

    async def emptied(self, timeout_s: float) -> None:
        """Return when no connection is open any more, or after `timeout_s`."""
        if not self._open:
            return
        self._empty.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        """Drop every connection that is left, and stop sweeping."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for transport in list(self._open.values()):
            transport.abort()

    def _wind(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        for connection, transport in list(self._open.items()):
            reason = connection.overdue(transport, now_s)
            if reason:
                self.door.cut(reason)
                reset(transport)
        if self._open:
            self._wind()

    def _begin(
        self,
        message: Any,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> BaseRequest:
        assert isinstance(protocol, Connection)
        protocol.busy = True
        protocol.body = payload
        protocol.head_since_s = None
        loop = asyncio.get_running_loop()
        size = self._limits.body_max_bytes
        return BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=size)


def _interval_s(limits: ConnectionLimits) -> float:
    shortest_s = min(limits.header_read_s, limits.slow_client_s)
    return min(max(shortest_s / _SWEEPS_PER_LIMIT, _SWEEP_MIN_S), _SWEEP_MAX_S)


def _serve(door: Door) -> Callable[[BaseRequest], Awaitable[StreamResponse]]:
    async def serve(incoming: BaseRequest) -> StreamResponse:
        connection = incoming.protocol
        assert isinstance(connection, Connection)
        try:
            return await door.serve(incoming)
        finally:
            connection.busy = False
            connection.body = None

    return serve


class _NoAccessLog(AbstractAccessLogger):
    """Ours is written elsewhere; the framework's formats a line for every request."""

    @property
    def enabled(self) -> bool:
        """Say no, so that the framework does not even look at the time."""
        return False

    def log(self, request: BaseRequest, response: StreamResponse, time: float) -> None:
        """Write nothing."""


def _parse_error(cause: BaseException | None, message: str | None) -> SmgError:
    if isinstance(cause, LineTooLong) or message == _TOO_MANY_HEADERS:
        error = invalid("the head of the request is too large", None, "header_too_large")
        error.status = 431
        return error
    return invalid("this is not an HTTP request", None, "invalid_http")
