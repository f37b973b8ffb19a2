"""Connection of the load generator: HTTP/1.1, one request at a time, with minimal CPU per token.

While an answer comes, its bytes are only kept, and its tokens counted at their arrival by looking
for the bytes that start a token's text. Reading it is the judge's business, after it has ended.
"""

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final, cast

from smg_chaos.bench.load.answer_forms import FORMS
from smg_chaos.bench.load.job import Api

_END: Final = b"\r\n0\r\n\r\n"
_HEAD_MAX: Final = 64 * 1024
_ANSWER_MAX: Final = 64 * 1024 * 1024


class Exchange:
    """One request and what came of it; times are of `perf_counter`, in seconds."""

    __slots__ = (
        "asked_s",
        "body",
        "chunked",
        "ended_s",
        "first_s",
        "gap_s",
        "last_s",
        "status",
        "tokens",
    )

    def __init__(self, asked_s: float) -> None:
        self.asked_s = asked_s
        """When it was due, which is before it was sent if no connection was free."""
        self.first_s = 0.0
        self.last_s = 0.0
        self.ended_s = 0.0
        self.gap_s = 0.0
        """The longest time between two arrivals of tokens."""
        self.status = 0
        self.chunked = False
        self.tokens = 0
        """Tokens that were seen so far."""
        self.body = b""


class Connection(asyncio.Protocol):
    """`ended` is called with every exchange, and the problem if it did not end as it should; `gap` with the seconds
    between two arrivals of tokens.
    """

    def __init__(
        self,
        lane: int,
        *,
        ended: Callable[["Connection", Exchange, str], None],
        lost: Callable[["Connection"], None],
        api: Api = "chat",
        gap: Callable[[float], None] | None = None,
    ) -> None:
        self._gap = gap
        self._content, self._no_content = FORMS[api].content, FORMS[api].no_content
        self.lane = lane
        self.seen = 0
        """Tokens seen since the connection was made."""
        self._ended = ended
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._head = b""
        self._reading_body = False
        self._parts: list[bytes] = []
        self._received = 0
        self._wanted = -1
        self._close = False

    # ── What the loop calls ──────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End what is open: successfully, if only the closing by the peer could end it."""
        self._transport = None
        if self._exchange is not None:
            whole = self._reading_body and self._wanted < 0 and not self._exchange.chunked
            self._finish("" if whole and exc is None else "the connection was lost")
        self._lost(self)

    def data_received(self, data: bytes) -> None:
        """Keep the bytes, count the tokens, and see whether the answer has ended."""
        exchange = self._exchange
        if exchange is None:
            self._abort()
            return
        if not self._reading_body:
            data = self._read_head(data, exchange)
            if not self._reading_body:
                return
        tokens = data.count(self._content) - data.count(self._no_content)
        if tokens:
            now_s = perf_counter()
            if not exchange.tokens:
                exchange.first_s = now_s
            else:
                gap_s = now_s - exchange.last_s
                exchange.gap_s = max(exchange.gap_s, gap_s)
                if self._gap is not None:
                    self._gap(gap_s)
            exchange.last_s = now_s
            exchange.tokens += tokens
            self.seen += tokens
        self._parts.append(data)
        self._received += len(data)
        if self._has_ended(data, exchange):
            self._finish("")
        elif self._received > _ANSWER_MAX:
            self._finish("the answer does not end")
            self._abort()

    # ── Asking ───────────────────────────────────────────────────────────────

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def expect(self, asked_s: float) -> None:
        """Await the answer to a request that was due then and was sent by somebody else."""
        assert self._exchange is None, "one request at a time"
        self._exchange = Exchange(asked_s)

    def ask(self, request: bytes, asked_s: float) -> None:
        """Send a request, and await its answer."""
        assert self._transport is not None, "the connection is open"
        self.expect(asked_s)
        self._transport.write(request)

    def close(self) -> None:
        """Close the connection; what is open ends with a problem."""
        if self._transport is not None:
            self._transport.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ── Reading ──────────────────────────────────────────────────────────────

    def _read_head(self, data: bytes, exchange: Exchange) -> bytes:
        """Return what follows the head, once that is complete."""
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            if len(self._head) > _HEAD_MAX:
                self._finish("the head does not end")
                self._abort()
            return b""
        head, rest = self._head[:end].lower(), self._head[end + 4 :]
        exchange.status = int(head[9:12]) if head[9:12].isdigit() else 0
        exchange.chunked = b"\r\ntransfer-encoding: chunked" in head
        self._close = b"\r\nconnection: close" in head
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            self._wanted = int(head[at + 17 :].partition(b"\r\n")[0])
        self._reading_body = True
        return rest

    def _has_ended(self, data: bytes, exchange: Exchange) -> bool:
        if not exchange.chunked:
            return 0 <= self._wanted <= self._received
        if len(data) >= len(_END):
            return data.endswith(_END)
        # The end itself may come in pieces; and an answer of no chunks has no line before it.
        last = b"".join(self._parts[-len(_END) :])
        return last.endswith(_END) or last == _END[2:]

    def _finish(self, problem: str) -> None:
        exchange, self._exchange = self._exchange, None
        assert exchange is not None, "something was asked"
        exchange.body = b"".join(self._parts)
        exchange.ended_s = perf_counter()
        self._head, self._parts = b"", []
        self._reading_body, self._received, self._wanted = False, 0, -1
        if self._close:
            self.close()
        self._ended(self, exchange, problem)
