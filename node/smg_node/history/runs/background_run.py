"""Background run: one response that outlives its request: lease, event log, final commit.

    row, lease ──▶ generation ──▶ the log, complete ──▶ the row, final ──▶ the terminal event
         (others may look on)  cancelled, too late, node shuts down ──┘

A node that dies between any two of these steps leaves enough in the store for another node to
finish. No event is sent that is not in the log, except to the direct client of a foreground
response; the terminal event is made from the row. While the store is unavailable all of this waits,
and the generation goes on as long as there is room.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, TypeVar

from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.errors import failure_of
from smg_node.history.ports import Keeper
from smg_node.history.runs.event_codec import terminal
from smg_node.history.runs.event_log import FLUSH_S, FOLLOWED_FLUSH_S, RunLog
from smg_node.history.runs.event_log_reader import LogReader
from smg_node.history.runs.run_lease import LEASE_S, RENEW_S, Lost, RunLease
from smg_node.history.runs.store_retry import FIRST_WAIT_S, MOST_WAIT_S, StoreRetry
from smg_node.history.runs.unsaved_bytes import UnsavedBytes
from smg_node.history.turns.response_run import ResponseRun
from smg_node.history.turns.turn_record import without_output
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import NEVER_US, Access, EventBlob, Lease, Patch, Status, Turn

SHUT_S: Final = 5.0
"""So long the ends of a node's own responses are waited for when it ends; a later one is told by another node."""
END_S: Final = 60.0
"""So long an end is tried to be kept at least, however late it is."""
_UNFINISHED: Final = (Status.QUEUED, Status.IN_PROGRESS)
_UNSHOWN: Final = (StoreErrorKind.REJECTED, StoreErrorKind.TOO_LARGE)
"""Why a store does not take what was said, and not only where it belongs."""

T = TypeVar("T")
_log: Final = logging.getLogger("smg_node.history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals of a run's periodic work, in seconds."""

    lease_s: float = LEASE_S
    renew_s: float = RENEW_S
    flush_s: float = FLUSH_S
    followed_flush_s: float = FOLLOWED_FLUSH_S
    retry_s: float = FIRST_WAIT_S
    retry_most_s: float = MOST_WAIT_S
    end_s: float = END_S
    shut_s: float = SHUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """Shared parts of all runs. `appending` limits how many write into their logs at a time."""

    keeper: Keeper
    clock: Clock
    insisting: StoreRetry
    held: UnsavedBytes
    appending: asyncio.Semaphore
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Limits of a run: its deadline, in seconds on the monotonic clock, and the retention of its
    events.

    `grace_s` is how long it goes on after its client has left; None for as long as it takes.
    """

    deadline_s: float
    log_expires_us: int
    grace_s: float | None


class RegisteredRun:
    """One run, owned by this process. `lost` is whether it ended here and another owner completes
    it.
    """

    def __init__(self, made: ResponseRun, lease: Lease, parts: RunParts, terms: Terms) -> None:
        """Take a response whose row is in the store, with this lease."""
        self.id: Final = made.id
        self.access: Final[Access] = made.access
        self.made: Final = made
        self.lost = False
        self.outcome = ""
        """How it ended, in one word, once it has; "lost" where that is for others to tell."""
        self._parts: Final = parts
        self._terms: Final = terms
        store, pace = parts.keeper.store, parts.pace
        self._leasing: Final = RunLease(
            store,
            made.access,
            lease,
            clock=parts.clock,
            insisting=parts.insisting,
            wanted_over=self.cancel,
            lease_s=pace.lease_s,
            renew_s=pace.renew_s,
        )
        self.log: Final = RunLog(
            self._append,
            lambda after: LogReader(store, made.access, made.id, after=after),
            held=parts.held,
            now_s=parts.clock.monotonic_s,
            is_ours=lambda: self._leasing.is_ours,
            on_refused=lambda failure: self._stop(FinalStatus.failed(failure)),
            flush_s=pace.flush_s,
            followed_flush_s=pace.followed_flush_s,
        )
        if made.calls is not None:
            made.calls.wait_for(self.log.kept)
        self._stopped: FinalStatus | None = None
        self._generating: asyncio.Task[None] | None = None
        self._shown: bytes | None = None
        self.forgotten = False
        """Whether it was deleted."""
        self._alone_since_s = parts.clock.monotonic_s()
        self._present = 0
        self._prod: Final = asyncio.Event()
        self._ended: Final = asyncio.Event()

    # ── For others ───────────────────────────────────────────────────────────

    def body(self) -> bytes:
        """Return the object as it is now: until its end is durable, as it was before."""
        return self.made.body() if self._shown is None else self._shown

    def cancel(self) -> None:
        """Let it end as cancelled, unless it is ending already."""
        self._stop(FinalStatus.cancelled())

    def shut(self) -> None:
        """Let it end because the node shuts down, unless it is ending already."""
        self._stop(FinalStatus.failed(_shutting_down()))

    def forget(self) -> None:
        """Stop it: its response was deleted."""
        self.forgotten = True
        self._prod.set()

    def followed_elsewhere(self) -> None:
        """Count its client as there at this moment: it follows at another node."""
        self._alone_since_s = self._parts.clock.monotonic_s()
        self._prod.set()

    async def ended(self) -> None:
        """Return when its end is durable, or it has another owner."""
        await self._ended.wait()

    def follow(self, after: int) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Yield its events with larger numbers, each once it is durable, and the terminal one last.

        Without the terminal event if another node makes it now, or it was deleted. SmgError: the
        log cannot be read.
        """
        return self.log.follow(after, came=self._came, left=self._left)

    def attend(self) -> AsyncGenerator[Sequence[NumberedEvent], None]:
        """Yield all of its events at once, and the terminal one when its end is durable: for its
        own client.

        Without the terminal event if it is made elsewhere now, or deleted.
        """
        return self.log.follow(-1, at_once=True, came=self._came, left=self._left)

    def _came(self) -> None:
        self._present += 1

    def _left(self) -> None:
        self._present -= 1
        self._alone_since_s = self._parts.clock.monotonic_s()
        self._prod.set()

    # ── Made ─────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Make it, to its end; it may be cancelled at any time, and then belongs to another owner."""
        try:
            async with asyncio.TaskGroup() as group:
                logging_it = group.create_task(self.log.keep())
                beside = [group.create_task(self._leasing.keep()), group.create_task(self._watch())]
                await self._make(group)
                await self._end(logging_it)
                for task in (logging_it, *beside):
                    task.cancel()
        except* Lost:
            _log.warning("a response is not made here any more: %s", self.id)
        finally:
            self._over()

    async def _make(self, group: asyncio.TaskGroup) -> None:
        if self._stopped is None:
            self._generating = group.create_task(self._generate())
            await asyncio.wait([self._generating])
            self._generating = None
        self._shown = self.made.body()

    async def _generate(self) -> None:
        try:
            async with aclosing(self.made.generated()) as batches:
                async for told in batches:
                    self.log.say(told)
                    if not self.log.has_room:
                        await self.log.room()
        except Exception:
            # A door: a mistake of ours must not leave a response that nobody ends.
            _log.exception("a response broke because of a mistake of ours: %s", self.id)

    def _stop(self, ended: FinalStatus) -> None:
        """Let it end with that status; the first call counts, and none after it has ended by
        itself.
        """
        if self._stopped is None and self._shown is None:
            self._stopped = ended
            if self._generating is not None:
                self._generating.cancel()

    async def _watch(self) -> None:
        """Stop it at its deadline, or when no client has been there for a while; until cancelled."""
        while True:
            if self.forgotten:
                raise Lost
            now_s = self._parts.clock.monotonic_s()
            grace_s = self._terms.grace_s
            waits = [self._terms.deadline_s - now_s]
            if grace_s is not None and not self._present:
                waits.append(self._alone_since_s + grace_s - now_s)
            if waits[0] <= 0:
                self._stop(FinalStatus.failed(_too_late()))
            elif waits[-1] <= 0:
                self.cancel()
            wait_s = None if min(waits) <= 0 else min(waits)
            self._prod.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._prod.wait()
            except TimeoutError:
                continue

    async def _append(self, blobs: Sequence[EventBlob]) -> None:
        store, terms = self._parts.keeper.store, self._terms

        async def append() -> None:
            async with self._parts.appending:
                await store.append_events(
                    self.access,
                    self.id,
                    blobs,
                    expires_us=terms.log_expires_us,
                    token=self._leasing.lease.token,
                )

        await self._leasing.guarded(append)

    # ── Ended ────────────────────────────────────────────────────────────────

    async def _end(self, logging_it: "asyncio.Task[None]") -> None:
        """Have its end committed, then send the terminal event."""
        made, log = self.made, self.log
        outcome = self._stopped or made.outcome
        self.outcome = outcome.status
        turn = made.close(outcome)
        log.say(made.last_words[:-1])
        if turn is None:
            # What is taken away has no log to be written.
            logging_it.cancel()
            await self._leave_nothing()
            await made.entry.over(None)
            log.finish(made.last_words[-1], unwritten=True)
            return
        await log.written()
        if log.refused is None:
            response = await self._commit(turn)
        else:
            response = await self._fail_instead(log.refused, shown=False)
        kept_so = self.outcome == outcome.status
        await made.entry.over(turn if kept_so else structs.replace(turn, idempotency=None))
        self._shown = response
        log.finish(terminal(response, log.next))

    async def _commit(self, turn: Turn) -> bytes:
        """Write it; return the object as it is in the row. Lost if that cannot be, or another owner
        has.
        """
        self._leasing.settled = True
        keeper = self._parts.keeper
        try:
            kept = await self._insist(lambda: keeper.write(self.access, turn))
        except StoreError as error:
            _log.warning("a response was not kept: %s: %s", self.id, error.message)
            if error.kind is StoreErrorKind.UNAVAILABLE:
                raise Lost from error
            # If it is somebody else's by now, that is refused as well.
            return await self._fail_instead(failure_of(error), shown=error.kind not in _UNSHOWN)
        return kept.response or turn.response.response

    async def _fail_instead(self, failure: SmgError, *, shown: bool) -> bytes:
        """Let it fail, with its output or without; return the object as it is in the row then."""
        self._leasing.settled = True
        made, store = self.made, self._parts.keeper.store
        made.fail_instead(failure)
        self.outcome = "failed"
        response = made.body() if shown else without_output(made.body())
        now_us = self._parts.clock.now_ms() * 1_000
        patch = Patch(
            status=Status.FAILED,
            response=response,
            completed_us=now_us,
            expires_us=now_us + made.kept_us if made.kept_us else NEVER_US,
        )
        token = self._leasing.lease.token
        try:
            row = await self._insist(
                lambda: store.patch_response(
                    self.access, self.id, patch, from_statuses=_UNFINISHED, token=token
                )
            )
        except StoreError as error:
            raise Lost from error
        if row is None:
            raise Lost
        return response

    async def _leave_nothing(self) -> None:
        """Delete its row: its client gets an error, and no other client knows it."""
        self._leasing.settled = True
        try:
            await self._parts.keeper.store.delete_response(self.access, self.id)
        except StoreError as error:
            # Then it is an orphan, and ended as one.
            _log.warning("a response that failed is still there: %s: %s", self.id, error.message)

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        parts = self._parts
        until_s = max(self._terms.deadline_s, parts.clock.monotonic_s() + parts.pace.end_s)
        return await parts.insisting.on(ask, until_s=until_s)

    def _over(self) -> None:
        """Wake all waiters, however it ended."""
        if self.made.calls is not None:
            self.made.calls.close()
        # If it was stopped before it began, it still has what let it in.
        self.made.generation.leave()
        self.made.entry.lost()
        if self.log.end is None:
            self.lost = True
            self.outcome = "lost"
            self.log.finish(None)
        self.made.over = True
        self._ended.set()


def _shutting_down() -> SmgError:
    return SmgError(
        ErrorKind.OVERLOADED,
        "the node that made it shut down before it was finished",
        code="server_shutting_down",
    )


def _too_late() -> SmgError:
    return SmgError(
        ErrorKind.UPSTREAM_TIMEOUT,
        "it was not finished in the time that a response may take in the background",
    )
