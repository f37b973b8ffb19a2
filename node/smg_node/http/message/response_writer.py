"""Response writer: writes one answer to the client's transport, and knows whether it is read.

Answers are written to the transport directly, head and body in one write, and a stream's frames one
write each. That costs a fraction of what the framework's response objects cost, and it keeps later
stages independent of the framework. All methods but `drain` are synchronous, so that a timer may
call them as well as the request's own task.
"""

import asyncio
import fcntl
import socket
import struct
import sys
import termios
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from smg_node.http.message import chunk_writer as chunking
from smg_node.http.message.reply import JSON, HeadWriter, Reply

# SO_LINGER with a time of zero: closing sends RST, so that a cut answer cannot pass for a whole one.
_RESET: Final = struct.pack("ii", 1, 0)
_TCP_INFO_BYTES: Final = 128
"""Linux's `tcp_info` up to the end of `tcpi_bytes_acked` (linux/tcp.h, since 4.1)."""
_BODILESS: Final = frozenset({204, 304})
_CHUNKED: Final = "transfer-encoding: chunked"
_JSON_LINE: Final = f"content-type: {JSON}"
_GONE: Final = "the client is gone"


class Line(chunking.Line, Protocol):
    """A client connection, as far as a wire needs it."""

    async def drained(self) -> None:
        """Return when the client has read enough; ConnectionError if it never will."""
        ...


class Wire(msgspec.Struct, eq=False):
    """Writes one answer on `line`: either `reply`, or `begin`, `chunk`…, `end`. A struct, as a request is."""

    line: Line
    heads: HeadWriter
    http11: bool
    """Whether the client speaks HTTP/1.1; 1.0 otherwise."""
    keep_alive: bool
    """Whether the connection goes on after the answer."""
    wants_body: bool = True
    """Whether the client wants more than a head."""
    begun: bool = False
    """Whether the answer has."""
    bytes_out: int = 0

    @property
    def gone(self) -> bool:
        """Whether the client can no longer be written to."""
        transport = self.line.transport
        return transport is None or transport.is_closing()

    @property
    def behind(self) -> bool:
        """Whether the client has more unread bytes than it should be given."""
        return self.line.writing_paused

    def interim(self) -> None:
        """Write 100 Continue to a client that waits for it to send its body."""
        self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def reply(self, reply: Reply, headers: Mapping[str, str]) -> None:
        """Write a whole answer; `headers` come on top of the reply's own. ConnectionError if the
        client is gone.
        """
        assert not self.begun, "an answer begins once"
        body, form = reply.body, reply.form
        if form is not None:
            lines = "" if self.keep_alive and self.http11 else f"{self._connection_line()}\r\n"
            data = self.heads.filled(form, reply.values, lines)
        else:
            status = reply.status
            usual = body and self.keep_alive and self.http11 and reply.content_type == JSON
            fixed = _JSON_LINE if usual else self._fixed_of(reply)
            if reply.headers:
                headers = {**headers, **reply.headers}
            size = len(body) if body or status not in _BODILESS else None
            data = self.heads.head(status, fixed, headers, size)
        if self.wants_body:
            data += body
        self.begun = True
        # `_write` once more: every answer that is no stream comes by here.
        line = self.line
        transport = line.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError(_GONE)
        data_bytes = len(data)
        line.sent_bytes += data_bytes
        self.bytes_out += data_bytes
        transport.write(data)

    def begin(
        self, status: int, headers: Mapping[str, str] | Reply, first: bytes, *, last: bool = False
    ) -> None:
        """Write the head of a stream and its first bytes in one go, its end as well if `last`.

        A stream that goes on leaves at once: its client waits for the first token. A whole answer
        leaves with the others of its loop turn, as with `reply`.
        """
        assert not self.begun, "an answer begins once"
        if not self.http11:
            self.keep_alive = False
            fixed = self._connection_line()
        elif self.keep_alive:
            fixed = _CHUNKED
        else:
            fixed = f"{_CHUNKED}\r\n{self._connection_line()}"
        if isinstance(headers, Reply):
            assert headers.form is not None, "a head without a body has a form"
            head = self.heads.filled(headers.form, headers.values, f"{fixed}\r\n")
        else:
            head = self.heads.head(status, fixed, headers)
        self.begun = True
        if not self.http11:
            data = head + first
        elif last:
            data = b"%b%x\r\n%b\r\n0\r\n\r\n" % (head, len(first), first)
        else:
            data = b"%b%x\r\n%b\r\n" % (head, len(first), first)
        self._write(data, at_once=not last)

    chunk = chunking.chunk
    """Write more of a stream; true if the client is behind. ConnectionError if it is gone."""

    def end(self, data: bytes) -> None:
        """Write the last bytes of a stream and its end. ConnectionError if the client is gone."""
        self._write((self._framed(data) if data else b"") + self._terminator())

    def reset(self) -> None:
        """Reset the connection, so that the client cannot take the answer for whole."""
        self.keep_alive = False
        if self.line.transport is not None:
            reset(self.line.transport)

    async def drain(self) -> None:
        """Wait while the client has too many unread bytes; ConnectionError if it goes away
        meanwhile.
        """
        if self.behind:
            await self.line.drained()

    def _fixed_of(self, reply: Reply) -> str:
        """Return the lines that the head of a whole answer has besides its headers, "" for none."""
        lines = [] if self.keep_alive and self.http11 else [self._connection_line()]
        if reply.body:
            lines.append(f"content-type: {reply.content_type}")
        return "\r\n".join(lines)

    def _connection_line(self) -> str:
        """Connection header, where it differs from the HTTP version's default."""
        return "connection: keep-alive" if self.keep_alive else "connection: close"

    def _terminator(self) -> bytes:
        return b"0\r\n\r\n" if self.http11 else b""

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self.http11 else data

    def _write(self, data: bytes, *, at_once: bool = False) -> None:
        line = self.line
        transport = line.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError(_GONE)
        data_bytes = len(data)
        line.sent_bytes += data_bytes
        self.bytes_out += data_bytes
        if at_once:
            write_at_once(transport, data)
        else:
            transport.write(data)


def write_at_once(transport: asyncio.Transport, data: bytes) -> None:
    """Write without waiting for the end of the loop's turn.

    uvloop's transports buffer writes until the end of the loop's turn, unless they are too large.
    """
    low, high = transport.get_write_buffer_limits()
    transport.set_write_buffer_limits(high=0)
    transport.write(data)
    transport.set_write_buffer_limits(high=high, low=low)


def unacknowledged_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes the kernel still holds for the peer; 0 where that is unknown.

    The kernel buffers megabytes for a socket and asks for more only when a third of them is gone,
    so a slow reader's progress shows here long before it shows in our own buffer.
    """
    raw = transport.get_extra_info("socket")
    if raw is None:
        return 0
    try:
        return int.from_bytes(fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except OSError:
        return 0


def acknowledged_bytes(transport: asyncio.Transport) -> int | None:
    """Return how many bytes the peer's kernel has acknowledged since the connection began; None where that
    is unknown, as it is outside Linux.
    """
    raw = transport.get_extra_info("socket")
    if raw is None or not sys.platform.startswith("linux"):
        return None
    try:
        info = raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except OSError:
        return None
    if len(info) < _TCP_INFO_BYTES:
        return None
    return int.from_bytes(info[-8:], sys.byteorder)


def reset(transport: asyncio.Transport) -> None:
    """Drop a connection at once; the peer sees a reset, never a clean end."""
    raw = transport.get_extra_info("socket")
    if raw is not None and raw.family != socket.AF_UNIX:
        try:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        except OSError:
            # It is closed already; there is nobody left to be told.
            return
    transport.abort()
