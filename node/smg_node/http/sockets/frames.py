"""WebSocket frames: aiohttp's reader and writer, behind one file because their signatures change.

Bytes in, messages out, in the order they came; a message of several frames is one. Control frames
come out as well: what they mean is for the socket to say. Nothing is compressed.

aiohttp does not insist that a client's frames are masked, as RFC 6455 5.1 does: masking protects
caches of proxies from what a page makes a browser send, which browsers see to.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from aiohttp._websocket.reader import WebSocketDataQueue
from aiohttp.http_websocket import (
    WebSocketError,
    WebSocketReader,
    WebSocketWriter,
    WSMsgType,
)

from smg_node.http.message.request_head import ClientLine, Flow

_QUEUED_BYTES: Final = 65_536
"""While twice as much waits to be read, the client's bytes are left to the kernel."""
_NEVER: Final = 2**62
"""More than a connection sends: the writer never waits by itself, its caller does."""

Kind: TypeAlias = Literal["text", "binary", "ping", "pong", "close"]
_KINDS: Final[dict[WSMsgType, Kind]] = {
    WSMsgType.TEXT: "text",
    WSMsgType.BINARY: "binary",
    WSMsgType.PING: "ping",
    WSMsgType.PONG: "pong",
    WSMsgType.CLOSE: "close",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `text` of a text or a close, `data` of the others, `code` of a close (0: none was given)."""

    kind: Kind
    text: str = ""
    data: bytes = b""
    code: int = 0


class FrameError(Exception):
    """What came is no WebSocket, or too large; `code` is the close code that says so."""

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        super().__init__(reason)


class FrameReader:
    """Reader of one connection's frames; a `ByteTaker`."""

    def __init__(self, *, message_max_bytes: int) -> None:
        self._flow = _PausedFlow()
        loop = asyncio.get_running_loop()
        self._queue = WebSocketDataQueue(cast("Any", self._flow), _QUEUED_BYTES, loop=loop)
        self._reader = WebSocketReader(self._queue, message_max_bytes + 1, False, True)

    def attach(self, flow: Flow) -> None:
        """Pause this source while too much waits to be read."""
        self._flow.attach(flow)

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self._reader.feed_data(data)

    async def next(self) -> Message:
        """Return the next message; FrameError for what is none, again at every further call."""
        try:
            kind, data, extra = await self._queue.read()
        except WebSocketError as error:
            raise FrameError(int(error.code), str(error)) from error
        match kind:
            case WSMsgType.TEXT:
                return Message("text", text=data)
            case WSMsgType.CLOSE:
                return Message("close", text=extra or "", code=data)
            case _:
                return Message(_KINDS[kind], data=bytes(data))


class FrameWriter:
    """Writer of frames to one connection, which counts what it sends."""

    def __init__(self, line: ClientLine, transport: asyncio.Transport) -> None:
        counted = cast("Any", _CountedTransport(line, transport))
        self._writer = WebSocketWriter(cast("Any", _Unpaused()), counted, limit=_NEVER)

    def text(self, text: bytes) -> None:
        """Write a text message. ConnectionError if the client is gone, or after a close."""
        _at_once(self._writer.send_frame(text, WSMsgType.TEXT))

    def ping(self) -> None:
        """Write a ping; ConnectionError as above."""
        _at_once(self._writer.send_frame(b"", WSMsgType.PING))

    def pong(self, payload: bytes) -> None:
        """Write the answer to a ping; ConnectionError as above."""
        _at_once(self._writer.send_frame(payload, WSMsgType.PONG))

    def close(self, code: int, reason: str) -> None:
        """Write a close, the last frame there is; ConnectionError as above."""
        _at_once(self._writer.close(code, reason))


def _at_once(writing: Coroutine[Any, Any, None]) -> None:
    """Write a frame. A writer that neither compresses nor waits has nothing to await."""
    try:
        writing.send(None)
    except StopIteration:
        return
    finally:
        writing.close()
    raise AssertionError("a frame was not written at once")


class _PausedFlow:
    """What the reader's queue takes for a protocol."""

    def __init__(self) -> None:
        self._reading_paused = False
        self._flow: Flow | None = None

    def attach(self, flow: Flow) -> None:
        """Pause `flow` from now on, at once if too much waits already."""
        self._flow = flow
        if self._reading_paused:
            flow.pause_reading()

    def pause_reading(self) -> None:
        """Stop reading."""
        self._reading_paused = True
        if self._flow is not None:
            self._flow.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._reading_paused = False
        if self._flow is not None:
            self._flow.resume_reading()


class _Unpaused:
    """What the writer takes for a protocol: it never waits."""

    _paused = False


class _CountedTransport:
    """What the writer writes to."""

    def __init__(self, line: ClientLine, transport: asyncio.Transport) -> None:
        self._line = line
        self._transport = transport

    def is_closing(self) -> bool:
        """Return whether nothing can be written any more."""
        return self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Write, and count it."""
        self._line.sent_bytes += len(data)
        self._transport.write(data)
