"""HTTP/2 connection of the lean gRPC server: an asyncio protocol without tasks.

Bytes in, bytes out: requests are read in `data_received`, calls ring their bell when they have
messages, and what is to be written is collected and written once per wake-up. Flow control is kept
in both directions; a stream whose reader lags is asked again when there is room, and its call is
told so. Whatever a peer sends, the answer is frames or a closed connection, never an exception.
"""

import asyncio
import socket
from typing import Final, Protocol, cast

from smg_chaos.engine.protocol.rpc_call import FINE, Call, Code, End, How, refused
from smg_chaos.engine.servers import frames
from smg_chaos.engine.servers.h2_stream import BrokenProtocolError, Stream, ignore, unpadded
from smg_chaos.engine.servers.hpack import HeaderReader, HpackError
from smg_chaos.engine.simulator.engine_loop import Clockwork

MESSAGE_MAX: Final = 256 << 20
"""As the servers of real engines have it, for requests with pictures."""
_STREAM_WINDOW: Final = MESSAGE_MAX + (1 << 20)
_CONNECTION_WINDOW: Final = 1 << 30
_GIVE_BACK: Final = 1 << 20  # bytes read before the connection's window is topped up
_STREAMS_MAX: Final = 4096
_HEADERS_MAX: Final = 1 << 18
_FRAME_MAX: Final = 1 << 20
_BUFFERED_MAX: Final = 1 << 20
_UNWRITTEN_MAX: Final = 256  # pieces collected before they are written in the middle of a wake-up


class ConnectionServer(Protocol):
    """The server of a connection: starts calls, and says what is to be written when."""

    connections: dict["Connection", None]
    touched: list["Connection"]

    @property
    def clockwork(self) -> Clockwork:
        """What moves the engine."""
        ...

    def start(self, method: str, body: bytes) -> Call:
        """Return the call of a method."""
        ...

    def settle(self) -> None:
        """Let the engine do what is due, then write everything there is."""
        ...


class Connection(asyncio.Protocol):
    """The server's side of one connection."""

    def __init__(self, face: ConnectionServer) -> None:
        self._face = face
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._greeted = False
        self._reader = HeaderReader()
        self._streams: dict[int, Stream] = {}
        self._blocked: dict[int, Stream] = {}
        self._out: list[bytes] = []
        self._paused = False
        self._window = frames.DEFAULT_WINDOW
        self._stream_window = frames.DEFAULT_WINDOW
        self._frame_max = frames.DEFAULT_FRAME
        self._unreturned = 0
        self._highest = 0
        self._headers: tuple[int, int, bytearray] | None = None
        self._touched = False

    # ── The transport's side ────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the server's settings."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(high=_BUFFERED_MAX)
        self._face.connections[self] = None
        self._out.append(
            frames.settings(
                (frames.SET_INITIAL_WINDOW, _STREAM_WINDOW),
                (frames.SET_MAX_STREAMS, _STREAMS_MAX),
                (frames.SET_MAX_FRAME, _FRAME_MAX),
            )
        )
        self._out.append(frames.window_update(0, _CONNECTION_WINDOW - frames.DEFAULT_WINDOW))
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel every call."""
        self._transport = None
        self._face.connections.pop(self, None)
        now_s = self._face.clockwork.now_s()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            if stream.call is not None:
                stream.call.cancel(now_s)
        self._blocked.clear()
        self._face.settle()

    def pause_writing(self) -> None:
        """Stop taking messages: the socket is full."""
        self._paused = True

    def resume_writing(self) -> None:
        """Resume taking messages."""
        self._paused = False
        self._unblock()
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Read frames, advance the engine to now, and write once."""
        try:
            self._read(data)
        except BrokenProtocolError as error:
            self._out.append(frames.goaway(self._highest, error.code))
            self.flush()
            self.close()
        self._face.settle()

    def close(self) -> None:
        """Close at once, without waiting for anything."""
        if self._transport is not None:
            self._transport.abort()

    def touch(self) -> None:
        """Mark that there is something to write."""
        if not self._touched:
            self._touched = True
            self._face.touched.append(self)

    def flush(self) -> None:
        """Write what was collected."""
        self._touched = False
        if self._out and self._transport is not None:
            out, self._out = self._out, []
            self._transport.write(b"".join(out) if len(out) > 1 else out[0])

    # ── Reading ─────────────────────────────────────────────────────────────

    def _read(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        at = 0
        if not self._greeted:
            if not frames.PREFACE.startswith(bytes(buffer[: len(frames.PREFACE)])):
                raise BrokenProtocolError(frames.PROTOCOL_ERROR, "not HTTP/2")
            if len(buffer) < len(frames.PREFACE):
                return
            self._greeted, at = True, len(frames.PREFACE)
        end = len(buffer)
        try:
            while end - at >= 9:
                high, low, kind, flags, stream = frames.HEAD.unpack_from(buffer, at)
                length = high << 16 | low
                if length > _FRAME_MAX:
                    raise BrokenProtocolError(frames.FRAME_SIZE_ERROR, "a frame is too large")
                if end - at - 9 < length:
                    break
                payload = bytes(buffer[at + 9 : at + 9 + length])
                at += 9 + length
                self._frame(kind, flags, stream & 0x7FFF_FFFF, payload)
        finally:
            del buffer[:at]

    def _frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._headers is not None and kind != frames.CONTINUATION:
            raise BrokenProtocolError(frames.PROTOCOL_ERROR, "a header block is not finished")
        read = _READERS.get(kind)
        if read is not None:
            read(self, flags, number, payload)
        # Frames of unknown kinds are ignored, as the protocol wants.

    def _read_headers(self, flags: int, number: int, payload: bytes) -> None:
        body = unpadded(flags, payload)
        if flags & frames.WITH_PRIORITY:
            body = body[5:]
        if number % 2 == 0 or (number <= self._highest and number not in self._streams):
            raise BrokenProtocolError(frames.PROTOCOL_ERROR, "no such stream can be opened")
        self._headers = (number, flags & frames.END_STREAM, bytearray(body))
        if flags & frames.END_HEADERS:
            self._open()

    def _read_continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._headers is None or self._headers[0] != number:
            raise BrokenProtocolError(frames.PROTOCOL_ERROR, "nothing to continue")
        self._headers[2].extend(payload)
        if len(self._headers[2]) > _HEADERS_MAX:
            raise BrokenProtocolError(frames.ENHANCE_YOUR_CALM, "too many headers")
        if flags & frames.END_HEADERS:
            self._open()

    def _open(self) -> None:
        assert self._headers is not None
        number, ended, block = self._headers
        self._headers = None
        try:
            headers = self._reader.read(bytes(block))
        except HpackError as error:
            raise BrokenProtocolError(frames.COMPRESSION_ERROR, str(error)) from error
        known = self._streams.get(number)
        if known is None:
            method = next((value for name, value in headers if name == b":path"), b"")
            self._highest = number
            if len(self._streams) >= _STREAMS_MAX:
                self._out.append(frames.reset(number, frames.REFUSED_STREAM))
                self.touch()
                return
            known = Stream(self, number, method.decode("latin-1"), self._stream_window)
            self._streams[number] = known
        if ended:
            self._begin(known)

    def _read_message(self, flags: int, number: int, payload: bytes) -> None:
        self._unreturned += len(payload)
        if self._unreturned >= _GIVE_BACK:
            self._out.append(frames.window_update(0, self._unreturned))
            self._unreturned = 0
            self.touch()
        stream = self._streams.get(number)
        if stream is None or stream.call is not None:
            if number > self._highest:
                raise BrokenProtocolError(frames.PROTOCOL_ERROR, "a message before its headers")
            return
        stream.body += unpadded(flags, payload)
        if len(stream.body) > MESSAGE_MAX + frames.GRPC_PREFIX:
            self._answer(stream, refused(Code.RESOURCE_EXHAUSTED, "the message is too large"))
        elif flags & frames.END_STREAM:
            self._begin(stream)

    def _begin(self, stream: Stream) -> None:
        """Start the call of a stream whose request is complete."""
        if stream.call is not None:
            return
        body, stream.body = stream.body, bytearray()
        length = int.from_bytes(body[1:5], "big")
        if body and body[0]:
            call = refused(Code.UNIMPLEMENTED, "compressed messages are not taken")
        elif len(body) != length + frames.GRPC_PREFIX:
            call = refused(Code.INTERNAL, "not one whole message")
        else:
            call = self._face.start(stream.method, bytes(body[frames.GRPC_PREFIX :]))
        self._answer(stream, call)

    def _answer(self, stream: Stream, call: Call) -> None:
        stream.call = call
        call.bell = stream.ring
        self.pump(stream)
        self.touch()

    def _read_reset(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise BrokenProtocolError(frames.FRAME_SIZE_ERROR, "a reset of the wrong size")
        stream = self._streams.pop(number, None)
        self._blocked.pop(number, None)
        if stream is not None and stream.call is not None:
            stream.call.bell = ignore
            stream.call.cancel(self._face.clockwork.now_s())

    def _read_settings(self, flags: int, number: int, payload: bytes) -> None:
        if flags & frames.ACK:
            return
        if len(payload) % 6 or number:
            raise BrokenProtocolError(frames.FRAME_SIZE_ERROR, "settings of the wrong size")
        for key, value in frames.read_settings(payload):
            if key == frames.SET_INITIAL_WINDOW:
                if value > frames.WINDOW_MAX:
                    raise BrokenProtocolError(frames.FLOW_CONTROL_ERROR, "a window is too large")
                for stream in self._streams.values():
                    stream.window += value - self._stream_window
                self._stream_window = value
            elif key == frames.SET_MAX_FRAME:
                if not frames.DEFAULT_FRAME <= value < 1 << 24:
                    raise BrokenProtocolError(frames.PROTOCOL_ERROR, "no such frame size")
                self._frame_max = value
        self._out.append(frames.frame(frames.SETTINGS, frames.ACK, 0))
        self._unblock()
        self.touch()

    def _read_ping(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 8:
            raise BrokenProtocolError(frames.FRAME_SIZE_ERROR, "a ping of the wrong size")
        if not flags & frames.ACK:
            self._out.append(frames.frame(frames.PING, frames.ACK, 0, payload))
            self.touch()

    def _read_window(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise BrokenProtocolError(frames.FRAME_SIZE_ERROR, "a window of the wrong size")
        more = frames.read_word(payload)
        if not number:
            self._window += more
            if not more or self._window > frames.WINDOW_MAX:
                raise BrokenProtocolError(frames.FLOW_CONTROL_ERROR, "the window cannot be that")
            self._unblock()
            return
        stream = self._streams.get(number)
        if stream is not None:
            stream.window += more
            if not more or stream.window > frames.WINDOW_MAX:
                raise BrokenProtocolError(frames.FLOW_CONTROL_ERROR, "the window cannot be that")
            if self._blocked.pop(number, None) is not None:
                self.pump(stream)
                self.touch()

    # ── Writing ─────────────────────────────────────────────────────────────

    def _unblock(self) -> None:
        blocked, self._blocked = self._blocked, {}
        for stream in blocked.values():
            self.pump(stream)
        if blocked:
            self.touch()

    def pump(self, stream: Stream) -> None:
        """Write the messages of the stream's call, as far as there is room."""
        call = stream.call
        if call is None or stream.number not in self._streams:
            return
        if stream.number in self._blocked:
            stream.lagging = True
            return
        while True:
            if self._paused or not self._send_backlog(stream):
                self._blocked[stream.number] = stream
                return
            messages = call.take(lagging=stream.lagging)
            stream.lagging = False
            for message in messages:
                self._send(stream, message)
            if len(self._out) > _UNWRITTEN_MAX:
                self.flush()
                self.touch()
            if not stream.backlog:
                # Whatever it had to say is taken.
                if call.end is not None:
                    self._finish(stream, call.end)
                return

    def _send(self, stream: Stream, message: bytes) -> None:
        out = self._out
        if not stream.opened:
            stream.opened = True
            out.append(frames.opening(stream.number))
        size = len(message) + frames.GRPC_PREFIX
        if stream.backlog or size > self._frame_max or size > min(self._window, stream.window):
            stream.backlog += frames.prefixed(message)
            self._send_backlog(stream)
            return
        self._window -= size
        stream.window -= size
        out.append(frames.message_head(stream.number, len(message)))
        out.append(message)

    def _send_backlog(self, stream: Stream) -> bool:
        """Send the backlog; return whether nothing is left of it."""
        while stream.backlog:
            size = min(len(stream.backlog), self._frame_max, self._window, stream.window)
            if size <= 0:
                return False
            piece, stream.backlog = stream.backlog[:size], stream.backlog[size:]
            self._window -= size
            stream.window -= size
            self._out.append(frames.frame(frames.DATA, 0, stream.number, piece))
        return True

    def _finish(self, stream: Stream, end: End) -> None:
        del self._streams[stream.number]
        if end.how is How.CLOSE:
            self.flush()
            self.close()
        elif end.how is How.RESET:
            self._out.append(frames.reset(stream.number, frames.INTERNAL_ERROR))
        else:
            if not stream.opened and end == FINE:
                stream.opened = True
                self._out.append(frames.opening(stream.number))
            self._out.append(frames.closing(stream.number, end, opened=stream.opened))


_READERS: Final = {
    frames.DATA: Connection._read_message,
    frames.HEADERS: Connection._read_headers,
    frames.RST_STREAM: Connection._read_reset,
    frames.SETTINGS: Connection._read_settings,
    frames.PING: Connection._read_ping,
    frames.WINDOW_UPDATE: Connection._read_window,
    frames.CONTINUATION: Connection._read_continuation,
}
