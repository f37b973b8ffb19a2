"""Responses that outlive who asked for them, over a store that does what it is told."""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event
from smg_node.core.request_context import RequestContext
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.history.peers.peer_interface import NoPeers
from smg_node.history.ports import Direct, HistoryOptions, Keeper
from smg_node.history.runs.background_run import Pace, RegisteredRun
from smg_node.history.runs.event_codec import terminal, unpacked
from smg_node.history.runs.run_registry import RegisteredRuns
from smg_node.history.service.history_parts import HistoryParts
from smg_node.history.service.history_service import HistoryService
from smg_node.history.service.resumed_streams import ResumedStreams
from smg_node.history.store.hooked_store import HookedKeeper
from smg_node.history.turns.quotas import Quotas
from smg_node.system_clock import SystemClock
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.hooks import NamedHook
from smg_storage.memory.store import MemoryStore
from smg_storage.options import Bounds
from smg_storage.records import Access, Status, StoredResponse
from smg_storage.store_wrapper import Call, StoreWrapper
from support.history.history_world import PlainVault, WordMeasures, ask_of, begin, finish
from support.http.http_node import FakeGenerations, FakeRun

QUICK = Pace(
    lease_s=5.0,
    renew_s=0.02,
    flush_s=0.02,
    followed_flush_s=0.002,
    retry_s=0.002,
    retry_most_s=0.01,
    end_s=5.0,
    shut_s=2.0,
)
PATIENCE_S = 60.0
"""What is waited for in a test comes within milliseconds, or never."""

T = TypeVar("T")
Act = Callable[[Callable[[], Awaitable[Any]]], Coroutine[Any, Any, Any]]


def refused(kind: StoreErrorKind = StoreErrorKind.UNAVAILABLE) -> Act:
    """Return what does nothing and fails."""

    async def act(run: Callable[[], Awaitable[Any]]) -> Any:
        raise StoreError(kind, "not today", missing="conv_gone")

    return act


def unknown() -> Act:
    """Return what does it, and fails all the same."""

    async def act(run: Callable[[], Awaitable[Any]]) -> Any:
        await run()
        raise StoreError(StoreErrorKind.UNAVAILABLE, "it took too long")

    return act


def after(event: asyncio.Event) -> Act:
    """Return what does it when something has happened."""

    async def act(run: Callable[[], Awaitable[Any]]) -> Any:
        await event.wait()
        return await run()

    return act


class WilfulStore(StoreWrapper):
    """A store in memory that fails when it is told to."""

    def __init__(self) -> None:
        clock = SystemClock()
        super().__init__(MemoryStore(Bounds(), lambda: clock.now_ms() * 1000))
        self.asked: list[str] = []
        self.away = False
        self.acts: dict[str, deque[Act]] = {}
        self.seen: Callable[[str], Any] = lambda operation: None

    def will(self, operation: str, *acts: Act) -> None:
        """Let the next of these operations go that way."""
        self.acts.setdefault(operation, deque()).extend(acts)

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        self.asked.append(call.operation)
        self.seen(call.operation)
        acts = self.acts.get(call.operation)
        if self.away:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "it is away")
        if acts:
            result: T = await acts.popleft()(run)
            return result
        return await run()


class Feed:
    """A generation that says what it is told to, when it is told to."""

    def __init__(self) -> None:
        self._batches: asyncio.Queue[list[Event] | None] = asyncio.Queue()
        self._text = ""

    async def script(self, run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        while True:
            batch = await self._batches.get()
            if batch is None:
                return
            yield batch

    def put(self, *events: Event) -> None:
        self._batches.put_nowait(list(events))

    def begin(self) -> None:
        self.put(begin(), BlockStart(0, 0, "text"))

    def say(self, word: str) -> None:
        self._text += word
        self.put(Delta(0, 0, word, 1))

    def finish(self) -> None:
        self.put(BlockEnd(0, 0, "text", self._text), *finish())
        self._batches.put_nowait(None)

    def all_of(self, *words: str) -> None:
        """Say all of it, from beginning to end."""
        self.begin()
        for word in words:
            self.say(word)
        self.finish()


@dataclass
class RunWorld:
    """A desk whose responses outlive who asked for them."""

    store: WilfulStore
    feed: Feed
    generations: FakeGenerations
    options: HistoryOptions
    runs: RegisteredRuns
    desks: HistoryService
    access: Access = field(default_factory=lambda: Access(tenant="acme", timeout_s=5.0))

    async def begin(self, access: Access | None = None, **body: Any) -> RegisteredRun:
        """Return a response that is being made."""
        body = {"input": "hi", "background": True, **body}
        ask = ask_of(**body)
        access = self.access if access is None else access
        assert self.desks.responses.registers(ask, access)
        return await self.desks.responses.register(ask, RequestContext("req_1", 0.0, 1e9), access)

    async def row(self, run: RegisteredRun) -> StoredResponse | None:
        return await self.store.inner.get_response(run.access, run.id)

    async def log(self, run: RegisteredRun) -> list[NumberedEvent]:
        """Return what is in the log."""
        blobs = await self.store.inner.read_events(run.access, run.id, after=-1, limit=10_000)
        return [told for blob in blobs for told in unpacked(blob)]

    async def whole(self, run: RegisteredRun) -> list[NumberedEvent]:
        """Return all events, as any reader of the store tells them; the response is over."""
        row, log = await self.row(run), await self.log(run)
        assert row is not None
        assert row.status.is_final
        assert [told.sequence for told in log] == list(range(len(log)))
        return [*log, terminal(row.response, len(log))]


@asynccontextmanager
async def run_world(
    *,
    options: HistoryOptions | None = None,
    pace: Pace = QUICK,
    hooks: Sequence[NamedHook] = (),
) -> AsyncIterator[RunWorld]:
    """Yield one whose node is up; it ends with the node."""
    world = still_world(options=options, pace=pace, hooks=hooks)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        carrying = group.create_task(world.runs.run())
        try:
            yield world
        finally:
            carrying.cancel()


def still_world(
    *,
    options: HistoryOptions | None = None,
    pace: Pace = QUICK,
    hooks: Sequence[NamedHook] = (),
) -> RunWorld:
    """Return one whose node is not up yet."""
    clock, rng, store, feed = SystemClock(), random.Random(5), WilfulStore(), Feed()
    chosen = HistoryOptions() if options is None else options
    keeper: Keeper = HookedKeeper(Direct(store), hooks) if hooks else Direct(store)
    generations = FakeGenerations(feed.script)
    runs = RegisteredRuns(keeper, chosen, owner="n1/0000000a", clock=clock, rng=rng, pace=pace)
    desks = HistoryService(
        HistoryParts(
            keeper=keeper,
            generations=generations,
            measures=WordMeasures(None),
            vault=PlainVault(),
            clock=clock,
            rng=rng,
            options=chosen,
            runs=runs,
            resumed=ResumedStreams(runs.owner, NoPeers().known),
            quotas=Quotas(keeper, now_s=clock.monotonic_s, options=chosen),
        )
    )
    return RunWorld(store, feed, generations, chosen, runs, desks)


async def all_of(events: AsyncIterator[Sequence[NumberedEvent]]) -> list[NumberedEvent]:
    """Return events to their end."""
    return [told async for batch in events for told in batch]


def status_of(body: bytes) -> str:
    """Return what an object says of itself."""
    return str(msgspec.json.decode(body)["status"])


async def final(world: RunWorld, run: RegisteredRun) -> Status:
    """Return how it ended, as the row and the object in it say."""
    row = await world.row(run)
    assert row is not None
    assert row.status.is_final
    assert status_of(row.response) == row.status.value
    return row.status


async def foreground(world: RunWorld) -> RegisteredRun:
    """Return a response whose client is there, and may come back."""
    return await world.begin(background=False, stream=True)
