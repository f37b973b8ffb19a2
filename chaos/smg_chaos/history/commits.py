"""Commits a second: turns that SQLite takes in this process at a given rate, and the time each
waits.

Turns come when they are due, so many a second, whether those before them are written or not; a
turn's time is from when it was due until it is durable. Three of four stand alone, the fourth is
one more of a conversation.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from smg_chaos.bench.children import BenchError
from smg_chaos.bench.figures.process_accounting import tree_scheduled_s
from smg_chaos.history.sample_turns import TurnMaker
from smg_chaos.statistics import percentile
from smg_storage.errors import StoreError
from smg_storage.open import open_store
from smg_storage.options import StoreOptions
from smg_storage.records import Access, Conversation
from smg_storage.store import HistoryStore

_CONVERSATIONS: Final = 64
_OPEN_MAX: Final = 2_000
_STEP_S: Final = 0.001
_ACCESS: Final = Access(timeout_s=30.0)
_MS: Final = 1e3


@dataclass(frozen=True, slots=True)
class Rate:
    """Results at one rate of turns a second."""

    wanted_per_s: float
    seconds: float
    turns: int
    per_s: float
    p50_ms: float
    p99_ms: float
    worst_ms: float
    held_back: int
    """Turns that were due while too many others waited."""
    us: float
    """CPU of a turn, of the store and of what makes the turns."""

    def row(self) -> dict[str, Any]:
        """Return the figures for machines."""
        return asdict(self)


@dataclass(slots=True)
class _Tally:
    took_s: list[float] = field(default_factory=list)
    open: int = 0
    held_back: int = 0


async def rate(
    folder: Path,
    *,
    per_s: float,
    seconds: float,
    clock_s: Callable[[], float],
    now_us: Callable[[], int],
) -> Rate:
    """Write turns into a new file in a folder for so long; BenchError if one is refused."""
    store = open_store(f"sqlite:///{folder / 'rate.db'}", options=StoreOptions(), now_us=now_us)
    await store.start()
    try:
        return await _written(store, per_s, seconds, clock_s, now_us)
    except* StoreError as errors:
        raise BenchError(f"a turn was refused: {errors.exceptions[0]}") from errors
    finally:
        await store.close()


async def _written(
    store: HistoryStore,
    per_s: float,
    seconds: float,
    clock_s: Callable[[], float],
    now_us: Callable[[], int],
) -> Rate:
    maker, tally = TurnMaker(), _Tally()
    threads = [maker.thread() for _ in range(_CONVERSATIONS)]
    rooms = [
        Conversation(maker.id("conv", thread, now_us()), now_us(), now_us(), b"{}")
        for thread in threads
    ]
    for room in rooms:
        await store.create_conversation(_ACCESS, room)

    async def write(number: int, due_s: float) -> None:
        which = number // 4 % _CONVERSATIONS
        if number % 4 == 0:
            turn = maker.turn(now_us(), thread=threads[which], conversation_id=rooms[which].id)
        else:
            turn = maker.turn(now_us())
        await store.commit_turn(_ACCESS, turn)
        tally.open -= 1
        tally.took_s.append(clock_s() - due_s)

    used_s, begun_s, sent = tree_scheduled_s(os.getpid()), clock_s(), 0
    async with asyncio.TaskGroup() as group:
        while (now_s := clock_s()) < begun_s + seconds:
            while (due_s := begun_s + sent / per_s) <= now_s:
                sent += 1
                if tally.open >= _OPEN_MAX:
                    tally.held_back += 1
                    continue
                tally.open += 1
                group.create_task(write(sent, due_s))
            await asyncio.sleep(_STEP_S)
    took_s = clock_s() - begun_s
    used_s = tree_scheduled_s(os.getpid()) - used_s
    count = len(tally.took_s)
    return Rate(
        wanted_per_s=per_s,
        seconds=took_s,
        turns=count,
        per_s=count / took_s,
        p50_ms=_MS * percentile(tally.took_s, 0.5),
        p99_ms=_MS * percentile(tally.took_s, 0.99),
        worst_ms=_MS * max(tally.took_s),
        held_back=tally.held_back,
        us=1e6 * used_s / count,
    )
