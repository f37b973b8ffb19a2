"""A worker that is removed by force: who has heard nothing from it is answered by another one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.engines.transport.grpc_status import CLOSED_CODE
from support.engines.fake_engine import FakeEngine, says
from support.engines.generation_bench import bench
from support.fleet.fleet_builder import set_aside


def removed() -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, "the worker was removed", code=CLOSED_CODE)


async def silent(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
    await asyncio.sleep(0.01)
    raise removed()
    yield []


async def interrupted(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
    yield [Chunk(0, (97,))]
    raise removed()


async def test_before_its_first_word_the_answer_comes_from_another_worker(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(silent), "b": FakeEngine(says("hello"))}
    async with bench(tmp_path, **engines) as it:
        for _ in range(4):
            assert (await it.answer()).choices[0].text() == "hello"
        assert len(engines["a"].requests) >= 1
        assert len({request.request_id for one in engines.values() for request in one.requests}) > 4
        assert it.idle()
        assert {outcome.kind for outcome in it.outcomes} == {"ok"}
        assert {outcome.worker for outcome in it.outcomes} == {it.fleet.get("grpc://b:1").id}


async def test_every_leg_moves_by_itself(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(silent), "b": FakeEngine(says("hello"))}
    async with bench(tmp_path, **engines) as it:

        async def goes(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
            set_aside(it.fleet, "grpc://a:1", on=True)
            await asyncio.sleep(0.01)
            raise removed()
            yield []

        engines["a"].script = goes
        answer = await it.answer(Sampling(n=5))
        assert [choice.text() for choice in answer.choices] == ["hello"] * 5
        assert it.idle()


async def test_after_its_first_word_it_is_the_upstreams_failure(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(interrupted)) as it:
        error = await it.error()
        assert (error.status, error.code) == (502, CLOSED_CODE)
        assert it.idle()


async def test_nobody_is_moved_from_the_worker_he_asked_for(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(silent), "b": FakeEngine(says("hello"))}
    async with bench(tmp_path, **engines) as it:
        assert (await it.error(target="grpc://a:1")).code == CLOSED_CODE
        assert engines["b"].requests == []
        assert it.idle()


async def test_three_workers_are_tried_and_no_more(tmp_path: Path) -> None:
    engines = {name: FakeEngine(silent) for name in "abcd"}
    async with bench(tmp_path, **engines) as it:
        run = it.start()
        async for _ in run.events():
            pass
        assert run.attempts == 3
        assert sum(len(engine.requests) for engine in engines.values()) == 3
        assert it.outcomes[0].error_code == CLOSED_CODE
        assert it.idle()
