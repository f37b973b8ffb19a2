"""What a call's pictures are for its worker: work that waits and is seen, and a measure of its encoder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from smg_node.fleet.load.load_options import ENCODER_RATE
from smg_node.fleet.load.worker_load import PREFILL_RATE
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.encoder_work import EncoderWork, encoder_work, extra_s
from smg_node.pipeline.reservation import Reservation
from smg_node.routing.policy import PromptPictures
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import FAST, fleet_of, running

PICTURES = PromptPictures(b"12345678", 100, ((1_100, 1_000), (2_200, 1_000)))


@asynccontextmanager
async def worker(folder: Path) -> AsyncIterator[Worker]:
    options = replace(FAST, probe_interval_s=60.0)
    async with running(fleet_of({"a": FakeEngine()}, folder, options=options), ["a"]) as fleet:
        (found,) = fleet.workers()
        async with asyncio.timeout(10):
            while not found.routable:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield found


def taken(worker: Worker, overlap: float = 0.0, prompt: int = 2_400) -> Reservation:
    assert worker.engine is not None
    assert worker.card is not None
    (work,) = encoder_work(PICTURES, [worker], 10.0)
    tokens = prompt - int(overlap) + work.as_prompt(worker, overlap)
    ahead = worker.hold(tokens)
    return Reservation(
        worker, worker.engine, worker.card, prompt, tokens, 10.0, ahead, encoder=work
    )


async def test_pictures_that_wait_for_an_encoder_are_seen_in_the_load(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        hold = taken(it)
        extra = round(2_000 * PREFILL_RATE / ENCODER_RATE)
        assert it.load.tokens == it.load.own_tokens == 2_400 + extra
        cached = taken(it, overlap=1_100.0)
        assert it.load.tokens == 2_400 + extra + 1_300 + extra // 2
        for one in (hold, cached):
            one.spoke(10.3)
            one.release(11.0)
        assert (it.load.tokens, it.load.inflight) == (0, 0)


async def test_an_encoder_is_measured_and_the_rate_of_prefill_is_left_alone(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        for _ in range(8):
            hold = taken(it)
            # 2,400 tokens take 0.3 s; what is beyond it the pictures took.
            hold.spoke(10.0 + 2_400 / PREFILL_RATE + 0.4, cached_tokens=0)
            hold.release(11.0)
        assert it.load.prefill_rate == PREFILL_RATE
        (work,) = encoder_work(PICTURES, [it], 10.0)
        assert 5_000 < work.rate < 7_500, "2,000 in 0.4 s are 5,000 a second"
        (seconds,) = extra_s([work], [0.0])
        assert 0.26 < seconds < 0.4
        assert extra_s([work], [2_300.0]) == [0.0]


async def test_cached_pictures_measure_nothing(tmp_path: Path) -> None:
    async with worker(tmp_path) as it:
        hold = taken(it)
        hold.spoke(10.3, cached_tokens=2_300)
        assert it.encoded is None
        hold.release(11.0)


async def test_a_worker_that_is_followed_is_told_of_pictured_answers_all_the_same(
    tmp_path: Path,
) -> None:
    async with worker(tmp_path) as it:
        it.following = True
        pictured = taken(it)
        assert pictured.unheard
        assert not replace_encoder(pictured).unheard
        pictured.release(11.0)


def replace_encoder(hold: Reservation) -> Reservation:
    return Reservation(hold.worker, hold.engine, hold.card)


def test_work_is_as_many_prompt_tokens_as_take_as_long() -> None:
    assert EncoderWork(PICTURES, 4_000.0).pictures.uncached(0) == 2_000
