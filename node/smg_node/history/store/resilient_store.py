"""Resilient store: circuit breaker, reconnection and local spool around the history store.

A store that is known to be unavailable is not called, and every call is counted. It is opened by
`run`, in the background and for as long as it takes; callers that come before the first attempt is
over wait for that.

A turn that the store does not take now is put on this node's disk, and counts as kept: it will be
written. Until then a caller that asks for anything of its thread waits a moment and then gets
UNAVAILABLE, never "not found"; and later turns of the same thread go to the disk as well.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec import structs

from smg_node.history.ports import Kept
from smg_node.history.spool.spool import Spool, SpoolError
from smg_node.history.spool.spool_format import SpooledTurn
from smg_node.history.spool.spool_replay import Replay
from smg_node.history.store.store_health import StoreHealth
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.ids import thread_of
from smg_storage.no_store import NoStore
from smg_storage.records import Access, Turn
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import Call, StoreWrapper, ids_of

OPEN_RETRY_S: Final = 0.5
OPEN_RETRY_MAX_S: Final = 5.0
LOOK_S: Final = 2.0
"""So long a look at a store that was away may take."""
CLOSE_S: Final = 5.0
WRITTEN_S: Final = 2.0
"""So long whoever asks waits for turns on the disk to be written, at most."""
UNWRITTEN_S: Final = 1.0
"""So long another node waits that asks whether they are."""
REPLAY_S: Final = 10.0

T = TypeVar("T")
_log: Final = logging.getLogger("smg_node.history")


class Observe(Protocol):
    """Counter of store operations."""

    def __call__(self, operation: str, outcome: str, duration_s: float, /) -> None:
        """Count one operation."""
        ...


class ResilientStore(StoreWrapper):
    """The node's history store, whose operations fail at once while the store is unavailable."""

    def __init__(
        self,
        open_store: Callable[[], HistoryStore],
        *,
        kind: str,
        health: StoreHealth,
        spool: Spool,
        strict: bool,
        now_s: Callable[[], float],
        observe: Observe,
        wait_s: float,
    ) -> None:
        """Take how the store is made, in a thread; early callers wait up to `wait_s` for it to be
        open.

        With `strict` no new turn is put on the disk.
        """
        super().__init__(NoStore())
        self._open_store: Final = open_store
        self._kind: Final = kind
        self._health: Final = health
        self._spool: Final = spool
        self._strict: Final = strict
        self._replay: Final = Replay(
            spool, self._write_again, away=lambda: health.away, now_s=now_s
        )
        self._now_s: Final = now_s
        self._observe: Final = observe
        self._wait_s: Final = wait_s
        self._runs: Final[list[Callable[[], Coroutine[Any, Any, None]]]] = []
        self.foretell: Callable[[Access, Turn], Awaitable[None]] = _nobody_else
        """Called before a turn waits on the disk; StoreError if it must not."""
        self._coming: Counter[tuple[str, str]] = Counter()
        """Tenants and threads of turns that are about to wait on the disk."""
        self._looked = False
        """Whether it is known what an earlier process left on the disk."""
        self._warnings: tuple[str, ...] = ()
        self._tried: Final = asyncio.Event()
        self._unwell: Final = asyncio.Event()

    @property
    def kind(self) -> str:
        """Kind of the store, open or not."""
        return self._kind

    @property
    def store(self) -> HistoryStore:
        """Store for all reads, and for writes that their caller can repeat."""
        return self

    @property
    def failed_s_ago(self) -> float:
        """Seconds since the store last failed to answer this node, 0 while it is unavailable."""
        return self._now_s() - self._health.failed_s

    async def commit(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable; StoreError if that cannot be. Doing it again with the same turn is harmless."""
        await self._first_try()
        behind = self._spool.waits(access.tenant, ids_of(turn))
        if self._strict or not behind:
            try:
                done = await self.commit_turn(access, turn)
                return Kept(positions=done.positions)
            except StoreError as error:
                # Whether it was written is unknown; written again later, it is there once.
                if self._strict or error.kind is not StoreErrorKind.UNAVAILABLE:
                    raise
        tags = {(access.tenant, thread_of(each)) for each in ids_of(turn)}
        self._coming.update(tags)
        try:
            await self.foretell(access, turn)
            await self._spool.add(access, turn)
        except SpoolError as error:
            raise StoreError(StoreErrorKind.UNAVAILABLE, str(error)) from error
        finally:
            self._coming -= Counter(tags)
        return Kept(spooled=True)

    async def write(self, access: Access, turn: Turn) -> Kept:
        """Make a turn durable in the store itself, never on this node's disk; StoreError if that cannot be."""
        done = await self.commit_turn(access, turn)
        return Kept(positions=done.positions)

    def check_can_keep(self) -> None:
        """Return if a turn that begins now can be kept when it is over, as far as is known; else
        UNAVAILABLE.
        """
        if self._strict and self._tried.is_set() and self._health.away:
            message = self._health.trouble or "the store is away"
            raise StoreError(StoreErrorKind.UNAVAILABLE, message)
        if self._strict:
            return
        if self._spool.full or (self._spool.failing and self._health.away):
            what = "no more turns may wait for it" if self._spool.full else "the disk fails too"
            raise StoreError(StoreErrorKind.UNAVAILABLE, f"the store is away, and {what}")

    # ── One operation ────────────────────────────────────────────────────────

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        await self._first_try()
        if call.access is not None:
            await self._until_written(call, call.access)
        return await self._timed(call.operation, run)

    async def _until_written(self, call: Call, access: Access) -> None:
        """Return when no spooled turn concerns the ids that a call asks for."""
        tenant, of_all = access.tenant, call.of_all
        if not self._spool.waits(tenant, call.ids, any_of_them=of_all):
            return
        if self._health.away:
            raise StoreError(StoreErrorKind.UNAVAILABLE, self._health.trouble or "it is away")
        self._spool.hurry()
        try:
            async with asyncio.timeout(min(WRITTEN_S, access.timeout_s)):
                await self._spool.until_written(tenant, call.ids, any_of_them=of_all)
        except TimeoutError:
            message = "turns of this thread wait to be written"
            raise StoreError(StoreErrorKind.UNAVAILABLE, message) from None

    async def unwritten(self, tenant: str, ids: Sequence[str], *, any_of_them: bool) -> bool:
        """Return whether turns that may write these ids are spooled here, after a moment in which
        they may be written.
        """
        if not self._looked:
            return True
        if any(
            whose == tenant and (any_of_them or thread in map(thread_of, ids))
            for whose, thread in self._coming
        ):
            return True
        if not self._spool.waits(tenant, ids, any_of_them=any_of_them):
            return False
        if self._health.away:
            return True
        self._spool.hurry()
        try:
            async with asyncio.timeout(UNWRITTEN_S):
                await self._spool.until_written(tenant, ids, any_of_them=any_of_them)
        except TimeoutError:
            return True
        return False

    def tell_spooling(self, tell: Callable[[bool], None]) -> None:
        """Set the callback for when the first turn is spooled, and when none is any more."""
        self._spool.filled = tell

    async def _write_again(self, one: SpooledTurn) -> None:
        access = one.access(REPLAY_S)
        turn = one.turn
        try:
            await self._timed("replay", lambda: self.inner.commit_turn(access, turn))
        except StoreError as error:
            if turn.idempotency is None or error.kind is not StoreErrorKind.CONFLICT:
                raise
            # Its key was free again before the store came back, and is another response's now. This one was
            # acknowledged all the same, and is kept.
            bare = structs.replace(turn, idempotency=None)
            await self._timed("replay", lambda: self.inner.commit_turn(access, bare))

    async def _first_try(self) -> None:
        if self._tried.is_set():
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._tried.wait()
        except TimeoutError:
            message = "the store is still being opened"
            raise StoreError(StoreErrorKind.UNAVAILABLE, message) from None

    async def _timed(self, operation: str, run: Callable[[], Awaitable[T]]) -> T:
        try:
            token = self._health.enter()
        except StoreError:
            self._observe(operation, "away", 0.0)
            raise
        began_s, outcome = self._now_s(), "cancelled"
        try:
            result = await run()
            outcome = "ok"
        except StoreError as error:
            outcome = error.kind.value
            if error.kind is StoreErrorKind.UNAVAILABLE:
                self._health.failed(token, error)
            raise
        finally:
            took_s = self._now_s() - began_s
            self._observe(operation, outcome, took_s)
            if outcome == "cancelled":
                self._health.abandoned(token)
            elif outcome != StoreErrorKind.UNAVAILABLE.value:
                self._health.answered(token, took_s)
        return result

    # ── Its life ─────────────────────────────────────────────────────────────

    def reasons(self) -> tuple[str, ...]:
        """Return why this node should get no work on account of history."""
        told = self._health.old_tables
        return (told,) if told else ()

    def degraded(self) -> tuple[str, ...]:
        """Return which parts of history are degraded."""
        told = () if self._health.old_tables else self._health.words()
        told += tuple(f"store: {warning}" for warning in self._warnings)
        spool = self._spool
        if spool.full:
            told += ("spool_full: no more turns may wait for the store",)
        if spool.failing:
            told += ("spool_fails: this node's disk takes no turns",)
        if spool.turns:
            told += (f"spooled: {spool.turns} turns wait for the store",)
        return told

    async def run(self) -> None:
        """Open the store, write spooled turns, and reopen the store after an outage; until
        cancelled.
        """
        try:
            await self._spool.adopt()
        except OSError as error:
            _log.error("history: what waits on the disk cannot be read (%s)", error)
        self._looked = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stay_open())
            group.create_task(self._replay.run())
            for run in self._runs:
                group.create_task(run())

    def also(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this too, as long as history runs."""
        self._runs.append(run)

    async def _stay_open(self) -> None:
        await self._open()
        while True:
            await self._unwell.wait()
            self._unwell.clear()
            await self._until_well()
            self._spool.hurry()

    def store_changed(self) -> None:
        """React to the store becoming available or unavailable."""
        self._unwell.set()

    async def _open(self) -> None:
        """Open the store, however long it takes."""
        wait_s = OPEN_RETRY_S
        while not self._health.started:
            try:
                await self._open_once()
            except StoreError as error:
                if error.message != self._health.trouble:
                    _log.error("history: %s", error.message, extra=_event("store_not_opened"))
                self._health.not_opened(error)
                self._tried.set()
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, OPEN_RETRY_MAX_S)
        self._tried.set()

    async def _open_once(self) -> None:
        try:
            # Loading the drivers takes a while, in which the loop has other things to do.
            store = await asyncio.to_thread(self._open_store)
        except ValueError as error:
            raise StoreError(StoreErrorKind.UNAVAILABLE, str(error)) from error
        try:
            await store.start()
        except BaseException:
            await store.close()
            raise
        self.inner = store
        # A store may have found out that what it stands on forgets: that is worth knowing, and no failure.
        self._warnings = tuple(getattr(store, "warnings", ()))
        for warning in self._warnings:
            _log.warning("history: %s", warning, extra=_event("store_warning"))
        self._health.opened()
        self._spool.hurry()

    async def _until_well(self) -> None:
        """Probe a store that is unavailable, at the breaker's interval, until it answers."""
        while self._health.away:
            await asyncio.sleep(min(max(self._health.next_look_s(), 0.05), 5.0))
            try:
                await self._timed("ping", lambda: self.inner.ping(timeout_s=LOOK_S))
            except StoreError:
                continue
            _log.warning("history: the store answers again", extra=_event("store_back"))

    async def close(self) -> None:
        """Close in order: acknowledged turns are kept."""
        self._health.started = False
        for name, close in (("store", self.inner.close), ("spool", self._spool.close)):
            try:
                async with asyncio.timeout(CLOSE_S):
                    await close()
            except (TimeoutError, StoreError, OSError) as error:
                why = str(error) or f"it took more than {CLOSE_S:.0f} s"
                _log.warning("history: the %s was not closed in order (%s)", name, why)


async def _nobody_else(access: Access, turn: Turn) -> None:
    """Tell no other node: a node alone has no peers."""


def _event(name: str) -> dict[str, dict[str, str]]:
    return {"fields": {"event": name}}
