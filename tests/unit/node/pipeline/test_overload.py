"""Thousands of requests at once onto workers that fail or are full: what clients get, and what engines bear."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.outcome import Outcome
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.engines.transport.grpc_status import smg_error
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.fleet.health.circuit_breaker import BreakerOptions, State
from smg_node.routing.wait_queue import DEFAULTS, QueueOptions
from support.engines.fake_engine import FakeEngine, Script, card
from support.engines.generation_bench import QUICK, ROUND_ROBIN, Bench, bench_of
from support.fleet.fleet_builder import FAST

CLIENTS = 2048
SLOTS = 64
CALM = replace(FAST, probe_interval_s=2.0, breaker=BreakerOptions())
ROOMY = QueueOptions({**DEFAULTS, "default": replace(DEFAULTS["default"], places=CLIENTS)})
PATIENT = replace(ROUND_ROBIN, wait_for_worker_s=2.0, line=ROOMY)


def refuses(status: StatusCode, *, odd_only: bool = False) -> Script:
    """Return a script that ends every call, or every second one, with `status` before its first word."""
    calls = iter(range(1_000_000))

    async def run(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        await asyncio.sleep(0.005)
        if next(calls) % 2 == 0 and odd_only:
            async for chunks in works(request):
                yield chunks
            return
        cause = TransportError(status, "so it is")
        raise smg_error(cause) from cause

    return run


async def works(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
    await asyncio.sleep(0.02)
    yield [Chunk(0, (104, 105))]
    yield [Chunk(0, (256,), finish="stop")]


def pool(good: int, bad: int, script: Script) -> dict[str, FakeEngine]:
    """Return engines of which every second one is bad, as long as there are bad ones."""
    engines = [FakeEngine(script) for _ in range(bad)] + [FakeEngine(works) for _ in range(good)]
    for engine in engines:
        engine.model_card = card(running_max=SLOTS)
    return {f"e{at:02}": engine for at, engine in enumerate(engines)}


def stage(folder: Path, engines: dict[str, FakeEngine]) -> AbstractAsyncContextManager[Bench]:
    return bench_of(folder, engines, retries=QUICK, options=CALM, placing=PATIENT)


async def one(it: Bench, timeout_s: float) -> Event:
    """Return the last event of a request."""
    last: Event | None = None
    async for batch in it.start(timeout_s=timeout_s).events():
        last = batch[-1]
    assert last is not None
    return last


async def storm(it: Bench, clients: int = CLIENTS, *, timeout_s: float = 60.0) -> Counter[str]:
    """Send so many requests at once; return how they ended, by the code of their error, "" for well."""
    async with asyncio.timeout(120):
        ends = await asyncio.gather(*(one(it, timeout_s) for _ in range(clients)))
    assert it.idle()
    return Counter(end.error.code if isinstance(end, Fail) else "" for end in ends)


def calls(engines: dict[str, FakeEngine]) -> int:
    return sum(len(engine.requests) for engine in engines.values())


def states(it: Bench) -> list[State]:
    now_s = asyncio.get_running_loop().time()
    return [worker.breaker.state(now_s) for worker in it.fleet.workers()]


async def test_half_the_workers_fail_and_every_client_gets_its_answer(tmp_path: Path) -> None:
    engines = pool(4, 4, refuses(StatusCode.INTERNAL))
    async with stage(tmp_path, engines) as it:
        ends = await storm(it)
        assert ends == {"": CLIENTS}
        amplification = calls(engines) / CLIENTS
        assert amplification <= 1.3
        opened = {worker.url.host: worker.breaker.opened for worker in it.fleet.workers()}
        assert [host for host, times in sorted(opened.items()) if times] == sorted(engines)[:4]
        # And those that follow find nobody who fails.
        before = [len(engine.requests) for engine in engines.values()][:4]
        assert await storm(it, 256) == {"": 256}
        after = [len(engine.requests) for engine in engines.values()][:4]
        assert sum(after) - sum(before) <= 8, "a probe each, now and then"


async def test_nobody_at_the_other_end_of_half_the_workers_costs_no_client_an_answer(
    tmp_path: Path,
) -> None:
    engines = pool(4, 4, refuses(StatusCode.UNAVAILABLE))
    async with stage(tmp_path, engines) as it:
        assert await storm(it) == {"": CLIENTS}
        assert calls(engines) <= 1.3 * CLIENTS


async def test_all_workers_fail_and_retries_stay_within_their_budget(tmp_path: Path) -> None:
    engines = pool(0, 8, refuses(StatusCode.INTERNAL))
    async with stage(tmp_path, engines) as it:
        ends = await storm(it, timeout_s=3.0)
        assert not ends[""]
        assert calls(engines) <= 1.3 * CLIENTS
        assert State.CLOSED not in states(it)


@pytest.mark.parametrize(
    "status", [StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE, StatusCode.NOT_FOUND]
)
async def test_what_clients_do_wrong_opens_no_breaker_and_is_not_tried_again(
    status: StatusCode, tmp_path: Path
) -> None:
    engines = pool(0, 4, refuses(status))
    async with stage(tmp_path, engines) as it:
        ends = await storm(it)
        assert ends.total() == CLIENTS
        assert not ends[""]
        assert calls(engines) == CLIENTS
        assert states(it) == [State.CLOSED] * 4
        assert all(worker.breaker.usable(0.0) for worker in it.fleet.workers())


async def test_a_fleet_that_is_full_keeps_its_breakers_closed_and_is_left_alone(
    tmp_path: Path,
) -> None:
    engines = pool(0, 8, refuses(StatusCode.RESOURCE_EXHAUSTED))
    async with stage(tmp_path, engines) as it:
        ends = await storm(it, timeout_s=3.0)
        assert not ends[""]
        assert states(it) == [State.CLOSED] * 8
        # What fits onto the workers is sent there at once; after that they are asked a few times a second.
        assert calls(engines) <= 8 * (SLOTS + 8) + 8 * 16


async def test_those_who_wait_are_served_when_a_full_fleet_has_room_again(tmp_path: Path) -> None:
    engines = pool(0, 4, refuses(StatusCode.RESOURCE_EXHAUSTED))
    async with stage(tmp_path, engines) as it:

        async def make_room() -> None:
            await asyncio.sleep(1.0)
            for engine in engines.values():
                engine.script = works

        ends, _ = await asyncio.gather(storm(it), make_room())
        budget = 0.2 * CLIENTS + 30
        assert ends[""] >= CLIENTS - max(0, 4 * (SLOTS + 8) - budget)
        assert calls(engines) <= 1.3 * CLIENTS
        assert states(it) == [State.CLOSED] * 4


async def test_a_worker_that_fails_every_second_call_costs_clients_almost_nothing(
    tmp_path: Path,
) -> None:
    engines = pool(3, 1, refuses(StatusCode.INTERNAL, odd_only=True))
    async with stage(tmp_path, engines) as it:
        ends: Counter[str] = Counter()
        for _ in range(20):
            ends += await storm(it, 64)
        assert ends.total() == 1280
        assert ends[""] >= 0.95 * 1280
        assert calls(engines) <= 1.2 * 1280


async def test_a_request_that_was_tried_again_is_told_of_once(tmp_path: Path) -> None:
    engines = pool(3, 1, refuses(StatusCode.INTERNAL))
    async with stage(tmp_path, engines) as it:
        await storm(it, 256)
        told: list[Outcome] = it.outcomes
        assert len(told) == 256
        assert all(outcome.kind == "ok" for outcome in told)
        assert calls(engines) > 256
