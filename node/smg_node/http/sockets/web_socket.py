"""WebSocket: one accepted socket: messages both ways, pings, close codes, backpressure.

Its reader is one task, which calls `receive` until that returns None; the client's pings are
answered and its close is echoed in there. Any number of tasks write, by `say`, which waits while the
client has more unread than it should be given: so a client that does not read slows down what it is
told of, and the listener's sweep cuts it if it reads nothing at all.

A client that is gone without a word is noticed by pings. They are counted only while somebody reads:
a node that has enough to do leaves the client's frames to the kernel, its pongs as well. Nor are they
while the client is behind: it has not seen them yet.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from smg_node.http.message.request_head import ClientLine
from smg_node.http.message.response_writer import reset
from smg_node.http.sockets.frames import FrameError, FrameReader, FrameWriter, Message

_log = logging.getLogger("smg_node.http")

PING_S: Final = 20.0
"""Shorter than what proxies and routers take for an idle connection."""
_UNANSWERED_MAX: Final = 2
MESSAGE_MAX_BYTES: Final = 22_020_096
"""15 MiB of audio in base64, and JSON around it."""
_CLOSE_WAIT_S: Final = 2.0
"""How long a client that is told to go may take to say so as well."""
REASON_MAX_BYTES: Final = 123
"""What a control frame has room for behind the code (RFC 6455 5.5)."""

NORMAL: Final = 1000
NO_CODE: Final = 1005
"""Never sent: stands for a close without a code."""
GOING_AWAY: Final = 1001
POLICY: Final = 1008
OUR_MISTAKE: Final = 1011
RESTARTING: Final = 1012


@dataclass(frozen=True, slots=True)
class SocketRules:
    """Rules of a socket's life."""

    ping_s: float = PING_S
    message_max_bytes: int = MESSAGE_MAX_BYTES


class WebSocket:
    """A socket whose handshake is over. ConnectionError of any method: the client is gone."""

    def __init__(
        self, line: ClientLine, transport: asyncio.Transport, rules: SocketRules = SocketRules()
    ) -> None:
        self._line: Final = line
        self._transport: Final = transport
        self._rules: Final = rules
        self._reader: Final = FrameReader(message_max_bytes=rules.message_max_bytes)
        self._writer: Final = FrameWriter(line, transport)
        self._timer: asyncio.TimerHandle | None = None
        self._unanswered = 0
        self._receiving = False
        self._said_close = False
        self.closed_code = 0
        """The code with which either side has closed it; 0 while neither has."""

    def open(self) -> None:
        """Begin to read and to ping."""
        self._reader.attach(self._line.upgrade(self._reader))
        self._wind()

    @property
    def gone(self) -> bool:
        """Whether the client can no longer be written to."""
        return self._said_close or self._transport.is_closing()

    async def receive(self) -> Message | None:
        """Return the next text or binary message; None once the client has closed the socket, or was told to go."""
        self._receiving = True
        try:
            while True:
                message = await self._reader.next()
                self._unanswered = 0
                if message.kind == "close":
                    self._say_close(message.code or NORMAL, "", told=message.code or NO_CODE)
                    return None
                if self._said_close:
                    continue
                if message.kind == "ping":
                    self._writer.pong(message.data)
                    # Or who pings and does not read would have it all kept here.
                    await self.drained()
                elif message.kind != "pong":
                    return message
        except FrameError as error:
            self._say_close(error.code, str(error))
            # What still comes is dropped: closing on unread bytes would destroy the close.
            await asyncio.sleep(_CLOSE_WAIT_S)
            return None
        finally:
            self._receiving = False

    def put(self, text: bytes) -> None:
        """Send a text message, whether the client is behind or not; see `behind`."""
        self._writer.text(text)

    @property
    def behind(self) -> bool:
        """Whether the client has more unread than it should be given."""
        return self._line.writing_paused

    async def drained(self) -> None:
        """Return when the client has read enough."""
        if self._line.writing_paused:
            await self._line.drained()

    async def say(self, text: bytes) -> None:
        """Send a text message, then wait while the client has too much unread."""
        self._writer.text(text)
        await self.drained()

    def end(self, code: int, reason: str = "") -> None:
        """Tell the client to go, for any task: its connection ends soon, whether it closes the socket as well or not."""
        if self.gone:
            return
        self._say_close(code, reason)
        asyncio.get_running_loop().call_later(_CLOSE_WAIT_S, self._transport.close)

    async def close(self, code: int, reason: str = "") -> None:
        """Tell the client to go, and give it a moment to close the socket as well; for the task that receives."""
        if self.gone:
            return
        try:
            self._say_close(code, reason)
            async with asyncio.timeout(_CLOSE_WAIT_S):
                await self.receive()
        except (TimeoutError, ConnectionError):
            return

    def stop(self) -> None:
        """Ping no more. Its connection ends when whoever answers the handshake returns."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say_close(self, code: int, reason: str, *, told: int | None = None) -> None:
        """Send a close, once; `told` is the code that the client has closed it with, if it did."""
        if self._said_close:
            return
        self.closed_code = code if told is None else told
        self._said_close = True
        cut = reason.encode("utf-8", "replace")[:REASON_MAX_BYTES].decode("utf-8", "ignore")
        self._writer.close(code, cut)

    def _wind(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._rules.ping_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self.gone:
            return
        if self._is_behind:
            # What lies before a ping has to be read first. Who reads nothing of it is cut by the listener.
            self._unanswered = 0
        elif self._receiving:
            if self._unanswered >= _UNANSWERED_MAX:
                _log.debug("a WebSocket client answered no ping, and is taken for gone")
                reset(self._transport)
                return
            self._unanswered += 1
        self._ping()
        self._wind()

    @property
    def _is_behind(self) -> bool:
        """Whether there is something that the client has not read, as far as that shows here."""
        return self._line.writing_paused or bool(self._transport.get_write_buffer_size())

    def _ping(self) -> None:
        # A client that is behind has enough to read.
        if self._line.writing_paused:
            return
        try:
            self._writer.ping()
        except ConnectionError:
            # Whoever reads the socket sees it as well.
            return
