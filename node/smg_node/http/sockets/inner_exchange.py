"""Inner exchange: a request that a socket makes of its own node, and the answer as it comes.

What a socket is asked for is mostly what a route answers already, with its credential checked anew,
its limits, its errors and its line in the access log. So a socket asks that route, by a request that
never was on a network: it has the handshake's client and credential, and its answer is written to a
line that is read here. Where another process of the node answers, the request is passed on to it as
any other is.

Backpressure goes all the way: while too much of the answer is unread the line says so, and whoever
writes it waits. The exchange is cancelled as a request is whose client leaves.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import httptools

from smg_node.http.message.body_stream import ArrivedBody
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.request_head import ByteTaker, ClientLine, Flow, Head
from smg_node.http.sockets.offered_key import PROTOCOLS
from smg_node.http.sockets.own_door import Serves

if TYPE_CHECKING:
    from smg_node.access.certificates import ClientCertificate

UNREAD_MAX_BYTES: Final = 262_144
"""While so much of an answer is unread, no more of it is made."""
_ENDS_HERE: Final = frozenset(
    {
        *("connection", "upgrade", "keep-alive", "proxy-connection", "te", "trailer", "expect"),
        *("content-length", "content-type", "content-encoding", "transfer-encoding"),
        *("idempotency-key", "if-match", "if-none-match", "x-request-id"),
        *("sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", PROTOCOLS),
    }
)
"""Headers of a handshake that say nothing of what is asked over its socket."""


def inner_head(handshake: Head, method: str, target: str, *, without: frozenset[str]) -> Head:
    """Return the head of requests made for the client of a handshake, with JSON bodies; `without` are more headers that
    are not its.

    One head does for all of them: what the middleware finds about it holds for the next.
    """
    kept = [
        (name, value)
        for name, value in handshake.raw
        if name.decode("latin-1").lower() not in _ENDS_HERE | without
    ]
    kept += [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    headers: dict[str, str] = {}
    for name, value in kept:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape"))
    return Head(method, target, headers, kept, http11=True, keep_alive=True)


class InnerExchange:
    """One request, from `begin` to `cancel`; its reader awaits `head`, then `more` until that returns b""."""

    def __init__(self, serves: Serves, head: Head, body: bytes, client: ClientLine) -> None:
        self._serves = serves
        self._line = _InnerLine(client)
        self._request = HttpRequest(head, ArrivedBody(body), self._line)
        self._task: asyncio.Task[None] | None = None
        self.answer: Final = self._line.answer

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Have it answered by a task of this group from now on."""
        self._task = group.create_task(self._serve())

    async def head(self) -> int:
        """Return the status when it is known; 0 where the answer ended before it had one."""
        while not self.answer.status and not self.answer.over:
            await self.answer.changed()
        return self.answer.status

    async def more(self) -> bytes:
        """Return the bytes of the body since the last call, b"" at the end, whether that is its own or not."""
        while not self.answer.unread and not self.answer.over:
            await self.answer.changed()
        data = self.answer.take()
        self._line.read()
        return data

    def cancel(self) -> None:
        """Cancel what is left of it; its group waits for the end."""
        if self._task is not None and not self.answer.over:
            self._line.drop()
            self._task.cancel()

    async def _serve(self) -> None:
        self._request.task = asyncio.current_task()
        try:
            await self._serves.serve(self._request)
        finally:
            self._line.drop()


class Answer:
    """The answer, as far as it has come: a parser's target."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.unread = bytearray()
        self.over = False
        """Whether no more of it comes."""
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes as they are written."""
        parser = self._parser
        if parser is not None:
            parser.feed_data(data)
            self._wake()

    def end(self) -> None:
        """Take the end."""
        self.over = True
        # The two know each other: without this only the garbage collector could part them.
        self._parser = None
        self._wake()

    def take(self) -> bytes:
        """Return what is unread."""
        data = bytes(self.unread)
        self.unread.clear()
        return data

    async def changed(self) -> None:
        """Return when more has come, or the end."""
        assert self._waiter is None, "an answer has one reader"
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ── What the grammar says ────────────────────────────────────────────────

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers[name.decode("latin-1").lower()] = value.decode("utf-8", "surrogateescape")

    def on_headers_complete(self) -> None:
        """The head is complete."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        # An interim answer is none.
        self.status = status if status >= 200 else 0

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        self.unread += part


class _InnerLine:
    """The connection of such a request: what is written to it is read here."""

    def __init__(self, client: ClientLine) -> None:
        self.peer = client.peer
        self.certificate: ClientCertificate | None = client.certificate
        self.tenant: Final[str] = getattr(client, "tenant", "")
        """The tenant that a believed proxy named; "" without one."""
        self.secure: Final[bool | None] = getattr(client, "secure", None)
        self.sent_bytes = 0
        self.answer: Final = Answer()
        self._transport: _InnerTransport | None = _InnerTransport(self)
        self._drained: asyncio.Future[None] | None = None

    @property
    def transport(self) -> asyncio.Transport | None:
        """What is written to; None once the request was dropped."""
        return self._transport

    @property
    def writing_paused(self) -> bool:
        """Whether too much is unread."""
        return len(self.answer.unread) > UNREAD_MAX_BYTES

    async def drained(self) -> None:
        """Return when enough was read; ConnectionError where the request was dropped."""
        if self.answer.over:
            raise ConnectionResetError("nobody reads the answer any more")
        if self.writing_paused:
            self._drained = asyncio.get_running_loop().create_future()
            try:
                await self._drained
            finally:
                self._drained = None

    def upgrade(self, taker: ByteTaker) -> Flow:
        """Refuse: such a request offers no other protocol."""
        raise AssertionError("a request of a socket offers no other protocol")

    def read(self) -> None:
        """Let the writer go on."""
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def drop(self) -> None:
        """Let nothing more be written."""
        # The two know each other as well.
        self._transport = None
        if not self.answer.over:
            self.answer.end()
        self.read()


class _InnerTransport(asyncio.Transport):
    """The line's transport, as far as answers use one. There is no socket behind it that could be asked for."""

    def __init__(self, line: _InnerLine) -> None:
        super().__init__()
        self._line = line

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Have it read."""
        self._line.answer.feed(bytes(data))

    def is_closing(self) -> bool:
        """Return whether nothing more is read."""
        return self._line.answer.over

    def close(self) -> None:
        """End the answer here."""
        self._line.drop()

    def abort(self) -> None:
        """End the answer here."""
        self._line.drop()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Return the bytes between which a writer goes on, and waits."""
        return 0, UNREAD_MAX_BYTES

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: the limit is fixed."""

    def get_write_buffer_size(self) -> int:
        """Return the bytes that are unread."""
        return len(self._line.answer.unread)


def limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an answer that tell its client when to come again, and by which name to ask for it."""
    return {
        name: value
        for name, value in headers.items()
        if name.startswith(("x-ratelimit-", "retry-after", "x-should-retry", "x-smg-limit"))
        or name == "x-request-id"
    }
