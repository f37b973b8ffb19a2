"""Body stream: a request body while it arrives, from the parser to its reader, with backpressure.

Unread bytes are bounded: beyond 64 KiB the socket is not read until the reader takes them.
"""

import asyncio
from typing import ClassVar, Final

import msgspec

from smg_node.http.message.request_head import Flow, FramingError

HELD_MAX_BYTES: Final = 65_536
"""So much of a body waits here at most, and what one packet brings on top."""


class ArrivingBody:
    """One body. `feed`, `end` and `fail` are the parser's, the rest is for its one reader; see
    `request_head.Body`.
    """

    __slots__ = ("_failed", "_first", "_flow", "_paused", "_rest", "_waiter", "whole")

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        # Nearly every body comes in one piece, which then is never copied.
        self._first = b""
        self._rest: bytearray | None = None
        self._failed = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self.whole = False
        """Whether its last byte is here; never true of one that is broken."""

    @property
    def over(self) -> bool:
        """Whether nothing more will come, because it is whole or broken."""
        return self.whole or self._failed

    def feed(self, part: bytes) -> None:
        """Append bytes."""
        rest = self._rest
        if not self._first:
            self._first = part
        elif rest is None:
            rest = self._rest = bytearray(part)
        else:
            rest += part
        held = len(self._first) + (0 if rest is None else len(rest))
        if held > HELD_MAX_BYTES and self._waiter is None and not self._paused:
            self._paused = True
            self._flow.pause_reading()
        if self._waiter is not None:
            self._wake()

    def end(self) -> None:
        """Mark it whole. Following bytes of the connection belong to another request."""
        self.whole = True
        if self._paused:
            self._paused = False
            self._flow.resume_reading()
        if self._waiter is not None:
            self._wake()

    def fail(self) -> None:
        """Mark it broken: it never will be whole."""
        self._failed = True
        self._wake()

    def take(self) -> bytes:
        """Return the bytes that are here and not taken yet, without waiting. FramingError if it is
        broken.
        """
        if self._failed:
            raise FramingError
        first, rest = self._first, self._rest
        if not first:
            return b""
        self._first = b""
        if rest is not None:
            self._rest = None
            rest[:0] = first
            first = bytes(rest)
        if self._paused:
            self._paused = False
            self._flow.resume_reading()
        return first

    async def more(self) -> bytes:
        """Return the bytes since the last take, b"" at the end; waits for at least a byte.
        FramingError.
        """
        while not (part := self.take()) and not self.whole:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return part

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ArrivedBody(msgspec.Struct):
    """A body that came with its head; `left` are the bytes not taken yet."""

    left: bytes
    whole: ClassVar[bool] = True

    def take(self) -> bytes:
        """Return the bytes not taken yet."""
        left, self.left = self.left, b""
        return left

    async def more(self) -> bytes:
        """Return the bytes not taken yet, then b""."""
        return self.take()


class NoBody:
    """The body of a request that has none."""

    __slots__ = ()
    whole: Final = True
    over: Final = True

    def take(self) -> bytes:
        """Return nothing."""
        return b""

    async def more(self) -> bytes:
        """Return nothing: it has ended."""
        return b""


NO_BODY: Final = NoBody()


class OfferedBody:
    """In place of the body of a request that offers WebSocket: what follows its head, until somebody takes the offer.

    It never is whole: unless the offer is taken, the connection ends with the answer.
    """

    __slots__ = ("_held",)
    whole: Final = False
    over: Final = True

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> None:
        """Append bytes of whichever protocol it will be."""
        self._held += part

    def hand_over(self) -> bytes:
        """Return what has come behind the head, once."""
        held, self._held = self._held, b""
        return held

    def take(self) -> bytes:
        """Return nothing."""
        return b""

    async def more(self) -> bytes:
        """Return nothing: a request that offers WebSocket has no body."""
        return b""
