"""HTTP/2 (h2) transport: one or two connections to one engine, opened on demand, more to a crowded
one.

A call goes out at once where a connection has room, and waits in order where one is being opened or
the engine takes no more at once. One task connects, the transport's own: a call that waits for it
may be dropped by its reader without harm to the others that wait. After a failure calls fail at
once for a moment that grows up to a second, so that a dead engine does not cost every call a
connect timeout.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from smg_node.config.address import split_host_port
from smg_node.engines.transport.deadline_queue import TICK_S, Deadlines
from smg_node.engines.transport.h2.connection_io import Link
from smg_node.engines.transport.h2.message_stream import DROPPED, LATE, H2Stream, Notice
from smg_node.engines.transport.h2.protocol.request_head import RequestHeads
from smg_node.engines.transport.h2.protocol.response_head import Ending
from smg_node.engines.transport.message_pieces import Body
from smg_node.engines.transport.tls_trust import ALPN
from smg_node.engines.transport.transport import (
    MessageStream,
    StatusCode,
    TransportError,
    TransportOptions,
    check_size,
)

NOTICES_MAX: Final = 1024
"""Calls without a reader that may be under way; each is a few hundred bytes and ends by its timeout."""
WAITING_MAX: Final = 1024
"""Calls that may wait for a connection or for an engine that takes no more at once."""
CONNECTIONS_MAX: Final = 2
"""A second one is opened where the first takes no more calls; more of them cost more than they give."""
CROWDED_MAX: Final = 8
"""So many are opened where each takes as many calls as HTTP/2 wants of a server, and calls wait nevertheless."""
_RETRY_FIRST_S: Final = 0.1
_RETRY_MAX_S: Final = 1.0
_RETRY_GROWTH: Final = 1.6


class H2Transport:
    """See `Transport`. Make it inside the running loop that will use it."""

    def __init__(self, target: str, options: TransportOptions) -> None:
        assert 1 <= options.connections <= CONNECTIONS_MAX, (
            "one connection per stream loses, and so does one for all"
        )
        self.target = target
        self._options = options
        self._connections = options.connections
        self._message_max_bytes = options.message_max_bytes
        self._ping_interval_s = options.ping_interval_s
        self._loop = asyncio.get_running_loop()
        self._heads = RequestHeads(target, secure=options.trust is not None)
        self._links: list[Link] = []
        self._all: set[Link] = set()
        self._waiting: OrderedDict[H2Stream, tuple[bytes, Body, bool]] = OrderedDict()
        """Calls that have not begun, with their headers and requests, and whether they go first."""
        self._deadlines = Deadlines()
        self._timer: asyncio.TimerHandle | None = None
        self._notices = 0
        self._connecting: asyncio.Task[None] | None = None
        self._retry_s = 0.0
        self._retry_at = 0.0
        self._failure = Ending(StatusCode.UNAVAILABLE)
        self._closed = False

    # ── What callers do ─────────────────────────────────────────────────────

    async def unary(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        work: bool = False,
    ) -> bytes:
        """See `Transport`."""
        if self._closed or len(request) > self._message_max_bytes:
            self._check_large(request)
        block = self._heads.block(method, headers, timeout_s)
        stream = H2Stream(self, self._loop, self._loop.time() + timeout_s)
        if work:
            self._place(stream, block, request)
        else:
            self._place_first(stream, block, request)
        answers: list[bytes] = []

        def take(batch: Sequence[bytes]) -> bool:
            answers.extend(batch)
            return len(answers) < 2

        try:
            await stream.pour(take)
        finally:
            stream.cancel()
        if len(answers) != 1:
            raise TransportError(StatusCode.INTERNAL, "not one answer, as was promised")
        return answers[0]

    def stream(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> MessageStream:
        """See `Transport`."""
        if self._closed or len(request) > self._message_max_bytes:
            self._check_large(request)
        block = self._heads.block(method, headers, timeout_s)
        loop = self._loop
        stream = H2Stream(self, loop, loop.time() + timeout_s)
        self._place(stream, block, request)
        return stream

    def notify(
        self,
        method: str,
        request: Body,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """See `Transport`."""
        if self._closed or self._notices >= NOTICES_MAX:
            return False
        block = self._heads.block(method, headers, timeout_s)
        self._notices += 1
        notice = Notice(self, self._loop, self._loop.time() + timeout_s)
        self._place_first(notice, block, request)
        return True

    async def close(self) -> None:
        """See `Transport`."""
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
            with suppress(asyncio.CancelledError):
                await self._connecting
        for stream in self._deadlines.items():
            stream.end(DROPPED)
        links = tuple(self._all)
        for link in links:
            link.hang_up(DROPPED.message)
        for link in links:
            await link.over
        if self._timer is not None:
            self._timer.cancel()

    # ── What calls and connections tell ─────────────────────────────────────

    def ended(self, stream: H2Stream) -> None:
        """See `message_stream.Owner`."""
        self._deadlines.remove(stream)
        if stream.link is None:
            self._waiting.pop(stream, None)
        if isinstance(stream, Notice):
            self._notices -= 1
        if self._waiting:
            # Not from inside the wake-up that ended it.
            self._loop.call_soon(self.room)

    def room(self) -> None:
        """See `connection_io.Host`."""
        while self._waiting:
            stream, (block, request, first) = next(iter(self._waiting.items()))
            link = self._free_first() if first else self._free()
            if link is None:
                break
            del self._waiting[stream]
            stream.link = link
            link.begin(stream, block, request)
        self._connect_if_wanted()

    def leaves(self, link: Link) -> None:
        """See `connection_io.Host`."""
        if link in self._links:
            self._links.remove(link)
            if link.calm:
                self._ping_interval_s *= 2
            self.room()

    # ── Within ──────────────────────────────────────────────────────────────

    def _check_large(self, request: Body) -> None:
        """Refuse a request that is too large for its kind; or any, if this is closed."""
        if self._closed:
            raise TransportError(StatusCode.CANCELLED, "the transport is closed")
        check_size(request, self._options)

    def _place(self, stream: H2Stream, block: bytes, request: Body) -> None:
        """Begin a call, let it wait, or end it where neither is possible."""
        if self._deadlines.add(stream, stream.due_at) and self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._tick)
        link = None if self._waiting else self._free()
        if link is None:
            self._let_wait(stream, block, request, first=False)
            self._connect_if_wanted()
            return
        stream.link = link
        link.begin(stream, block, request)
        if len(self._links) < self._connections:
            self._connect_if_wanted()

    def _place_first(self, stream: H2Stream, block: bytes, request: Body) -> None:
        """The same for a call that passes all that wait."""
        if self._deadlines.add(stream, stream.due_at) and self._timer is None:
            self._timer = self._loop.call_later(TICK_S, self._tick)
        link = self._free_first()
        if link is None:
            self._let_wait(stream, block, request, first=True)
            self._connect_if_wanted()
            return
        stream.link = link
        link.begin(stream, block, request)
        if len(self._links) < self._connections:
            self._connect_if_wanted()

    def _let_wait(self, stream: H2Stream, block: bytes, request: Body, *, first: bool) -> None:
        if not self._links and self._loop.time() < self._retry_at:
            stream.end(self._failure)
        elif len(self._waiting) >= WAITING_MAX and not first:
            stream.end(Ending(StatusCode.UNAVAILABLE, "too many calls wait for this engine"))
        else:
            self._waiting[stream] = (block, request, first)
            if first:
                self._waiting.move_to_end(stream, last=False)

    def _free(self) -> Link | None:
        """Return the connection that takes most calls more, if any takes one."""
        best: Link | None = None
        most = 0
        for link in self._links:
            if (more := link.places()) > most:
                best, most = link, more
        return best

    def _free_first(self) -> Link | None:
        """Return a connection for a priority call: places are kept for such calls where all others
        are taken.
        """
        for link in self._links:
            if link.places_kept() > 0:
                return link
        return None

    def _connect_if_wanted(self) -> None:
        wanted = self._connections
        if self._waiting:
            generous = all(link.generous for link in self._links)
            wanted = CROWDED_MAX if generous else CONNECTIONS_MAX
        idle = not self._waiting and not self._links
        if idle or self._closed or self._connecting is not None or len(self._links) >= wanted:
            return
        if self._loop.time() >= self._retry_at:
            self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        """Open one more connection, and tell the waiting calls how it went."""
        try:
            link = await self._open()
        except Exception as error:  # a call must not wait for what will never be, whatever it is
            self._fail(error)
        else:
            self._retry_s = self._retry_at = 0.0
            self._links.append(link)
        self._connecting = None
        self.room()

    async def _open(self) -> Link:
        link = Link(self, self._message_max_bytes)
        try:
            async with asyncio.timeout(self._options.connect_s):
                await self._shake_hands(link)
                self._all.add(link)
                link.over.add_done_callback(lambda _: self._all.discard(link))
                await link.ready
            if link.places() <= 0:
                raise ConnectionError("it takes no calls")
        except BaseException:
            link.hang_up("it could not be opened")
            raise
        return link

    async def _shake_hands(self, link: Link) -> None:
        host, port = split_host_port(self.target)
        trust = self._options.trust
        wired = cast(asyncio.Protocol, link)
        if trust is None:
            await self._loop.create_connection(lambda: wired, host, port)
            return
        context = await asyncio.to_thread(trust.context)
        wire, _ = await self._loop.create_connection(
            lambda: wired, host, port, ssl=context, server_hostname=self._options.tls_name or host
        )
        if wire.get_extra_info("ssl_object").selected_alpn_protocol() != ALPN:
            raise ConnectionError("it does not speak HTTP/2 over TLS")

    def _fail(self, error: Exception) -> None:
        why = str(error) or (
            f"no answer within {self._options.connect_s:g} s"
            if isinstance(error, TimeoutError)
            else type(error).__name__
        )
        self._failure = Ending(StatusCode.UNAVAILABLE, f"failed to connect to {self.target}: {why}")
        self._retry_s = min(max(self._retry_s * _RETRY_GROWTH, _RETRY_FIRST_S), _RETRY_MAX_S)
        self._retry_at = self._loop.time() + self._retry_s
        if not self._links:
            for stream in tuple(self._waiting):
                stream.end(self._failure)

    def _tick(self) -> None:
        now_s = self._loop.time()
        late = self._deadlines.due(now_s)
        # Before any call is told: what begins meanwhile finds the timer as it is.
        again = self._deadlines.waiting
        self._timer = self._loop.call_later(TICK_S, self._tick) if again else None
        for stream in late:
            stream.end(LATE)
        for link in tuple(self._all):
            link.look(now_s, self._ping_interval_s)
        if self._waiting:
            # A second connection may have failed a while ago.
            self._connect_if_wanted()
