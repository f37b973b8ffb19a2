"""What load and breaker hear of a call, in whatever order its end comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.health.circuit_breaker import BreakerOptions
from smg_node.fleet.load.worker_load import PREFILL_RATE
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.reservation import Reservation
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import FAST, fleet_of, running

CALM = replace(FAST, probe_interval_s=60.0, breaker=BreakerOptions(samples_min=2))


@asynccontextmanager
async def worker(folder: Path) -> AsyncIterator[Worker]:
    async with running(fleet_of({"a": FakeEngine()}, folder, options=CALM), ["a"]) as fleet:
        (found,) = fleet.workers()
        async with asyncio.timeout(10):
            while not found.routable:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield found


def taken(
    worker: Worker, *, prompt: int = 1000, tokens: int = 800, began_s: float = 10.0
) -> Reservation:
    assert worker.engine is not None
    assert worker.card is not None
    probe, ahead = worker.breaker.take_probe(began_s), worker.hold(tokens)
    return Reservation(worker, worker.engine, worker.card, prompt, tokens, began_s, ahead, probe)


async def test_the_first_token_works_the_prompt_off_and_measures_how_fast(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        hold = taken(it)
        assert (it.load.tokens, it.load.inflight) == (800, 1)
        hold.spoke(10.05, cached_tokens=200)
        hold.spoke(99.0, cached_tokens=200)
        assert (it.load.tokens, it.load.inflight) == (0, 1)
        # 800 tokens in 0.05 s are 16,000 a second: faster than was assumed.
        assert PREFILL_RATE < it.load.prefill_rate < 16_000
        hold.ended(12.0)
        hold.release(12.0)
        hold.release(13.0)
        assert (it.load.tokens, it.load.inflight) == (0, 0)
        assert it.load.request_s == 2.0


@pytest.mark.parametrize("cached", [-1, 1000])
async def test_what_nobody_computed_measures_nothing(tmp_path: Path, cached: int) -> None:
    async with worker(tmp_path) as it:
        hold = taken(it)
        hold.spoke(10.05, cached_tokens=cached)
        assert it.load.prefill_rate == PREFILL_RATE
        hold.release(11.0)
        assert (it.load.tokens, it.load.inflight) == (0, 0)


async def test_a_call_that_ends_before_a_word_takes_its_tokens_with_it(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        first, second = taken(it), taken(it, tokens=5)
        first.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "broke"), 10.1)
        first.release(10.1)
        assert (it.load.tokens, it.load.inflight) == (5, 1)
        second.spoke(10.2)
        second.release(10.2)
        assert (it.load.tokens, it.load.inflight) == (0, 0)
        assert not it.suspected


async def test_the_breaker_hears_of_failures_and_not_of_clients_who_leave(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        for _ in range(5):
            taken(it).release(10.0)
        assert it.breaker.view(10.0).samples == 0
        good = taken(it)
        good.ended(10.0)
        good.release(10.0)
        assert it.breaker.view(10.0).samples == 1
        assert it.breaker.opened == 0
        bad = taken(it)
        bad.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "broke"), 10.0)
        bad.release(10.0)
        assert it.breaker.opened == 1


async def test_a_worker_that_nobody_reaches_is_looked_at(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        hold = taken(it)
        it.wake.clear()
        hold.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "gone", code=UNREACHABLE_CODE), 10.0)
        assert it.suspected
        hold.release(10.0)
