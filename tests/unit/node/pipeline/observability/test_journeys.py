"""What a generation writes into its journey: every choice with its reason, every break, and always an end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.request import Sampling
from smg_node.core.journey import Broke, Chosen, Journey
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.engines.transport.grpc_status import CLOSED_CODE
from support.engines.fake_engine import FakeEngine, Script, says
from support.engines.generation_bench import Bench, bench
from support.fleet.fleet_builder import set_aside

TEXT = b"hello"
PROMPT = 2
"""Tokens of the prompt of a bench: `hi`."""


def rest(*, breaks_after: int = 99) -> Script:
    """Say what is missing of the text after the ids that are there, and break after so many tokens."""

    async def run(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        for said, token in enumerate([*TEXT, 256][len(request.ids) - PROMPT :]):
            if said == breaks_after:
                break
            yield [Chunk(0, (token,))]
            await asyncio.sleep(0)
        else:
            yield [Chunk(0, (), finish="stop")]
            return
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "it was pulled out", code=CLOSED_CODE)

    return run


def only(it: Bench) -> Journey:
    (journey,) = it.journal.get("req_1")
    assert not it.journal._open
    return journey


def shown(journey: Journey) -> list[tuple[str, ...]]:
    return [
        ("chosen", step.why, step.worker)
        if isinstance(step, Chosen)
        else ("broke", step.code, step.worker)
        for step in journey.steps
    ]


async def test_a_request_that_goes_well_has_one_step_and_all_its_counts(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("hello")), b=FakeEngine(says("hello"))) as it:
        await it.answer()
        worker = it.outcomes[0].worker
        journey = only(it)
    assert shown(journey) == [("chosen", "first", worker)]
    (step,) = journey.steps
    assert isinstance(step, Chosen)
    assert (step.of, step.policy, step.dropped) == (2, "round_robin", ())
    assert (step.prompt_tokens, step.choice, step.key) == (PROMPT, 0, False)
    assert journey.began_ms <= step.at_ms <= (journey.ended_ms or 0)
    assert (journey.kind, journey.status, journey.model) == ("ok", 200, "tiny")
    assert (journey.prompt_tokens, journey.completion_tokens) == (PROMPT, 6)
    assert journey.cached_tokens == 2
    assert journey.ttft_ms is not None
    assert len(journey.answer) == 32


@pytest.mark.parametrize("said", range(6))
async def test_a_break_and_how_it_went_on_are_told(tmp_path: Path, said: int) -> None:
    a, b = FakeEngine(), FakeEngine()
    async with bench(tmp_path, a=a, b=b) as it:
        first = asyncio.Event()

        async def once(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
            script = rest() if first.is_set() else rest(breaks_after=said)
            first.set()
            async for chunks in script(request):
                yield chunks

        a.script = b.script = once
        answer = await it.answer()
        journey = only(it)
    assert answer.choices[0].text() == TEXT.decode()
    before, broke, after = journey.steps
    assert isinstance(before, Chosen)
    assert isinstance(broke, Broke)
    assert isinstance(after, Chosen)
    assert (broke.worker, broke.code, broke.emitted) == (before.worker, CLOSED_CODE, said)
    assert broke.message == "it was pulled out"
    assert broke.then
    assert after.worker != before.worker
    assert after.why == ("continue" if said else "retry")
    assert after.prompt_tokens == PROMPT + said
    assert before.at_ms <= broke.at_ms <= after.at_ms
    assert (journey.kind, journey.completion_tokens) == ("ok", 6)


async def test_a_worker_that_the_client_named_is_told_as_such(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("hello")), b=FakeEngine(says("hello"))) as it:
        await it.answer(target="grpc://b:1")
        worker = it.fleet.get("grpc://b:1").id
        journey = only(it)
    assert shown(journey) == [("chosen", "target", worker)]


async def test_further_answers_are_steps_of_their_own(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("hello")), b=FakeEngine(says("hello"))) as it:
        await it.answer(Sampling(n=3))
        journey = only(it)
    assert [step.choice for step in journey.steps] == [0, 1, 2]
    assert [step[:2] for step in shown(journey)] == [
        ("chosen", "first"),
        ("chosen", "another"),
        ("chosen", "another"),
    ]


async def test_a_refused_request_is_told_too(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("hello"))) as it:
        await it.error(model="nonesuch")
        journey = only(it)
    assert journey.steps == []
    assert (journey.kind, journey.code, journey.model) == (
        "refused",
        "model_not_found",
        "nonesuch",
    )


async def test_a_request_that_fails_everywhere_tells_each_attempt(tmp_path: Path) -> None:
    a, b = (FakeEngine(rest(breaks_after=0)) for _ in range(2))
    async with bench(tmp_path, a=a, b=b) as it:
        error = await it.error()
        journey = only(it)
    kinds = [kind for kind, *_ in shown(journey)]
    assert kinds == ["chosen", "broke"] * (len(kinds) // 2)
    assert len(kinds) >= 4
    assert (journey.kind, journey.code, journey.status) == ("failed", error.code, error.status)
    last = journey.steps[-1]
    assert isinstance(last, Broke)
    assert last.then.startswith("given up")


@pytest.mark.parametrize("batches", range(8))
async def test_whenever_a_client_goes_away_its_journey_ends(tmp_path: Path, batches: int) -> None:
    async with bench(tmp_path, a=FakeEngine(says("hello"))) as it:
        async with aclosing(it.start().events()) as events:
            for _ in range(batches):
                await anext(events, None)
        told = it.journal.get("req_1")
        assert not it.journal._open
        assert it.idle()
    if batches == 0:
        assert told == ()
    else:
        assert [journey.kind in ("client_gone", "ok") for journey in told] == [True]
        assert (told[0].kind == "client_gone") == (batches < 7)


async def test_a_request_that_found_no_worker_tells_why_none_would_do(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("hello")), b=FakeEngine(says("hello"))) as it:
        for url in ("grpc://a:1", "grpc://b:1"):
            set_aside(it.fleet, url, on=True)
        error = await it.error(timeout_s=0.3)
        journey = only(it)
        ids = {worker.id for worker in it.fleet.workers()}
    assert error.status == 503
    assert (journey.code, journey.status, journey.steps) == (error.code, 503, [])
    assert {worker for worker, _ in journey.unplaced} == ids
    assert {why for _, why in journey.unplaced} == {"draining"}
