"""Connections of one listener: their maximum number, their limits, and the enforcing sweep.

The same for either server. A listener makes and keeps the connections of one port: it refuses those
beyond a number, and closes those that are slow with a request's head or do not read their answer.
One coarse sweep checks all of them; a timer each would cost every request.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from smg_node.core.errors import SmgError
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ClientLine
from smg_node.http.message.response_writer import acknowledged_bytes, reset, unacknowledged_bytes
from smg_node.http.server.begin_budget import BeginBudget

_log: Final = logging.getLogger("smg_node.http")
LINGER_S: Final = 2.0
"""After an early answer the rest of a body is read and thrown away for so long: closing at once would destroy the
answer before the client has seen it."""
_SWEEPS_PER_LIMIT: Final = 4
_SWEEP_MIN_S: Final = 0.02
_SWEEP_MAX_S: Final = 5.0
_FULL_BODY: Final = (
    b'{"error":{"message":"this node has as many connections as it may have",'
    b'"type":"rate_limit_error","param":null,"code":"too_many_connections"}}'
)
FULL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nretry-after: 1\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_FULL_BODY), _FULL_BODY)
"""What a client is told that is turned away."""


class Dispatcher(Protocol):
    """Answers requests."""

    async def serve(self, incoming: HttpRequest) -> bool:
        """Answer one request and say whether the connection goes on; CancelledError when its client has gone."""
        ...

    def unparsed(self, line: ClientLine, error: SmgError) -> None:
        """Answer bytes that are no request."""
        ...

    def cut(self, reason: str) -> None:
        """Count a connection that a limit refused or ended."""
        ...


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, and the maximum number of connections."""

    connections_max: int
    body_max_bytes: int
    header_line_max_bytes: int
    header_count_max: int
    header_read_s: float
    idle_keepalive_s: float
    slow_client_bytes: int
    slow_client_s: float


class Kept(Protocol):
    """A connection as its listener sees it."""

    def retune(self, transport: asyncio.Transport, limits: ConnectionLimits) -> None:
        """Apply other limits from now on."""
        ...

    def overdue(self, transport: asyncio.Transport, now_s: float) -> str:
        """Return which limit this connection exceeds now, or "" for none."""
        ...

    def leave(self) -> None:
        """Close now if no request is being answered, else after its answer."""
        ...

    def cut(self) -> None:
        """Cancel the request that is being answered."""
        ...


class Pace:
    """Reading pace of one connection's client."""

    __slots__ = ("_moved", "_moved_s")

    def __init__(self) -> None:
        self._moved = 0
        self._moved_s = 0.0

    def stands(
        self, transport: asyncio.Transport, sent_bytes: int, now_s: float, limit_s: float
    ) -> bool:
        """Whether the client read nothing for `limit_s`, although there are unread bytes."""
        waiting = transport.get_write_buffer_size()
        moved = 0
        if waiting:
            # What a TLS layer has encrypted and not sent yet shows nowhere; what the peer acknowledges does.
            acknowledged = None
            if transport.get_extra_info("sslcontext") is not None:
                acknowledged = acknowledged_bytes(transport)
            if acknowledged is None:
                moved = sent_bytes - waiting - unacknowledged_bytes(transport)
            else:
                moved = acknowledged
        if waiting == 0 or moved != self._moved:
            self._moved = moved
            self._moved_s = now_s
            return False
        return now_s - self._moved_s > limit_s


class Listener:
    """Makes the connections of one port, keeps them, and ends those that exceed a limit."""

    def __init__(
        self,
        door: Dispatcher,
        limits: ConnectionLimits,
        make: Callable[["Listener"], asyncio.Protocol],
    ) -> None:
        """Take `make`, which returns the protocol of a new connection; that calls `admit`, and in
        the end `forget`.
        """
        self.door = door
        self.limits = limits
        self.budget = BeginBudget()
        """How many requests may begin in a turn of the loop."""
        self._make = make
        self._most = sys.maxsize
        self._open: dict[Kept, asyncio.Transport] = {}
        self._empty = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._interval_s = _interval_s(limits)
        self.hello_said = False

    def __call__(self) -> asyncio.Protocol:
        """Return the protocol for a new connection."""
        return self._make(self)

    def retune(self, limits: ConnectionLimits) -> None:
        """Apply other limits, to open connections as well."""
        self.limits = limits
        self._interval_s = _interval_s(limits)
        for connection, transport in self._open.items():
            connection.retune(transport, limits)
        if self._timer is not None:
            self._timer.cancel()
            self._wind()

    def bound_connections(self, most: int) -> None:
        """Keep at most so many connections, whatever the limits say."""
        self._most = most

    @property
    def count(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def admit(self, connection: Kept, transport: asyncio.Transport) -> bool:
        """Keep a new connection, or refuse it when there are too many."""
        if len(self._open) >= min(self.limits.connections_max, self._most):
            self.door.cut("too_many_connections")
            transport.write(FULL)
            transport.close()
            return False
        transport.set_write_buffer_limits(high=self.limits.slow_client_bytes)
        self._open[connection] = transport
        if self._timer is None:
            self._wind()
        return True

    def forget(self, connection: Kept) -> None:
        """Remove a lost connection."""
        self._open.pop(connection, None)
        if not self._open:
            self._empty.set()

    def leave(self) -> None:
        """Close idle connections, and the others after their answer."""
        for connection in list(self._open):
            connection.leave()

    def cut(self) -> None:
        """Cancel every request that is being answered."""
        for connection in list(self._open):
            connection.cut()

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

    def drop(self) -> None:
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


def count_tls_hello(listener: Listener, transport: asyncio.Transport) -> None:
    """Count a client that speaks TLS to a plain port, and log the first one."""
    if transport.get_extra_info("sslcontext") is not None:
        return
    listener.door.cut("tls_on_plain_port")
    if not listener.hello_said:
        listener.hello_said = True
        _log.warning(
            "a client spoke TLS to a port of plain HTTP; http.tls.certificate makes it speak TLS"
        )


def _interval_s(limits: ConnectionLimits) -> float:
    shortest_s = min(limits.header_read_s, limits.slow_client_s, limits.idle_keepalive_s)
    return min(max(shortest_s / _SWEEPS_PER_LIMIT, _SWEEP_MIN_S), _SWEEP_MAX_S)
