"""What a generation leaves behind: nothing that only the collector could find.

Objects that know each other stay until it comes, 10,000 of them later: it then stops the loop for milliseconds, and what it
frees has long left the processor's caches.
"""

import asyncio
import gc
import weakref
from pathlib import Path

import pytest
from msgspec.structs import replace

from smg_node.core.request_context import RequestContext
from smg_node.engines.engine import EngineRequest
from smg_node.pipeline.generation.generator import GenerationRun
from smg_node.system_clock import SystemClock
from support.engines.generation_bench import HI, Bench, bench_of
from support.engines.message_engine import Batches, Client, MessageEngine, chunk, end, reading_of
from support.rights.fake_rights import LimitWorld, door_of, limit

REQUESTS = 30


def said(_: EngineRequest) -> tuple[Batches, bool]:
    return [[chunk([one])] for one in b"plain words"] + [[end()]], False


async def ask(bench: Bench, *, streamed: bool, number: int) -> None:
    reading, presenter = reading_of("chat", 50)
    now_s = SystemClock().monotonic_s()
    context = RequestContext(
        f"req_{number}", now_s, now_s + 5, received_ms=1, token=f"{number:032}"
    )
    run = bench.generator.start("chat", replace(reading.request, prompts=HI), context)
    if streamed:
        client = Client(presenter, number)
        await run.tell(client.receive, client.ready, client)
    else:
        await run.answer()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("limited", [False, True], ids=["free", "limited"])
async def test_a_generation_leaves_nothing_for_the_collector(
    tmp_path: Path, streamed: bool, limited: bool
) -> None:
    world = LimitWorld()
    world.add(limit("tokens"), 1_000_000)
    engine = MessageEngine(said)
    door = door_of(world) if limited else None
    async with bench_of(tmp_path, {"a": engine}, admission=door) as bench:
        for number in range(3):
            await ask(bench, streamed=streamed, number=number)
        gc.collect()
        gc.disable()
        try:
            for number in range(REQUESTS):
                await ask(bench, streamed=streamed, number=number)
            left = gc.collect()
        finally:
            gc.enable()
        assert bench.idle()
    # The bench itself may leave some; each generation that did would leave twenty.
    assert left < REQUESTS, f"{left} objects of {REQUESTS} generations"


class Keeper(Client):
    """A client that knows its run, as one does that tells of its worker."""

    run: GenerationRun | None = None


async def test_a_run_that_its_client_knows_lets_go_of_that_client(tmp_path: Path) -> None:
    engine = MessageEngine(said)
    async with bench_of(tmp_path, {"a": engine}) as bench:
        reading, presenter = reading_of("chat", 50)
        now_s = SystemClock().monotonic_s()
        context = RequestContext("req_1", now_s, now_s + 5, received_ms=1, token=f"{1:032}")
        request = replace(reading.request, prompts=HI)
        gc.collect()
        gc.disable()
        try:
            client = Keeper(presenter, 1)
            client.run = bench.generator.start("chat", request, context)
            await client.run.tell(client.receive, client.ready, client)
            known = weakref.ref(client)
            del client
            await asyncio.sleep(0)
            assert known() is None
        finally:
            gc.enable()
        assert bench.idle()
