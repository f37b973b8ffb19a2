"""A fleet hears real gRPC servers of every contract: what they have cached, and how busy they are."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.plans import Wanted
from smg_node.config.worker_url import WorkerUrl
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.engine import Engine, EngineRequest
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import open_engine
from smg_node.fleet.fleet import Fleet, FleetOptions, ListenOptions
from smg_node.fleet.workers.worker import Worker
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.pool import Pool
from support.engines.engine_client import asking
from support.engines.simulated_engine import FLAVOURS, Served, served
from support.fleet.fleet_builder import fleet_of, running

pytestmark = pytest.mark.integration

WITH_EVENTS = [one for one in FLAVOURS if one[0] != "mlx"]
WITH_LOADS = [one for one in WITH_EVENTS if one[0] != "trtllm"]
PROMPT = list(range(300, 300 + 64 * 4 + 10))
PATIENT = FleetOptions(
    probe_interval_s=0.2, probe_timeout_s=2.0, retry_s=0.1, down_after=2, up_after=1
)


class Stage:
    """One worker on a simulated engine, and what this node knows of it."""

    def __init__(self, fleet: Fleet, prefixes: Prefixes, engines: Served) -> None:
        self.fleet = fleet
        self.prefixes = prefixes
        self.engines = engines
        self._asked = 0
        self._told: list[object] = []

    @property
    def worker(self) -> Worker:
        (worker,) = self.fleet.workers()
        return worker

    @property
    def ended(self) -> dict[str, int]:
        return dict(self.fleet.listening.ended)

    async def generate(self, ids: Sequence[int] = PROMPT, *, max_tokens: int = 2) -> None:
        assert self.worker.engine is not None
        self._asked += 1
        asked = EngineRequest(
            f"smg-{self._asked}", token_ids(list(ids)), Sampling(max_tokens=max_tokens), True, 20.0
        )
        async for _ in self.worker.engine.generate(asked):
            pass

    def overlap(self, ids: Sequence[int] = PROMPT) -> float:
        model = self.worker.model
        if model is None:
            return -1.0
        beginning = self.prefixes.of(
            model, token_ids(list(ids)), "", asyncio.get_running_loop().time()
        )
        assert beginning is not None
        return beginning.overlaps(Pool([self.worker.load]))[0]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.01)

    async def followed(self) -> None:
        """Return when the engine has somebody to tell whom it did not have when this was last asked."""
        (engine,) = self.engines.engines
        publisher, before = engine.relay._publisher, self._told
        await self.until(lambda: any(one not in before for one in publisher.subscriptions))
        self._told = list(publisher.subscriptions)


@asynccontextmanager
async def stage(
    folder: Path,
    contract: str,
    servicer: str,
    *,
    script: str = "fixed",
    faults: tuple[str, ...] = (),
    **settings: Any,
) -> AsyncIterator[Stage]:
    quick = {"step_s": 0.001, "prefill_tokens_per_s": 0.0}
    wanted = Wanted(
        settings={"contract": contract, "servicer": servicer, **quick, **settings},
        script=script,
        faults=faults,
    )

    async def open_really(url: WorkerUrl, api_key: str | None) -> Engine:
        return await open_engine(url.address, EngineOptions())

    with served(wanted) as engines:
        fleet = fleet_of({}, folder, options=PATIENT, open_really=open_really)
        prefixes = Prefixes(PrefixIndex(), cluster="smg")
        fleet.follow_with(prefixes)
        async with running(fleet, [f"grpc://{engines.address}"]):
            made = Stage(fleet, prefixes, engines)
            await made.until(lambda: made.worker.routable)
            yield made


# ── What is cached ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
async def test_a_prompt_that_an_engine_worked_off_is_known_exactly(
    tmp_path: Path, contract: str, servicer: str
) -> None:
    async with stage(tmp_path, contract, servicer) as on:
        await on.followed()
        await on.generate()
        await on.until(lambda: on.overlap() == 256.0)
        assert on.fleet.following(on.worker.id)
        assert on.overlap([*PROMPT[:70], 5, 6, 7]) == 64.0
        assert on.overlap([9, *PROMPT]) == 0.0


async def test_nothing_is_asked_of_a_contract_without_events(tmp_path: Path) -> None:
    async with stage(tmp_path, "mlx", "python") as on:
        await on.generate(max_tokens=1)
        assert on.overlap() == 0.0
        assert on.ended == {}


async def test_an_engine_whose_events_are_switched_off_is_asked_once(tmp_path: Path) -> None:
    async with stage(tmp_path, "sglang", "python", events="none") as on:
        await on.until(lambda: bool(on.ended))
        await on.generate()
        assert on.ended == {"unimplemented": 1}


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
async def test_what_an_engine_evicts_is_not_believed_any_more(
    tmp_path: Path, contract: str, servicer: str
) -> None:
    async with stage(tmp_path, contract, servicer, blocks=20, block_size=32, context=512) as on:
        await on.followed()
        await on.generate(max_tokens=1)
        await on.until(lambda: on.overlap() == 256.0)
        for at in range(3):
            await on.generate([at + 5] * 400, max_tokens=1)
        await on.until(lambda: on.overlap() == 0.0)
        await on.until(lambda: on.overlap([7] * 400) > 0)


@pytest.mark.parametrize("contract", ["vllm", "sglang", "tokenspeed"])
async def test_a_flushed_cache_is_known_to_be_empty(tmp_path: Path, contract: str) -> None:
    async with stage(tmp_path, contract, "python") as on:
        await on.followed()
        await on.generate()
        await on.until(lambda: on.overlap() == 256.0)

        def flush() -> None:
            with asking(on.engines.address, contract, PROMPT) as asker:
                request = common_pb2.FlushCacheRequest(timeout_s=5.0)
                assert asker.call("FlushCache", request.SerializeToString()).code == "OK"

        await asyncio.to_thread(flush)
        # Some engines say so only with the next request.
        await on.generate([5] * 80)
        await on.until(lambda: on.overlap() == 0.0)
        await on.until(lambda: on.overlap([5] * 80) == 64.0)


# ── What goes wrong ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
async def test_a_missing_batch_is_noticed_and_the_view_is_right_again(
    tmp_path: Path, contract: str, servicer: str
) -> None:
    async with stage(tmp_path, contract, servicer, faults=("kv-gap:every=40",)) as on:
        await on.followed()
        await on.generate(max_tokens=1)
        at = 0
        async with asyncio.timeout(20):
            while not on.ended:
                at += 1
                await on.generate([500 + at] * 70, max_tokens=1)
        assert on.ended == {"gap": 1}
        assert on.prefixes.counts()["gaps"] == 1
        assert on.overlap() == 0.0
        await on.followed()
        again = [7, *PROMPT]
        await on.generate(again, max_tokens=1)
        await on.until(lambda: on.overlap(again) == 256.0)


@pytest.mark.parametrize(("contract", "servicer"), WITH_EVENTS)
async def test_a_publisher_that_starts_over_is_followed_from_its_beginning(
    tmp_path: Path, contract: str, servicer: str
) -> None:
    async with stage(tmp_path, contract, servicer, faults=("kv-restart:after=3",)) as on:
        await on.followed()
        for at in range(3):
            await on.generate([40 + at] * 70, max_tokens=1)
        await on.until(lambda: on.ended == {"lost": 1})
        await on.followed()
        await on.generate()
        await on.until(lambda: on.overlap() == 256.0)
        assert on.overlap([40] * 70) == 0.0


async def test_batches_that_come_late_are_taken_in_late(tmp_path: Path) -> None:
    async with stage(tmp_path, "vllm", "python", faults=("kv-late:seconds=0.3",)) as on:
        await on.followed()
        await on.generate()
        assert on.overlap() == 0.0
        await on.until(lambda: on.overlap() == 256.0)
        assert on.ended == {}


async def test_an_engine_that_starts_over_as_another_model_begins_with_nothing(
    tmp_path: Path,
) -> None:
    fault = "restart:at=2,seconds=0.3,model=another"
    async with stage(tmp_path, "vllm", "rust", faults=(fault,)) as on:
        await on.followed()
        await on.generate()
        await on.until(lambda: on.overlap() == 256.0)
        await on.until(lambda: on.worker.model_name() == "another" and on.worker.routable)
        assert on.overlap() == 0.0
        await on.followed()
        await on.generate()
        await on.until(lambda: on.overlap() == 256.0)


async def test_a_subscriber_that_comes_late_gets_what_is_there_from_one_with_memory(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, "vllm", "rust") as on:
        on.fleet.retune_listening(ListenOptions(events=False))
        await on.until(lambda: not on.worker.following)
        await on.generate()
        assert on.overlap() == 0.0
        on.fleet.retune_listening(ListenOptions())
        await on.until(lambda: on.overlap() == 256.0)


# ── How busy they are ────────────────────────────────────────────────────────


@pytest.mark.parametrize("loads", ["polled", "pushed"])
@pytest.mark.parametrize(("contract", "servicer"), WITH_LOADS)
async def test_what_an_engine_says_of_its_load_is_heard(
    tmp_path: Path, contract: str, servicer: str, loads: str
) -> None:
    pushed = loads == "pushed"
    async with stage(
        tmp_path, contract, servicer, script="endless", loads=loads, slots=2, step_s=0.02
    ) as on:
        on.fleet.retune_listening(ListenOptions(load_interval_s=0.2))
        await on.until(lambda: bool(on.worker.sampled))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(on.generate([40 + at] * 40, max_tokens=1900)) for at in range(3)
            ]

            def busy() -> bool:
                sample = on.worker.sampled.get(0)
                return sample is not None and (sample.load.running, sample.load.waiting) == (2, 1)

            await on.until(busy)
            assert on.worker.sampled[0].pushed is pushed
            assert on.worker.load.capacity == 2
            for task in tasks:
                task.cancel()
        await on.until(lambda: on.worker.sampled[0].load.running == 0)


async def test_a_load_that_cannot_be_true_is_not_taken_in(tmp_path: Path) -> None:
    async with stage(tmp_path, "sglang", "python", loads="absurd") as on:
        await on.followed()
        await on.generate()
        await on.until(lambda: on.worker.following)
        assert on.worker.sampled == {}
        assert not on.worker.load.overloaded


async def test_an_engine_that_says_that_it_is_stuck_gets_no_work_until_it_goes_on(
    tmp_path: Path,
) -> None:
    fault = "stall:after=3,request=1"
    async with stage(
        tmp_path, "vllm", "rust", faults=(fault,), script="endless", step_s=0.02
    ) as on:
        await on.followed()
        async with asyncio.TaskGroup() as group:
            stalled = group.create_task(on.generate(max_tokens=1000))
            await on.until(lambda: on.worker.load.stuck)
            assert on.worker.sampled[0].load.silence_ms is not None
            stalled.cancel()
        await on.until(lambda: not on.worker.load.stuck)
