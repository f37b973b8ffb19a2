"""A stream of server-sent events on one wire.

The status is committed with the first bytes, so that a failure before them keeps its own. A client
that reads slowly is waited for before the next event is even asked for, which is how it slows the
engine down; one that reads nothing at all is cut by the sweep over connections.
"""

from collections.abc import Callable, Mapping
from typing import Final

from smg_node.http.wire import Wire

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
PING: Final = b": ping\n\n"


class EventStream:
    """Writes events; `headers` is asked for once, when the head is due."""

    __slots__ = ("_headers", "_wire", "committed", "quiet_ticks")

    def __init__(self, wire: Wire, headers: Callable[[], Mapping[str, str]]) -> None:
        self._wire = wire
        self._headers = headers
        self.committed = False
        self.quiet_ticks = 0

    async def send(self, frames: bytes) -> None:
        """Write frames at once, then wait if the client is behind. ConnectionError if it is gone."""
        self._put(frames)
        await self._wire.drain()

    def end(self, frames: bytes) -> None:
        """Write the last frames and a clean end. ConnectionError if the client is gone."""
        if self.committed:
            self._wire.end(frames)
        else:
            self._begin(frames, last=True)

    def ping(self) -> None:
        """Write a comment, unless the client is gone or has not read what it has."""
        if not self._wire.gone and not self._wire.behind:
            self._put(PING)

    def break_off(self) -> None:
        """End the connection so that nobody takes the stream for complete."""
        self._wire.reset()

    def _put(self, frames: bytes) -> None:
        self.quiet_ticks = 0
        if self.committed:
            self._wire.chunk(frames)
        else:
            self._begin(frames, last=False)

    def _begin(self, frames: bytes, *, last: bool) -> None:
        self.committed = True
        self._wire.begin(200, {**HEADERS, **self._headers()}, frames, last=last)
