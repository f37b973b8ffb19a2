"""HTTP/1.1 connection: our own server protocol, one task a connection, one wake-up a request.

A request's cost up to the dispatcher is measured in single microseconds, so there is little here:
the parser (`request_parser`) makes requests of bytes, and the connection's only task answers them,
one after the other. A request comes to it as the result of the future it waits for; mostly its body
is there by then. Pipelined requests are queued, and while eight are, no more is read. Limits that
the listener's sweep does not cover are enforced here: idle connections close, a head has its
timeout, and an answer that came before its request's body was read gets time to reach the client
(lingering close).
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from smg_node.core.errors import SmgError
from smg_node.http.message.body_stream import ArrivedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import Body, ByteTaker, Flow, FramingError
from smg_node.http.middleware.authorization import certificate_of, peer_of
from smg_node.http.server.connections import (
    LINGER_S,
    ConnectionLimits,
    Dispatcher,
    Listener,
    Pace,
    count_tls_hello,
)
from smg_node.http.server.request_parser import RequestReader

if TYPE_CHECKING:
    from smg_node.access.certificates import ClientCertificate

_IN_LINE_MAX: Final = 8
"""So many requests of one connection may wait for their turn before it is not read from."""
_STEP_BYTES: Final = 32_768
"""So much is read at a time, lest one packet fill the line with thousands."""

_TLS_HELLO: Final = b"\x16\x03"
"""How a TLS connection begins: a handshake record (RFC 8446 5.1)."""

_log = logging.getLogger("smg_node.http")


class DirectConnection(asyncio.Protocol):
    """One client connection."""

    __slots__ = (
        "_budget",
        "_drained",
        "_head_since_s",
        "_held_back",
        "_idle_since_s",
        "_leaving",
        "_limits",
        "_line",
        "_listener",
        "_pace",
        "_reader",
        "_taker",
        "_task",
        "_unread",
        "_waiter",
        "certificate",
        "peer",
        "sent_bytes",
        "transport",
        "writing_paused",
    )

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._budget = listener.budget
        limits = self._limits = listener.limits
        self._reader = RequestReader(
            self,
            self,
            self._enqueue,
            line_max_bytes=limits.header_line_max_bytes,
            headers_max=limits.header_count_max,
            common=listener.heads,
        )
        self.transport: asyncio.Transport | None = None
        self.writing_paused = False
        self.sent_bytes = 0
        self.peer = ""
        self.certificate: ClientCertificate | None = None
        self._pace = Pace()
        # A list although it is a queue: empty, as it nearly always is, a deque takes ten times as much.
        self._line: list[HttpRequest | SmgError] = []
        self._waiter: asyncio.Future[HttpRequest | SmgError] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._unread = b""
        self._taker: ByteTaker | None = None
        self._leaving = False
        self._held_back = 0
        self._head_since_s: float | None = None
        self._idle_since_s: float | None = None

    # ── What the loop says ───────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or refuse the client."""
        # Not an isinstance: uvloop's transports do not inherit from asyncio's.
        transport = cast("asyncio.Transport", transport)
        if not self._listener.admit(self, transport):
            self._reader.close()
            return
        self.transport = transport
        self.peer = peer_of(transport.get_extra_info("peername"))
        self.certificate = certificate_of(transport)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._answer_all(self._listener.door))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the connection, and cancel its request at once; one that waits to begin when it has."""
        self._listener.forget(self)
        self.transport = None
        self._reader.close()
        if self._awaits_turn:
            del self._line[1:]
            return
        self._line.clear()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Feed bytes; the first ones of a head start its timeout."""
        known, waiter = self._reader.ready, self._waiter
        if (
            known is not None
            and len(data) == known.request_bytes
            and data.startswith(known.whole)
            and waiter is not None
            and not waiter.done()
            and not self._unread
            and not self._line
        ):
            # `KnownHead.read` once more, in here: most requests of a client have the head of its last one.
            body = ArrivedBody(data[known.head_bytes :])
            request = HttpRequest(known.head, body, self)
            budget = self._budget
            if budget.left > 1:
                budget.left -= 1
                waiter.set_result(request)
            else:
                self._enqueue(request)
            return
        if len(data) > _STEP_BYTES or self._unread:
            self._unread += data
            self._read_on()
            return
        self._feed(data)

    def pause_writing(self) -> None:
        """Note that the transport's buffer is full."""
        self.writing_paused = True

    def resume_writing(self) -> None:
        """Note that the client has read enough."""
        self.writing_paused = False
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # ── What the listener says ───────────────────────────────────────────────

    def retune(self, transport: asyncio.Transport, limits: ConnectionLimits) -> None:
        """Apply other limits from now on."""
        self._limits = limits
        self._reader.retune(
            line_max_bytes=limits.header_line_max_bytes, headers_max=limits.header_count_max
        )
        transport.set_write_buffer_limits(high=limits.slow_client_bytes)

    def overdue(self, transport: asyncio.Transport, now_s: float) -> str:
        """Return which limit this connection exceeds now, or "" for none; close it if it idles too
        long.
        """
        limits, since_s = self._limits, self._head_since_s
        if self._waits:
            if since_s is not None:
                if now_s - since_s > limits.header_read_s:
                    return "header_timeout"
            elif self._idle_since_s is None:
                # The first sweep that finds it idle starts its time: a request need not look at a clock.
                self._idle_since_s = now_s
            elif now_s - self._idle_since_s > limits.idle_keepalive_s:
                transport.close()
                return ""
        stands = self._pace.stands(transport, self.sent_bytes, now_s, limits.slow_client_s)
        return "slow_client" if stands else ""

    def leave(self) -> None:
        """Close now if no request is being answered, else after its answer."""
        self._leaving = True
        if self._waits and self.transport is not None:
            self.transport.close()

    def cut(self) -> None:
        """Cancel the request that is being answered."""
        if self._task is not None:
            self._task.cancel()

    # ── What the budget says ─────────────────────────────────────────────────

    def begin(self) -> bool:
        """Begin the first request in line; false if the connection no longer waits for one."""
        waiter = self._waiter
        if not self._awaits_turn or waiter is None:
            return False
        waiter.set_result(self._first_in_line())
        if self.transport is None and self._task is not None:
            # Its client has gone meanwhile. It is counted as any that was read, so it begins, and ends right after.
            asyncio.get_running_loop().call_soon(self._task.cancel)
        return True

    # ── What a wire and a body say ───────────────────────────────────────────

    async def drained(self) -> None:
        """Return when the client has read enough; ConnectionError where it is gone."""
        if self.transport is None:
            raise ConnectionResetError("the client is gone")
        if self.writing_paused:
            # Of a socket any number of tasks wait, and the end of one is not that of the others.
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def upgrade(self, taker: ByteTaker) -> Flow:
        """Give all bytes behind the request that is being answered to `taker`."""
        self._taker = taker
        behind = self._reader.hand_over()
        if behind:
            taker.feed(behind)
        self.resume_reading()
        return self

    def pause_reading(self) -> None:
        """Stop reading, until `resume_reading` was called as often."""
        self._held_back += 1
        transport = self.transport
        if self._held_back == 1 and transport is not None and not transport.is_closing():
            transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again, once every pause has ended."""
        self._held_back -= 1
        transport = self.transport
        if self._held_back or transport is None or transport.is_closing():
            return
        transport.resume_reading()
        if self._unread:
            asyncio.get_running_loop().call_soon(self._read_on)

    @property
    def _waits(self) -> bool:
        """Whether there is no request to be answered."""
        return self._waiter is not None and not self._waiter.done() and not self._line

    @property
    def _awaits_turn(self) -> bool:
        """Whether there is one that waits for the budget."""
        return bool(self._line) and self._waiter is not None and not self._waiter.done()

    # ── Reading ──────────────────────────────────────────────────────────────

    def _read_on(self) -> None:
        unread = memoryview(self._unread)
        at = 0
        while at < len(unread) and not self._held_back and self.transport is not None:
            self._feed(unread[at : at + _STEP_BYTES])
            at += _STEP_BYTES
        self._unread = bytes(unread[at:])

    def _feed(self, data: bytes | memoryview) -> None:
        if self._taker is not None:
            self._taker.feed(bytes(data))
            return
        reader = self._reader
        try:
            reader.feed(data)
        except SmgError as error:
            if bytes(data[:2]) == _TLS_HELLO and self.transport is not None:
                count_tls_hello(self._listener, self.transport)
            # Its turn to be answered comes after the requests before it.
            self._enqueue(error)
        if reader.in_head or self._head_since_s is not None:
            self._time_head()

    def _time_head(self) -> None:
        """Start the timeout when a head begins, and stop it when it is complete."""
        if not self._reader.in_head:
            self._head_since_s = None
        elif self._head_since_s is None:
            self._head_since_s = asyncio.get_running_loop().time()

    def _enqueue(self, incoming: HttpRequest | SmgError) -> None:
        waiter, line = self._waiter, self._line
        if waiter is not None and not waiter.done() and not line:
            if self._budget.spend():
                waiter.set_result(incoming)
                return
            self._budget.wait(self)
        line.append(incoming)
        if len(line) == _IN_LINE_MAX:
            self.pause_reading()

    # ── Answering ────────────────────────────────────────────────────────────

    def _first_in_line(self) -> HttpRequest | SmgError:
        line = self._line
        if len(line) == _IN_LINE_MAX:
            self.resume_reading()
        return line.pop(0)

    async def _read_off(self, body: Body) -> None:
        """Read and drop the rest of a body, for two seconds at most."""
        try:
            async with asyncio.timeout(LINGER_S):
                while await body.more():
                    pass
        except TimeoutError:
            return
        except FramingError:
            await self._linger()

    async def _linger(self) -> None:
        """Leave the client two seconds to read the answer, before a reset by its unread bytes
        destroys it.
        """
        if self.transport is None or self.transport.is_closing():
            return
        if not self.transport.can_write_eof():
            # Over TLS the goodbye of a closing connection ends the answer, and what still comes is read and thrown away.
            return
        try:
            self.transport.write_eof()
        except OSError:
            # It went away just now.
            return
        await asyncio.sleep(LINGER_S)

    async def _answer_all(self, door: Dispatcher) -> None:
        """Answer requests until the connection ends, by the client, by a request, or by us."""
        loop, serve, task = asyncio.get_running_loop(), door.serve, self._task
        try:
            goes_on = True
            while goes_on and not self._leaving:
                if self._line:
                    incoming = self._first_in_line()
                else:
                    self._waiter = waiter = loop.create_future()
                    incoming = await waiter
                if isinstance(incoming, SmgError):
                    door.unparsed(self, incoming)
                    await self._linger()
                    break
                incoming.task = task
                self._idle_since_s = None
                goes_on = await serve(incoming)
                if not incoming.body.whole:
                    await self._read_off(incoming.body)
                    goes_on = goes_on and incoming.body.whole
                if self._head_since_s is not None:
                    # The time for the next head begins when somebody waits for it.
                    self._head_since_s = loop.time()
        except Exception:
            # A door: a mistake of ours ends this connection, and no other.
            _log.exception("a connection failed because of a mistake of ours")
            if self.transport is not None:
                self.transport.abort()
        finally:
            self._reader.close()
            if self.transport is not None:
                self.transport.close()
