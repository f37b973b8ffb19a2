"""Requests that two engines share, through the whole pipeline."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.core.journey import Broke, Chosen
from smg_node.engines.chunk import Chunk
from smg_node.engines.disaggregation import Style
from smg_node.engines.engine import EngineRequest, Prefilled
from smg_node.engines.transport.grpc_status import UNREACHABLE_CODE
from smg_node.fleet.health.circuit_breaker import State
from smg_node.pipeline.placement.placer import PlacerOptions
from support.engines.failing_engines import heard
from support.engines.fake_engine import FakeEngine, hands_over, says
from support.engines.generation_bench import ROUND_ROBIN, Bench, bench, bench_of
from support.engines.paired_engines import CACHED, Network
from support.tools.cancellation import interrupt

STYLES: tuple[Style, ...] = ("room", "nixl", "minted", "store")


def gone() -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, "unreachable", code=UNREACHABLE_CODE)


def chosen(it: Bench) -> list[Chosen]:
    (journey,) = it.journal.get("req_1")
    return [step for step in journey.steps if isinstance(step, Chosen)]


def broke(it: Bench) -> list[Broke]:
    (journey,) = it.journal.get("req_1")
    return [step for step in journey.steps if isinstance(step, Broke)]


def now_s() -> float:
    return asyncio.get_running_loop().time()


def id_of(it: Bench, name: str) -> str:
    return it.fleet.get(f"grpc://{name}:1").id


@pytest.mark.parametrize("style", STYLES)
async def test_a_request_is_worked_off_by_one_and_answered_by_the_other(
    tmp_path: Path, style: Style
) -> None:
    network = Network(style)
    p, d = network.prefill(), network.decode()
    async with bench(tmp_path, p=p, d=d) as it:
        answer = await it.answer(Sampling(logprobs=None))
        assert answer.choices[0].text() == "hello"
        assert answer.usage is not None
        assert answer.usage.cached_tokens == min(CACHED, answer.usage.prompt_tokens)
        assert (len(p.prefilled), len(p.requests)) == (1, 0)
        assert (len(d.prefilled), len(d.requests)) == (0, 1)
        assert p.prefilled[0].ids == d.requests[0].ids
        assert p.prefilled[0].request_id == d.requests[0].request_id
        assert network.handed_over == 1
        assert it.idle()
        assert [(step.role, step.worker) for step in chosen(it)] == [
            ("prefill", id_of(it, "p")),
            ("decode", id_of(it, "d")),
        ]
        assert it.outcomes[0].worker == id_of(it, "d")


async def test_what_only_a_first_engine_draws_is_one_token(tmp_path: Path) -> None:
    network = Network("nixl")
    p, d = network.prefill(), network.decode()
    async with bench(tmp_path, p=p, d=d) as it:
        await it.answer(Sampling(max_tokens=20, min_tokens=0, stop=("x",), logprobs=2))
        asked = p.prefilled[0].sampling
        assert (asked.max_tokens, asked.stop, asked.logprobs) == (1, (), None)
        assert d.requests[0].sampling.max_tokens == 20


async def test_partners_in_a_room_are_asked_for_the_same(tmp_path: Path) -> None:
    network = Network("room")
    p, d = network.prefill(), network.decode()
    async with bench(tmp_path, p=p, d=d) as it:
        await it.answer(Sampling(max_tokens=20, logprobs=2))
        assert p.prefilled[0].sampling == d.requests[0].sampling
        assert p.prefilled[0].room == d.requests[0].room
        assert p.prefilled[0].room is not None
        assert p.prefilled[0].room.host == "p"


@pytest.mark.parametrize("style", STYLES)
async def test_several_answers_are_several_pairs_of_calls(tmp_path: Path, style: Style) -> None:
    network = Network(style)
    p, d = network.prefill(), network.decode()
    d.abilities = replace(d.abilities, native_n=True)
    async with bench(tmp_path, p=p, d=d) as it:
        answer = await it.answer(Sampling(n=3, seed=7))
        assert [choice.text() for choice in answer.choices] == ["hello"] * 3
        assert network.handed_over == 3
        assert sorted(request.sampling.n for request in d.requests) == [1, 1, 1]
        assert it.idle()


async def test_the_prompts_log_probabilities_come_from_the_first_engine(tmp_path: Path) -> None:
    for style in STYLES:
        network = Network(style)
        p, d = network.prefill(), network.decode()
        p.abilities = replace(p.abilities, prompt_logprobs=True)
        async with bench(tmp_path / style, p=p, d=d) as it:
            answer = await it.answer(Sampling(prompt_logprobs=1), echo=True)
            echo = answer.choices[0].echo
            assert echo is not None
            assert [one.logprob for one in echo.logprobs] == [-0.5, -0.5]


@pytest.mark.parametrize("style", STYLES)
async def test_a_first_engine_that_is_gone_is_replaced(tmp_path: Path, style: Style) -> None:
    network = Network(style)
    p, q, d = network.prefill(), network.prefill(), network.decode()
    p.prefill_script = hands_over(gone())
    async with bench(tmp_path, p=p, q=q, d=d) as it:
        for _ in range(4):
            assert (await it.answer()).choices[0].text() == "hello"
        assert len(q.prefilled) >= 4
        assert it.idle()
        assert d.open == 0
        blamed = it.fleet.get("grpc://p:1").breaker
        assert it.fleet.get("grpc://d:1").breaker.state(now_s()) is State.CLOSED
        assert it.fleet.get("grpc://d:1").breaker.view(now_s()).failures == 0
        assert blamed.view(now_s()).failures == len(p.prefilled)


@pytest.mark.parametrize("style", STYLES)
async def test_a_second_engine_that_is_gone_is_replaced(tmp_path: Path, style: Style) -> None:
    network = Network(style)
    p, d, e = network.prefill(), network.decode(), network.decode()

    async def dies(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        raise gone()
        yield []

    d.script = dies
    async with bench(tmp_path, p=p, d=d, e=e) as it:
        for _ in range(4):
            assert (await it.answer()).choices[0].text() == "hello"
        assert it.idle()
        assert p.open == 0
        assert it.fleet.get("grpc://p:1").breaker.view(now_s()).failures == 0
        assert it.fleet.get("grpc://d:1").breaker.view(now_s()).failures == len(d.requests) > 0


@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_that_breaks_goes_on_with_a_new_pair(tmp_path: Path, style: Style) -> None:
    network = Network(style)

    async def breaks(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, tuple(b"hel"))]
        raise gone()

    async def goes_on(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        said = bytes(list(request.ids[2:])).decode()
        yield [Chunk(0, tuple("hello"[len(said) :].encode()))]
        yield [Chunk(0, (256,), finish="stop")]

    p, d, e = network.prefill(), network.decode(breaks), network.decode(goes_on)
    async with bench(tmp_path, p=p, d=d, e=e) as it:
        answers = [await it.answer() for _ in range(4)]
        assert [answer.choices[0].text() for answer in answers] == ["hello"] * 4
        assert [answer.usage.prompt_tokens for answer in answers] == [2] * 4
        assert bytes(list(network.last_ids[-1])).startswith(b"hi")
        assert it.idle()


async def test_a_hand_over_that_fails_is_nobodys_fault_and_is_tried_again(tmp_path: Path) -> None:
    network = Network("room", losing=1, patience_s=0.02)
    p, d, e = network.prefill(), network.decode(), network.decode()
    async with bench(tmp_path, p=p, d=d, e=e) as it:
        assert (await it.answer()).choices[0].text() == "hello"
        breakers = [worker.breaker for worker in it.fleet.workers()]
        assert [breaker.view(now_s()).failures for breaker in breakers] == [0, 0, 0]
        (step,) = broke(it)
        assert step.code == "upstream_abort"
        assert it.idle()


async def test_two_that_fail_together_again_and_again_are_kept_apart(tmp_path: Path) -> None:
    network = Network("nixl")
    p, d, e = network.prefill(), network.decode(), network.decode()

    async def cannot(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "no blocks", code="upstream_error")
        yield []

    d.script = cannot
    async with bench_of(tmp_path, {"p": p, "d": d, "e": e}, placing=ROUND_ROBIN) as it:
        for _ in range(12):
            assert (await it.answer()).choices[0].text() == "hello"
        assert len(d.requests) == 3
        assert it.fleet.get("grpc://d:1").breaker.view(now_s()).failures == 0


async def test_engines_that_cannot_hand_over_to_each_other_are_not_put_together(
    tmp_path: Path,
) -> None:
    network = Network("nixl")
    p, d, e = (
        network.prefill("rack-1"),
        network.decode(None, "rack-2"),
        network.decode(None, "rack-1"),
    )
    async with bench(tmp_path, p=p, d=d, e=e) as it:
        for _ in range(5):
            await it.answer()
        assert (len(d.requests), len(e.requests)) == (0, 5)


async def test_where_no_pair_can_be_had_a_worker_answers_alone_if_it_may(tmp_path: Path) -> None:
    network = Network("nixl")
    p, r = network.prefill(), FakeEngine(says("alone"))
    async with bench(tmp_path, p=p, r=r) as it:
        assert (await it.answer()).choices[0].text() == "alone"
        assert p.prefilled == []
    never = replace(ROUND_ROBIN, fallback_regular=False)
    async with bench_of(tmp_path, {"p": p, "r": r}, placing=never) as it:
        error = await it.error()
        assert (error.status, error.code) == (503, "no_worker_available")


async def test_pairs_go_before_workers_that_answer_alone(tmp_path: Path) -> None:
    network = Network("nixl")
    p, d, r = network.prefill(), network.decode(), FakeEngine(says("alone"))
    async with bench(tmp_path, p=p, d=d, r=r) as it:
        for _ in range(5):
            assert (await it.answer()).choices[0].text() == "hello"
        assert r.requests == []


async def test_half_a_pair_is_no_worker(tmp_path: Path) -> None:
    async with bench(tmp_path, p=Network().prefill()) as it:
        error = await it.error()
        assert (error.status, error.code) == (503, "no_worker_available")


async def test_a_client_may_want_one_half_and_gets_it_in_a_pair(tmp_path: Path) -> None:
    network = Network("nixl")
    engines = {name: network.prefill() for name in "pq"} | {n: network.decode() for n in "de"}
    async with bench_of(tmp_path, engines) as it:
        for _ in range(4):
            await it.answer(target="grpc://q:1")
            await it.answer(target="grpc://e:1")
        assert len(engines["q"].prefilled) >= 4
        assert len(engines["e"].requests) >= 4
        assert it.idle()


async def test_the_first_engine_has_a_free_slot_when_it_is_done(tmp_path: Path) -> None:
    network = Network("nixl")
    seen: list[tuple[int, int]] = []

    async def slow(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        loads = [it.fleet.get(f"grpc://{name}:1").load for name in "pd"]
        seen.append((loads[0].inflight, loads[1].inflight))
        seen.append((loads[0].tokens, loads[1].tokens))
        yield [Chunk(0, (97,), finish="stop")]

    p, d = network.prefill(), network.decode(slow)
    async with bench(tmp_path, p=p, d=d) as it:
        await it.answer()
        assert seen == [(0, 1), (0, 0)]


async def test_a_client_that_leaves_leaves_nothing_behind(tmp_path: Path) -> None:
    for style in STYLES:
        network = Network(style, patience_s=5)
        p, d = network.prefill(), network.decode()

        async def works(request: EngineRequest) -> Prefilled:
            await asyncio.sleep(30)
            return Prefilled()

        p.prefill_script = works
        async with bench(tmp_path / style, p=p, d=d) as it:
            engines = (p, d) if style == "room" else (p,)
            await interrupt(it.events(), lambda: all(one.open for one in engines))  # noqa: B023 - at once
            assert (p.open, d.open) == (0, 0)
            assert it.idle()


async def test_at_random_breaks_each_answer_is_whole_or_an_error(tmp_path: Path) -> None:
    rng = random.Random(11)
    network = Network("room", patience_s=0.02)

    async def shaky_prefill(request: EngineRequest) -> Prefilled:
        if rng.random() < 0.2:
            raise gone()
        return await network._keep(request)

    async def shaky(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        said = bytes(list(request.ids[2:])).decode()
        for letter in "hello world"[len(said) :]:
            if rng.random() < 0.03:
                raise gone()
            yield [Chunk(0, (ord(letter),))]
        yield [Chunk(0, (256,), finish="stop")]

    engines = {name: network.prefill() for name in "pqr"}
    for engine in engines.values():
        engine.prefill_script = shaky_prefill
    engines |= {name: network.decode(shaky) for name in "def"}
    placing = PlacerOptions("round_robin", wait_for_worker_s=0.5)
    async with bench_of(tmp_path, engines, placing=placing) as it:
        whole = 0
        for _ in range(60):
            text = heard(await it.events()).texts.get(0, "")
            assert "hello world".startswith(text)
            whole += text == "hello world"
        assert whole >= 40
        assert it.idle()
        assert all(engine.open == 0 for engine in engines.values())
