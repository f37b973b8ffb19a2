"""Event log: the events of one background run, in the store first and then with followers.

    say ──▶ tail ──▶ keep: the log, one write at a time ──▶ durable ──▶ followers, each at its own pace
                └──────────────── at once ──────────────────────────▶ the client who asked for it

A write whose result is unknown is repeated exactly: each number is in the log once, and what is
there stays. A run that produces more than the log takes has to wait for `room`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.errors import corrupt, failure_of
from smg_node.history.runs.event_codec import packed
from smg_node.history.runs.event_tail import Reader, Tail
from smg_node.history.runs.unsaved_bytes import UnsavedBytes
from smg_storage.errors import StoreError
from smg_storage.records import EventBlob

FLUSH_S: Final = 0.5
FOLLOWED_FLUSH_S: Final = 0.05
"""So long after the first event that is not written the log is, where nobody looks on, and where somebody does."""
PIECE_BYTES: Final = 256 << 10
"""The most of one part of the log, unpacked, unless one event is larger; so much is written without waiting."""
PIECES_MAX: Final = 4
"""Parts of one write."""
KEPT_BYTES_MAX: Final = 128 << 10
"""Of events that are in the log; a thousand responses that are followed hold 128 MiB at most."""
NEW_BYTES_MAX: Final = 8 << 20
"""Of events that are not, of one response; then its generation waits for the store."""


class LogReading(Protocol):
    """Reads a log from one number on."""

    async def more(self) -> Sequence[NumberedEvent]:
        """Return the next events, none if there are no more now."""
        ...


class RunLog:
    """Event log of one response. `refused` is the reason why nothing more is written, if the store
    refuses it.
    """

    def __init__(
        self,
        write: Callable[[Sequence[EventBlob]], Awaitable[None]],
        read: Callable[[int], LogReading],
        *,
        held: UnsavedBytes,
        now_s: Callable[[], float],
        is_ours: Callable[[], bool],
        on_refused: Callable[[SmgError], None],
        flush_s: float = FLUSH_S,
        followed_flush_s: float = FOLLOWED_FLUSH_S,
    ) -> None:
        """Take how parts are written, and how it is read from a number on.

        `is_ours` says whether no other node can own the response: only then events are given out
        before they are durable.
        """
        self.refused: SmgError | None = None
        self.end: NumberedEvent | None = None
        """The terminal event, once it may be told."""
        self.appends = 0
        self._write: Final = write
        self._read: Final = read
        self._held: Final = held
        self._now_s: Final = now_s
        self._is_ours: Final = is_ours
        self._on_refused: Final = on_refused
        self._flush_s: Final = flush_s
        self._followed_flush_s: Final = followed_flush_s
        self._tail: Final = Tail(kept_bytes_max=KEPT_BYTES_MAX)
        self._said_s = 0.0
        self._hurried = False
        self._wanted = -1
        """The number of the last event that somebody waits for."""
        self._over = False
        self._prod: Final = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def next(self) -> int:
        """The number after the last one in the log."""
        return self._tail.durable + 1

    def lag_s(self) -> float:
        """Return the age of the oldest event that is not in the log yet; 0 if there is none."""
        waits = self._tail.new_bytes and self.refused is None
        return max(self._now_s() - self._said_s, 0.0) if waits else 0.0

    # ── Said ─────────────────────────────────────────────────────────────────

    @property
    def has_room(self) -> bool:
        """Whether there is room for more events now."""
        return self._tail.new_bytes < NEW_BYTES_MAX and self._held.has_room

    async def room(self) -> None:
        """Return when there is room for more events."""
        while self._tail.new_bytes >= NEW_BYTES_MAX and self.refused is None:
            await self._news()
        await self._held.room()

    def say(self, events: Sequence[NumberedEvent]) -> None:
        """Append events, whether there is room or not."""
        if not events or self.refused is not None:
            return
        if not self._tail.new_bytes:
            self._said_s = self._now_s()
            self._prod.set()
        self._held.add(self._tail.say(events))
        if self._tail.new_bytes >= PIECE_BYTES:
            self._prod.set()
        self._tell()

    # ── Written ──────────────────────────────────────────────────────────────

    async def keep(self) -> None:
        """Write pending events, until cancelled; raises what the writing raises, unless the store
        refuses the log.
        """
        while True:
            await self._due()
            began_s = self._now_s()
            blobs = []
            for piece in self._tail.pieces(bytes_max=PIECE_BYTES, pieces_max=PIECES_MAX):
                blobs.append(packed(piece))
                # Packing takes milliseconds where there is much; others have their turn in between.
                await asyncio.sleep(0)
            try:
                await self._write(blobs)
            except StoreError as error:
                self._refuse(failure_of(error))
                return
            self.appends += 1
            self._said_s = began_s
            self._held.remove(self._tail.written(blobs[-1].last))
            self._tell()

    async def written(self) -> None:
        """Return when all pending events are in the log, or are never going to be."""
        self._hurried = True
        self._prod.set()
        while self._tail.new_bytes and self.refused is None:
            await self._news()

    async def kept(self) -> bool:
        """Return when all that was said by now is in the log; false if it never will be."""
        last = self._tail.last
        self._wanted = max(self._wanted, last)
        self._prod.set()
        while self._tail.durable < last and self.refused is None and not self._over:
            await self._news()
        return self._tail.durable >= last and self.refused is None

    def finish(self, end: NumberedEvent | None, *, unwritten: bool = False) -> None:
        """Record that the run is over, with its terminal event: None if another owner sends that.

        With `unwritten` events are given out that are in no log: no client can ask for them again.
        """
        self.end = end
        self._over = True
        if not unwritten:
            self._held.remove(self._tail.take_back())
        elif self._tail.new_bytes:
            self._held.remove(self._tail.written(self._tail.last))
        self._tell()

    def _refuse(self, failure: SmgError) -> None:
        self.refused = failure
        self._held.remove(self._tail.take_back())
        self._on_refused(failure)
        self._tell()

    async def _due(self) -> None:
        """Return when the next write is due."""
        while True:
            wait_s: float | None = None
            if self._tail.new_bytes:
                soon = self._hurried or self._wanted > self._tail.durable
                soon = soon or self._tail.new_bytes >= PIECE_BYTES
                patience_s = self._followed_flush_s if self._tail.waited_for else self._flush_s
                wait_s = 0.0 if soon else self._said_s + patience_s - self._now_s()
                if wait_s <= 0:
                    return
            self._prod.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._prod.wait()
            except TimeoutError:
                continue

    def _tell(self) -> None:
        """Wake all waiters of this log."""
        if not self._waiting:
            return
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    def _news(self) -> "asyncio.Future[None]":
        """Return what is done when something of this log has changed."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return waiter

    # ── Followed ─────────────────────────────────────────────────────────────

    async def follow(
        self,
        after: int,
        *,
        at_once: bool = False,
        came: Callable[[], None] = lambda: None,
        left: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Yield events with larger numbers, each once it is in the log, and the terminal one last.
        `came` and `left` are called when the follower does.

        `at_once` also those that are not, as long as no other node can own the response. Without
        the terminal event if another node makes it now. SmgError: events that are not in memory any
        more cannot be read.
        """
        tail = self._tail
        came()
        reader = tail.join(after, waits=not at_once)
        self._prod.set()
        try:
            while True:
                upto = tail.last
                if upto > reader.at and not (at_once and self._is_ours()):
                    upto = tail.durable
                if upto <= reader.at:
                    if self._over:
                        break
                    await self._news()
                    continue
                told = tail.since(reader.at, upto=upto)
                if told is None:
                    async with aclosing(self._from_store(reader)) as batches:
                        async for told in batches:
                            yield told
                else:
                    reader.at = told[-1].sequence
                    yield told
            if self.end is not None and self.end.sequence > reader.at:
                yield [self.end]
        finally:
            tail.leave(reader)
            left()

    async def _from_store(self, reader: Reader) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Yield events that are in the log but not in memory, for a follower that is far behind."""
        log = self._read(reader.at)
        while self._tail.since(reader.at, upto=reader.at) is None:
            told = await log.more()
            if not told:
                raise corrupt(f"a log that ends at event {reader.at}, and had more")
            reader.at = told[-1].sequence
            yield told
