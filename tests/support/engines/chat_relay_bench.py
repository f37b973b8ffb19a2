"""Generations by HTTP workers in memory, and all events of one."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smg_node.core.errors import SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Turn
from smg_node.engines.http.transport import HttpCall
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.pipeline.relay.chat_generation import AnyGenerations, AnyRun
from smg_node.system_clock import SystemClock
from support.answers.chat_chunks import DONE, chunk, used
from support.engines.relay_bench import RelayBench, Told, relay_bench, streamed
from support.history.fake_runs import FakeGenerations
from support.http.http_node import hello

ROLE = chunk(role="assistant", content="")
GOOD = (ROLE, chunk(content="Hi"), chunk(content="!"), chunk("stop"), used(9, 4), DONE)


@dataclass
class Bench:
    relays: RelayBench
    generations: AnyGenerations
    engines: FakeGenerations

    def start(self, *, target: str | None = None, timeout_s: float = 5, **more: Any) -> AnyRun:
        fields: dict[str, Any] = {"model": "m", "sampling": Sampling(), "stream": True, **more}
        fields.setdefault("prompts", (ChatPrompt((Turn("user", "hi"),)),))
        run = self.generations.start(
            "responses", GenerateRequest(**fields), self.relays.context(timeout_s, target)
        )
        assert isinstance(run, AnyRun)
        return run

    async def events(self, **more: Any) -> list[Event]:
        return await heard(self.start(**more))

    async def failure(self, **more: Any) -> SmgError:
        last = (await self.events(**more))[-1]
        assert isinstance(last, Fail)
        return last.error


async def heard(run: AnyRun) -> list[Event]:
    """Return all events, which are in order."""
    events: list[Event] = []
    async for batch in run.events():
        assert batch
        events += batch
    grammar = Grammar(1)
    grammar.feed(events)
    assert grammar.over
    return events


@asynccontextmanager
async def bench(folder: Path, **more: Any) -> AsyncIterator[Bench]:
    async with relay_bench(folder, **more) as relays:
        with ThreadPoolExecutor(1) as threads:
            engines = FakeGenerations(hello)
            preparer = Preparer(clock=SystemClock(), threads=threads)
            yield Bench(relays, AnyGenerations(engines, relays.relays, preparer), engines)
        assert relays.idle()


def fine(call: HttpCall) -> Told:
    return streamed(*GOOD)
