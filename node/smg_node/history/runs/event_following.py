"""Event following: a response's events from any number on, on any node, and its current state.

    run on this node ──▶ its run ──┐ (lost to another owner)
    on another node ───▶ the log, ◀┘ polled until the row is final ──▶ the end, out of the row
    over, log there ───▶ the log ────────────────────────────────────▶ the end, out of the row
    over, no log ──────▶ rebuilt from the row, with new numbers; never from a number on

All but the last event are in the log before any follower gets them, and the log is complete before
the row is final. So a reader that sees a final row, and then reads the log to its end, has seen
everything, and numbers the last event itself.

A stream that cannot go on is never ended as if it were whole: `follow` raises.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.context.paced_steps import paced
from smg_node.history.errors import asking_store, corrupt, response_not_found
from smg_node.history.peers.follower_notices import FollowerNotice, FollowerNotices
from smg_node.history.ports import HistoryOptions, Keeper
from smg_node.history.runs.event_codec import terminal
from smg_node.history.runs.event_log_reader import LogReader
from smg_node.history.runs.predecessors import node_of
from smg_node.history.turns.api_ids import is_interaction
from smg_node.history.turns.public_forms import LAST_EVENTS, partial_of, rebuilt_in_steps
from smg_storage.ids import is_id
from smg_storage.records import Access, StoredResponse

POLL_FIRST_S: Final = 0.05
POLL_MOST_S: Final = 0.5
"""So long it waits before it looks into the log again: less when there was something new the last time."""
_BATCH_BYTES: Final = 256 << 10
"""So much is told at a time, unless one event is larger."""
_NUMBER_MAX: Final = (1 << 31) - 2
"""Stores count events in 32 bits; no stream has as many."""

Events = AsyncGenerator[Sequence[NumberedEvent], None]
Seen = Callable[[StoredResponse], None]


class Followed(Protocol):
    """A run of this process, as followers see it."""

    def body(self) -> bytes:
        """Return its object as it is now."""
        ...

    def follow(self, after: int) -> Events:
        """Yield its events after a number, each once it is durable; without its end if another node
        makes it now.
        """
        ...


class Attended(Protocol):
    """A run of this process, as its own client sees it."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    def attend(self) -> Events:
        """Yield its events at once; without its end if another node makes it now."""
        ...


class Following:
    """Serves event streams to followers. `find` looks up this process's runs by tenant and id;
    `notices` reach the makers of others.
    """

    def __init__(
        self,
        keeper: Keeper,
        find: Callable[[str, str], Followed | None],
        *,
        options: HistoryOptions,
        notices: FollowerNotices,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._keeper: Final = keeper
        self._find: Final = find
        self._options: Final = options
        self._notices: Final = notices
        self._sleep: Final = sleep

    # ── Events ───────────────────────────────────────────────────────────────

    async def follow(
        self,
        access: Access,
        response_id: str,
        after: int | None,
        *,
        seen: Seen = lambda record: None,
    ) -> Events:
        """Return the events with larger numbers than `after` (None: all), up to the end; `seen` is told
        of each row that is read for them.

        NOT_FOUND; INVALID_REQUEST `stream_expired` where the log is gone; OVERLOADED
        `store_unavailable`. The events raise SmgError where the stream cannot go on, as they do
        when the store goes away.
        """
        after = None if after is None else min(after, _NUMBER_MAX)
        run = self._find(access.tenant, response_id)
        if run is not None:
            first = -1 if after is None else after
            return self._onward(run, access, response_id, first, seen)
        record = await self._record(access, response_id, seen)
        return await self._from_store(record, access, after, seen)

    async def _onward(
        self, run: Followed, access: Access, response_id: str, after: int, seen: Seen
    ) -> Events:
        """Yield the events of a run of this process, and continue from the store if another node
        takes over.
        """
        async with aclosing(run.follow(after)) as batches:
            async for told in batches:
                yield told
                after = told[-1].sequence
                if told[-1].type in LAST_EVENTS:
                    return
        record = await self._record(access, response_id, seen)
        told_to = None if after < 0 else after
        async with aclosing(await self._from_store(record, access, told_to, seen)) as batches:
            async for told in batches:
                yield told

    async def _from_store(
        self, record: StoredResponse, access: Access, after: int | None, seen: Seen
    ) -> Events:
        log = self._log(access, record.id, -1 if after is None else after)
        first = await log.more()
        if log.headless and not record.status.is_final:
            raise corrupt(f"log of response {record.id}, whose beginning is gone")
        if record.status.is_final and not log.found:
            return await self._without_log(record, log, after)
        return self._told(record, access, log, first, seen)

    async def _without_log(
        self, record: StoredResponse, log: LogReader, after: int | None
    ) -> Events:
        """Return the events of a finished response whose log does not have the wanted ones."""
        if after is None:
            return _all_of(await self._retold(record))
        if log.headless or not await log.exists():
            raise _expired(record.id)
        return _all_of([])

    async def _told(
        self,
        record: StoredResponse,
        access: Access,
        log: LogReader,
        told: Sequence[NumberedEvent],
        seen: Seen,
    ) -> Events:
        wait_s, looks = POLL_FIRST_S, True
        notice = self._notice(record, access)
        while True:
            if not record.status.is_final:
                await notice.tell()
            while told:
                yield told
                wait_s, looks = POLL_FIRST_S, True
                told = await log.more() if record.status.is_final or log.may_have_more else ()
            if record.status.is_final:
                break
            await self._sleep(wait_s)
            wait_s = min(2 * wait_s, POLL_MOST_S)
            told = await log.more()
            if log.headless:
                raise corrupt(f"log of response {record.id}, whose beginning is gone")
            if not told:
                if looks:
                    # Final or not, the log is read once more after this: it may have grown in between.
                    record = await self._record(access, record.id, seen)
                    told = await log.more() if record.status.is_final else ()
                looks = not looks
        for last in await self._end(record, log):
            yield last

    def _notice(self, record: StoredResponse, access: Access) -> FollowerNotice:
        """Return what tells the maker of an answer that a client of it is here."""
        node = node_of(record.owner)
        grace_s = self._options.grace_s(
            "interactions" if is_interaction(record.id) else "responses"
        )
        return self._notices.of(node, access.tenant, record.id, grace_s=grace_s)

    async def _end(
        self, record: StoredResponse, log: LogReader
    ) -> Sequence[Sequence[NumberedEvent]]:
        """Return the remaining events when the log of a final response has been read to its end."""
        if log.headless:
            raise _lost(record.id)
        if not log.found:
            # Nothing was told, and nothing will be: it is over, and it ended before the number that was asked for.
            return [] if log.last >= 0 else [await self._retold(record)]
        if not await log.is_whole():
            raise _lost(record.id)
        try:
            return [[terminal(record.response, log.last + 1)]]
        except ValueError as error:
            raise corrupt(f"response {record.id}") from error

    # ── The object ───────────────────────────────────────────────────────────

    async def snapshot(self, access: Access, record: StoredResponse) -> bytes:
        """Return the object of a response as it is now: with all finished items that are in its
        log.
        """
        run = self._find(access.tenant, record.id)
        if run is not None:
            return run.body()
        if record.status.is_final:
            return record.response
        log = self._log(access, record.id, -1)
        try:
            halfway = partial_of(record)
            while told := await log.more():
                halfway.hear(told)
            if log.headless:
                raise ValueError("its beginning is gone")
            return halfway.body()
        except ValueError as error:
            raise corrupt(f"response {record.id}, or its log") from error

    # ── The store ────────────────────────────────────────────────────────────

    def _log(self, access: Access, response_id: str, after: int) -> LogReader:
        return LogReader(self._keeper.store, access, response_id, after=after)

    async def _record(self, access: Access, response_id: str, seen: Seen) -> StoredResponse:
        if not is_id(response_id):
            raise response_not_found(response_id)
        with asking_store():
            record = await self._keeper.store.get_response(access, response_id)
        if record is None:
            raise response_not_found(response_id)
        seen(record)
        return record

    async def _retold(self, record: StoredResponse) -> Sequence[NumberedEvent]:
        names = self._options.reasoning_events
        try:
            return await paced(rebuilt_in_steps(record, names))
        except ValueError as error:
            raise corrupt(f"response {record.id}") from error


async def attended(run: Attended) -> Events:
    """Yield the events of a run for its own client; OVERLOADED `stream_lost` if they stop before
    its end.

    The client got events before they were durable: the events of a later owner need not continue
    them.
    """
    async with aclosing(run.attend()) as batches:
        async for told in batches:
            yield told
            if told[-1].type in LAST_EVENTS:
                return
    raise _lost(run.id)


async def _all_of(told: Sequence[NumberedEvent]) -> Events:
    """Yield events in bounded batches, for a client that reads slowly."""
    batch: list[NumberedEvent] = []
    size = 0
    for one in told:
        batch.append(one)
        size += len(one.data)
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _expired(response_id: str) -> SmgError:
    return invalid(
        f"the events of {quoted(response_id)} are not kept any more; without starting_after they are told again",
        "starting_after",
        "stream_expired",
    )


def _lost(response_id: str) -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED,
        f"the stream of {quoted(response_id)} cannot go on here; what became of it can be asked for",
        code="stream_lost",
    )
