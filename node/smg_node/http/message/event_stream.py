"""Event stream: server-sent events on one wire, with backpressure and a late status.

The status is committed with the first bytes, so that a failure before them keeps its own. The next
event is not requested before a slow client has read enough, which is how it slows the engine down;
one that reads nothing at all is cut by the sweep over connections.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from smg_node.dialects.dialect import COMMENT
from smg_node.http.message import chunk_writer as chunking
from smg_node.http.message.reply import Reply
from smg_node.http.message.response_writer import Wire

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
_log = logging.getLogger("smg_node.http")


class Holding:
    """Timer of streams that hold a frame: flushes all of them, once a turn of the loop."""

    __slots__ = ("_streams",)

    def __init__(self) -> None:
        self._streams: list[EventStream] = []

    def add(self, stream: "EventStream") -> None:
        """Have the held frame written when the loop has gone round twice, unless it was written
        before.
        """
        streams = self._streams
        if not streams:
            asyncio.get_running_loop().call_soon(self._wait)
        streams.append(stream)

    def _wait(self) -> None:
        streams, self._streams = self._streams, []
        asyncio.get_running_loop().call_soon(self._flush, streams)

    def _flush(self, streams: Sequence["EventStream"]) -> None:
        for stream in streams:
            if not stream.held:
                continue
            try:
                stream.flush()
            except Exception:
                # A mistake of ours in one stream must not reach the others of its turn.
                _log.exception("the last words of a stream could not be written")


class EventStream(msgspec.Struct, eq=False):
    """Writes events; `headers` is called once, when the head is due: for its headers besides
    `HEADERS`, or for the whole head.
    """

    wire: Wire
    headers: Callable[[], Mapping[str, str] | Reply]
    held: bytes = b""
    committed: bool = False
    quiet_ticks: int = 0
    keepalive: bytes = COMMENT
    """Written by `ping`."""

    async def send(self, frames: bytes) -> None:
        """Write frames at once, then wait if the client is behind. ConnectionError if it is gone."""
        self.put(frames)
        await self.wire.drain()

    put = chunking.put
    """Write frames at once; true if the client is behind. ConnectionError if it is gone."""

    def hold(self, frames: bytes, holding: Holding, *, alone: bool = False) -> None:
        """Write frames together with those that follow at once, or alone when the loop has gone
        round twice.

        The end of a stream mostly comes in the wake-up of its last tokens, but the request's task
        writes it, and that runs after the wake-up: holding saves a write for each stream. The first
        tokens of one that is `alone` are not held: its client waits for them, and one more write
        delays no other stream.
        """
        if not self.committed and alone:
            self.put(frames)
            return
        self.held += frames
        holding.add(self)

    def let_go(self) -> None:
        """Drop the held frame: something else is written instead, or the client is gone."""
        self.held = b""

    async def drained(self) -> None:
        """Return when the client has read enough. ConnectionError if it is gone."""
        await self.wire.drain()

    def end(self, frames: bytes) -> None:
        """Write the last frames and a clean end. ConnectionError if the client is gone."""
        frames, self.held = self.held + frames, b""
        if self.committed:
            self.wire.end(frames)
        else:
            self.begin(frames, last=True)

    def ping(self) -> None:
        """Write the keep-alive, unless the client is gone or has unread bytes."""
        if not self.wire.gone and not self.wire.behind:
            self.put(self.keepalive)

    def break_off(self) -> None:
        """Reset the connection so that the client does not take the stream for complete."""
        self.wire.reset()

    def flush(self) -> None:
        """Write the held frame, unless the client is gone."""
        if self.held and not self.wire.gone:
            self.put(b"")

    def begin(self, frames: bytes, *, last: bool) -> None:
        """Write the head and the first frames, which are all if they are the last."""
        self.committed = True
        headers = self.headers()
        if not isinstance(headers, Reply):
            headers = {**HEADERS, **headers}
        self.wire.begin(200, headers, frames, last=last)
