"""Connection I/O: the socket side of one HTTP/2 connection to an engine: reads, writes, pings and
its end.
"""

import asyncio
import logging
import socket
from typing import Final, Protocol, cast

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.connection import Connection
from smg_node.engines.transport.h2.protocol.response_head import Ending
from smg_node.engines.transport.h2.protocol.send_window import WRITE_BYTES
from smg_node.engines.transport.h2.protocol.stream_state import Flow
from smg_node.engines.transport.message_pieces import Body
from smg_node.engines.transport.transport import StatusCode

PING_ANSWER_S: Final = 10.0
"""How long an engine that was asked for a sign of life may stay silent, and its machine leave what we sent unacknowledged."""
UNREAD_MAX_BYTES: Final = 16 * 1024 * 1024
"""What may wait for a server that asks and asks and does not read."""

_OURS: Final = Ending(StatusCode.INTERNAL, "the answer could not be handed out")
_log = logging.getLogger("smg_node.engines")


class Host(Protocol):
    """Owner of a connection: is told of room and of the connection's end."""

    def room(self) -> None:
        """Note that there may be room for one more call."""
        ...

    def leaves(self, link: "Link") -> None:
        """Note that a connection takes no new calls; perhaps more than once."""
        ...


class Link:
    """One connection. `ready` is done when the server has sent its SETTINGS, `over` when all has
    ended.

    It is an `asyncio.Protocol` by its methods alone: what is compiled inherits from nothing that is not.
    """

    def __init__(self, host: Host, message_max_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._host = host
        self._core = Connection(message_max_bytes)
        self._transport: asyncio.Transport | None = None
        self._full = False
        self._awake = False
        self._due = False
        self._opened = False
        self._heard_at = self._loop.time()
        self._asked_at: float | None = None
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.over: asyncio.Future[None] = self._loop.create_future()

    # ── What its owner does ─────────────────────────────────────────────────

    def places(self) -> int:
        """Return how many more calls may be begun here, beside places that are kept; none if that is not above 0."""
        core = self._core
        return core.calls_max - len(core.flows)

    def places_kept(self) -> int:
        """Return the same for calls that go before all others."""
        core = self._core
        return core.flows_max - len(core.flows)

    @property
    def generous(self) -> bool:
        """Whether it takes so many calls that a limit on calls is not meant as the engine's own."""
        return self._core.generous

    @property
    def calm(self) -> bool:
        """Whether the server has asked for fewer pings."""
        return self._core.calm

    def begin(self, flow: Flow, block: bytes, message: Body) -> None:
        """Begin a call; there was room."""
        core = self._core
        core.begin(flow, block, message)
        if len(core.flows) == 1:
            # There is nothing else to wait for.
            self._flush()
        elif not self._due:
            # Written once for all calls that begin in one turn of the loop: what wakes a sleeping engine costs more
            # than all the rest of a write (30 of 390 us a request, with 32 clients).
            self._due = True
            self._loop.call_soon(self._flush)

    def drop(self, flow: Flow, ending: Ending) -> None:
        """End a call from our side."""
        self._core.drop(flow, ending)
        if not self._awake:
            self._flush()
            self._settle()

    def refill(self, flow: Flow) -> None:
        """Let the server send more of a call's answer."""
        self._core.refill(flow)
        if not self._awake:
            self._flush()

    def look(self, now_s: float, ping_interval_s: float) -> None:
        """Send a ping where nothing came for so long, and close the connection where no answer
        comes.
        """
        if self._asked_at is not None and self._heard_at >= self._asked_at:
            self._asked_at = None
        if not self._core.flows:
            return
        if self._asked_at is None:
            if now_s - self._heard_at >= ping_interval_s:
                self._asked_at = now_s
                self._core.ping()
                self._flush()
        elif now_s - self._asked_at >= PING_ANSWER_S:
            self.hang_up("the server did not answer a ping")

    def hang_up(self, why: str) -> None:
        """Drop the connection at once; what runs on it ends with UNAVAILABLE."""
        ended = self._core.lost(why)
        if self._transport is not None:
            self._transport.abort()
        for flow in ended:
            flow.deliver()
        self._settle()

    # ── What the socket does ────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the connection preface."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != getattr(socket, "AF_UNIX", None):
            # uvloop and asyncio do so as well; that tokens are not held back for 40 ms is ours to see to.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                # A machine that was cut off for a while would else find this connection asleep between two attempts to
                # repeat itself, which are as far apart as the cut was long, and fail calls meanwhile.
                sock.setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(PING_ANSWER_S * 1000)
                )
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Hand what came to the calls it is for, and write the answers to it, once."""
        self._heard_at = self._loop.time()
        core = self._core
        self._awake = True
        for flow in core.receive(data):
            flow.touched = False
            try:
                flow.deliver()
            except Exception:
                # A mistake of ours in one call must not reach the others on this connection.
                _log.exception("an answer could not be handed out")
                core.drop(flow, _OURS, frames.INTERNAL_ERROR)
        self._awake = False
        if core.sending.out or core.sending.waiting:
            self._flush()
        if not self._opened and core.greeted:
            self._opened = True
            if not self.ready.done():
                self.ready.set_result(None)
        if not core.flows_max:
            self._settle()

    def eof_received(self) -> None:
        """Close the connection, as nothing can follow."""

    def pause_writing(self) -> None:
        """Hold large requests back: the server does not read as fast as this node writes."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on with them."""
        self._full = False
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        """End what ran here."""
        said = f": {error}" if error is not None else ""
        ended = self._core.lost(f"the connection was closed{said}")
        self._transport = None
        for flow in ended:
            flow.deliver()
        self._settle()
        if not self.over.done():
            self.over.set_result(None)

    # ── Within ──────────────────────────────────────────────────────────────

    def _flush(self) -> None:
        self._due = False
        transport, sending = self._transport, self._core.sending
        if transport is None or transport.is_closing():
            sending.out.clear()
            return
        if sending.out and not (sending.waiting and not self._full and sending.window > 0):
            # Else it goes with the first of what waits.
            transport.write(sending.taken())
        while sending.waiting and not self._full and sending.window > 0:
            sending.pump(WRITE_BYTES)
            if not sending.out:
                break
            transport.writelines(sending.views())
        if self._full and transport.get_write_buffer_size() > UNREAD_MAX_BYTES:
            self._loop.call_soon(self.hang_up, "the server does not read")

    def _settle(self) -> None:
        """See to what follows from a connection that ends, and from a call that has ended."""
        core = self._core
        if core.broken is not None or core.leaving:
            self._host.leaves(self)
            if not self.ready.done():
                self.ready.set_exception(ConnectionError(core.broken or "the server goes away"))
                self.ready.exception()  # no ping is needed
            if self._transport is not None and not core.flows:
                self._transport.close()
