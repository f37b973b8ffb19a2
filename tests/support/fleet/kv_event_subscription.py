"""A fleet of one worker that is listened to, an ear that writes down what it hears, and scripts of KV events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.kv_events import KvBatch
from smg_node.engines.load import Load
from smg_node.fleet.fleet import Fleet, ListenOptions
from smg_node.fleet.workers.engine_subscriptions import NullKvEventSink
from smg_node.fleet.workers.worker import Worker
from support.engines.fake_engine import FakeEngine, KvScript, no_kv_events
from support.fleet.fleet_builder import fleet_of, running

QUICK = ListenOptions(load_interval_s=0.01)


def load(running: int = 0, *, rank: int = 0, **said: object) -> Load:
    whole = Load(rank, running, 0, 8, None, 0.1, None, None)
    return replace(whole, **said)  # type: ignore[arg-type]  # tests name fields freely


def batches(*sequences: int, after: SmgError | None = None, stays: bool = False) -> KvScript:
    """Return a script that numbers batches, each with a load, and then ends, breaks or stays silent."""

    async def script(start: int) -> AsyncIterator[Sequence[KvBatch]]:
        for sequence in sequences:
            yield [KvBatch(sequence, load=load(sequence))]
        if stays:
            await asyncio.sleep(3600)
        if after is not None:
            raise after

    return script


def failure(code: str, *, status: int | None = None) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, "a test", code=code, status=status)


class Ear:
    """Writes down what it hears; `wrong` are sequences after which it wants to begin anew."""

    def __init__(self) -> None:
        self.cursor = 0
        self.wrong: set[int] = set()
        self.heard: list[int] = []
        self.said: list[str] = []
        self.broken = False
        self.ticks = 0

    def start(self, worker: Worker) -> int:
        return self.cursor

    def batch(self, worker: Worker, batch: KvBatch, now_s: float) -> bool:
        if self.broken:
            raise ValueError("a mistake of ours")
        self.heard.append(batch.sequence)
        self.cursor = batch.sequence + 1
        if batch.sequence in self.wrong:
            self.cursor = 0
            return True
        return False

    def lost(self, worker: Worker, code: str) -> None:
        self.said.append(code)
        self.cursor = 0

    def closed(self, worker: Worker, now_s: float) -> None:
        self.said.append("closed")

    def relieved(self, worker: Worker) -> None:
        self.said.append("relieved")

    def gone(self, worker: Worker) -> None:
        self.said.append("gone")

    def tick(self, now_s: float) -> None:
        self.ticks += 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.002)


def engine_with(script: KvScript = no_kv_events, *, loads: bool = False) -> FakeEngine:
    engine = FakeEngine()
    engine.abilities = replace(engine.abilities, kv_events=True, loads=loads)
    engine.kv_script = script
    return engine


@asynccontextmanager
async def listening_to(
    engine: FakeEngine, folder: Path, ear: Ear | NullKvEventSink, options: ListenOptions = QUICK
) -> AsyncIterator[tuple[Fleet, Worker]]:
    fleet = fleet_of({"a": engine}, folder)
    fleet.follow_with(ear)
    fleet.retune_listening(options)
    async with running(fleet, ["a"]):
        await until(lambda: fleet.workers()[0].routable)
        yield fleet, fleet.workers()[0]
