"""Two nodes before one store, in one process: either's way to it may be closed, and the mesh does what a test wants."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from smg_node.history.peers.peer_interface import FORETOLD, UNWRITTEN
from smg_node.history.peers.pending_writes import PendingWrites, answered
from smg_node.history.store.resilient_store import ResilientStore
from smg_node.history.store.store_health import StoreHealth
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.store import MemoryStore
from smg_storage.store import HistoryStore
from smg_storage.store_wrapper import Call, StoreWrapper
from support.history.peer_histories import Net, memory
from support.history.spools import spool_at
from support.store_contract.maker import Clock

T = TypeVar("T")


class Gate(StoreWrapper):
    """A way to a store that may be closed."""

    closed = False

    async def _through(self, call: Call, run: Callable[[], Awaitable[T]]) -> T:
        if self.closed:
            raise StoreError(StoreErrorKind.UNAVAILABLE, "it is away")
        return await run()


@dataclass
class Two:
    """Nodes a and b before one store; a's way to it may be closed."""

    net: Net
    gate: Gate
    store: MemoryStore
    a: PendingWrites
    b: PendingWrites
    b_gate: Gate
    passed: "Time"


@dataclass
class Time:
    """Monotonic seconds of both, more of which pass when a test says so, and Unix milliseconds that go with them."""

    more_s: float = 0.0
    ms: int = -99_000

    def now_s(self) -> float:
        return time.monotonic() + self.more_s

    def now_ms(self) -> int:
        return self.ms + int(self.more_s * 1_000)


def keeping_of(store: HistoryStore, folder: Path, now_s: Callable[[], float]) -> ResilientStore:
    return ResilientStore(
        lambda: store,
        kind="postgresql",
        health=StoreHealth(now_s=now_s, rng=random.Random(1), slow_s=1.0),
        spool=spool_at(folder),
        strict=False,
        now_s=now_s,
        observe=lambda *_: None,
        wait_s=5.0,
    )


async def heard_by(one: PendingWrites, payload: bytes, caller: str) -> bytes:
    return one.hear(payload, caller)


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[Two]:
    net, store, passed = Net(), memory(Clock()), Time()
    gate, b_gate = Gate(store), Gate(store)
    ways: dict[str, HistoryStore] = {"a": gate, "b": b_gate}
    made: dict[str, tuple[ResilientStore, PendingWrites]] = {}
    async with asyncio.TaskGroup() as group:
        tasks = []
        for name, way in ways.items():
            keeping, peers = keeping_of(way, folder / name, passed.now_s), net.peers(name)
            keeping.tell_spooling(lambda some, peers=peers: peers.say_spooling(on=some))  # type: ignore[misc]  # bound now
            peers.answer(UNWRITTEN, lambda asked, _, keeping=keeping: answered(keeping, asked))  # type: ignore[misc]  # bound now
            tasks.append(group.create_task(keeping.run()))
            await keeping.ping(timeout_s=5)
            looks = count(0.0, 1e9)
            unwritten = PendingWrites(
                keeping,
                peers,
                now_s=partial(next, looks),
                now_ms=passed.now_ms,
            )
            peers.answer(FORETOLD, partial(heard_by, unwritten))
            made[name] = keeping, unwritten
        # The store was well for long; the first response of a thread began a second ago.
        passed.more_s += 100.0
        yield Two(net, gate, store, made["a"][1], made["b"][1], b_gate, passed)
        for task in tasks:
            task.cancel()
    for keeping, _ in made.values():
        await keeping.close()
