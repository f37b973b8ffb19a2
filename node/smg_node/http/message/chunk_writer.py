"""Chunk writer: the write path of every streamed frame: SSE frame to chunk to transport at once.

Compiled to machine code where that is built. Both functions are methods, of `EventStream` and of
`Wire`, which document them.
"""

import asyncio
from typing import Final, Protocol

_GONE: Final = "the client is gone"
_SIZES: Final = [b"%x\r\n" % size for size in range(2_048)]
"""What stands before a chunk of so many bytes."""


class Line(Protocol):
    """Client connection, as far as a chunk needs it."""

    sent_bytes: int
    """Bytes written since the connection was made."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport, or None once the connection is lost."""
        ...

    @property
    def writing_paused(self) -> bool:
        """Whether more is buffered than the client should be given."""
        ...


class Answer(Protocol):
    """A `Wire`, as far as a chunk needs it."""

    bytes_out: int

    @property
    def line(self) -> Line:
        """The connection."""
        ...

    @property
    def http11(self) -> bool:
        """Whether chunked framing is used."""
        ...

    @property
    def behind(self) -> bool:
        """Whether the client has more unread bytes than it should be given."""
        ...

    def chunk(self, data: bytes) -> bool:
        """Write more of a stream."""
        ...


class Stream(Protocol):
    """An `EventStream`, as far as a frame needs it."""

    held: bytes
    quiet_ticks: int

    @property
    def wire(self) -> Answer:
        """The wire that it is written on."""
        ...

    @property
    def committed(self) -> bool:
        """Whether the head is written."""
        ...

    def begin(self, frames: bytes, *, last: bool) -> None:
        """Write the head and the first frames."""
        ...


def put(self: Stream, frames: bytes) -> bool:
    """Write frames at once; true if the client is behind. ConnectionError if it is gone."""
    self.quiet_ticks = 0
    if self.held:
        frames, self.held = self.held + frames, b""
    if self.committed:
        return self.wire.chunk(frames)
    self.begin(frames, last=False)
    return self.wire.behind


def chunk(self: Answer, data: bytes) -> bool:
    """Write more of a stream; true if the client is behind. ConnectionError if it is gone."""
    line = self.line
    transport = line.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError(_GONE)
    data_bytes = len(data)
    if self.http11:
        size = _SIZES[data_bytes] if data_bytes < len(_SIZES) else b"%x\r\n" % data_bytes
        data = b"".join((size, data, b"\r\n"))
        data_bytes = len(data)
    line.sent_bytes += data_bytes
    self.bytes_out += data_bytes
    transport.write(data)
    return line.writing_paused
