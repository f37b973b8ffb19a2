"""Generations that limits apply to: let in or not, charged for what they used, and no more."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event, Fail, Finish, Usage
from smg_node.core.generation.request import Sampling, TextPrompt
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from support.engines.fake_engine import FakeEngine, abilities, says
from support.engines.generation_bench import bench_of
from support.rights.fake_rights import FakeShare, LimitWorld, door_of, limit, whole

TEXT = "a" * 40
"""An answer of 41 tokens, its end included; the prompts have 2."""


def finish_of(events: Sequence[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Finish)]


def usage_of(events: Sequence[Event]) -> Usage:
    (usage,) = [event for event in events if isinstance(event, Usage)]
    return usage


async def endless(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
    """A script that says a token of each answer at a time, up to their length."""
    assert request.sampling.max_tokens is not None
    for _ in range(request.sampling.max_tokens):
        yield [Chunk(one, (97,)) for one in range(request.sampling.n)]
        await asyncio.sleep(0)
    yield [Chunk(one, (), finish="length") for one in range(request.sampling.n)]


def roomy(engine: FakeEngine) -> FakeEngine:
    """The engine, with more room than any answer here needs."""
    engine.model_card = replace(engine.model_card, context=5_000)
    return engine


async def test_a_generation_is_charged_what_it_used_and_its_place_only_meanwhile(
    tmp_path: Path,
) -> None:
    world = LimitWorld()
    requests = world.add(limit(), 5)
    places = world.add(limit("concurrent", window_ms=0), 2)
    tokens = world.add(limit("tokens"), 1_000)
    seen = []

    async def script(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        seen.append((whole(requests), places.left, tokens.left < 1_000))
        async for chunks in says(TEXT)(request):
            yield chunks

    door = door_of(world)
    async with bench_of(tmp_path, {"a": FakeEngine(script)}, admission=door) as it:
        answer = await it.answer()
        assert answer.choices[0].text() == TEXT
    assert seen == [((4, 1), 1, True)]
    assert (whole(requests), whole(places)) == ((4, 1), (2, 0))
    # The engine had both tokens of the prompt cached, and they count in full unless the limit says so.
    assert whole(tokens) == (1_000 - 43, 43)
    assert door.tallies.open == 0


async def test_cached_tokens_can_count_less(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("tokens", cached_weight=0.0), 1_000)
    async with bench_of(tmp_path, {"a": FakeEngine(says(TEXT))}, admission=door_of(world)) as it:
        await it.answer()
    assert tokens.spent == 41


async def test_a_request_that_is_not_let_in_never_sees_an_engine_nor_a_tokenizer(
    tmp_path: Path,
) -> None:
    world = LimitWorld()
    world.add(limit(), 0, 10)
    engine = FakeEngine(says(TEXT))
    async with bench_of(tmp_path, {"a": engine}, admission=door_of(world)) as it:
        # An empty prompt is refused by whoever looks at it, and nobody did.
        error = await it.error(prompts=(TextPrompt("", add_special_tokens=False),))
        assert isinstance(error, LimitedError)
        assert it.outcomes[0].kind == "refused"
        assert (it.outcomes[0].status, it.outcomes[0].error_code) == (429, "rate_limit_exceeded")
    assert not engine.requests


async def test_a_request_refused_for_its_tokens_gets_its_place_back(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = [
        world.add(limit(), 5),
        world.add(limit("concurrent", window_ms=0), 2),
        world.add(limit("input_tokens"), 1, 100),
    ]
    engine = FakeEngine(says(TEXT))
    async with bench_of(tmp_path, {"a": engine}, admission=door_of(world)) as it:
        assert (await it.error()).where == "input_tokens/minute"
    assert [whole(share) for share in shares] == [(5, 0), (2, 0), (1, 0)]
    assert not engine.requests


async def test_what_is_refused_before_an_engine_is_asked_costs_nothing(tmp_path: Path) -> None:
    world = LimitWorld()
    shares = [world.add(limit(), 5), world.add(limit("tokens"), 1_000)]
    door = door_of(world)
    async with bench_of(tmp_path, {"a": FakeEngine()}, admission=door) as it:
        error = await it.error(prompts=(TextPrompt("x" * 80, add_special_tokens=False),))
        assert error.code == "context_length_exceeded"
        assert (await it.error(target="nobody")).code == "worker_not_found"
    assert [whole(share) for share in shares] == [(5, 0), (1_000, 0)]
    assert door.tallies.open == 0


async def test_a_generation_that_never_began_costs_its_request_only(tmp_path: Path) -> None:
    world = LimitWorld()
    requests, tokens = world.add(limit(), 5), world.add(limit("tokens"), 1_000)

    async def broken(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        raise SmgError(ErrorKind.INVALID_REQUEST, "the engine does not like it")
        yield ()  # the language knows generators by this word

    async with bench_of(tmp_path, {"a": FakeEngine(broken)}, admission=door_of(world)) as it:
        await it.error()
    assert (whole(requests), whole(tokens)) == ((4, 1), (1_000, 0))


async def test_a_generation_that_breaks_costs_what_its_client_has_of_it(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("tokens"), 1_000)

    async def breaking(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (97, 97, 97))]
        raise SmgError(ErrorKind.INVALID_REQUEST, "enough")

    door = door_of(world)
    async with bench_of(tmp_path, {"a": FakeEngine(breaking)}, admission=door) as it:
        assert isinstance((await it.events())[-1], Fail)
    assert whole(tokens) == (995, 5)
    assert door.tallies.open == 0


async def test_an_answer_that_goes_on_elsewhere_is_charged_once(tmp_path: Path) -> None:
    world = LimitWorld()
    requests, tokens = world.add(limit(), 5), world.add(limit("tokens"), 1_000)
    calls = []

    async def dies_once(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        calls.append(len(request.ids))
        said = len(request.ids) - 2
        for at in range(said, len(TEXT)):
            if at == 10 and len(calls) == 1:
                raise SmgError(ErrorKind.UPSTREAM_FAILED, "lost")
            yield [Chunk(0, (97,))]
        yield [Chunk(0, (256,), finish="stop")]

    engines = {"a": FakeEngine(dies_once), "b": FakeEngine(dies_once)}
    async with bench_of(tmp_path, engines, admission=door_of(world)) as it:
        answer = await it.answer()
        assert answer.choices[0].text() == TEXT
    assert len(calls) == 2
    assert (whole(requests), whole(tokens)) == ((4, 1), (1_000 - 43, 43))


async def test_a_client_that_leaves_pays_for_what_was_made_so_far(tmp_path: Path) -> None:
    world = LimitWorld()
    requests, tokens = world.add(limit(), 5), world.add(limit("tokens"), 1_000)
    places = world.add(limit("concurrent", window_ms=0), 2)

    door = door_of(world)
    async with bench_of(tmp_path, {"a": roomy(FakeEngine(endless))}, admission=door) as it:
        run = it.start()
        batches = 0
        async with aclosing(run.events()) as events:
            async for _ in events:
                batches += 1
                if batches == 5:
                    break
        assert it.outcomes[0].kind == "client_gone"
        made = it.outcomes[0].completion_tokens
        assert made >= 4
    assert (whole(requests), whole(places)) == ((4, 1), (2, 0))
    assert whole(tokens) == (1_000 - 2 - made, 2 + made)
    assert door.tallies.open == 0


async def test_an_answer_ends_with_length_where_nothing_is_left(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens", on_exhausted="finish"), 300, 10_000)
    engine, door = roomy(FakeEngine(endless)), door_of(world)
    async with bench_of(tmp_path, {"a": engine}, admission=door) as it:
        events = await it.events(Sampling(temperature=1.0))
        assert finish_of(events) == ["length"]
        assert usage_of(events).completion_tokens == 300
        assert it.outcomes[0].kind == "ok"
        async with asyncio.timeout(5):
            while engine.open:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        assert it.idle()
    assert (whole(tokens), tokens.debt) == ((0, 300), 0)
    assert door.tallies.open == 0


async def test_nothing_is_owed_where_an_engine_says_many_tokens_at_once(tmp_path: Path) -> None:
    async def in_tens(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        for _ in range(100):
            yield [Chunk(0, (97,) * 10)]
            await asyncio.sleep(0)

    world = LimitWorld()
    tokens = world.add(limit("output_tokens", on_exhausted="finish"), 305, 10_000)
    engine = roomy(FakeEngine(in_tens))
    async with bench_of(tmp_path, {"a": engine}, admission=door_of(world)) as it:
        events = await it.events(Sampling(temperature=1.0))
        assert finish_of(events) == ["length"]
        assert usage_of(events).completion_tokens == 300
    assert (whole(tokens), tokens.debt) == ((5, 300), 0)


async def test_all_answers_of_a_request_end_together(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens", on_exhausted="finish"), 600, 10_000)
    engine = roomy(FakeEngine(endless))
    engine.abilities = replace(abilities(), native_n=True)
    async with bench_of(tmp_path, {"a": engine}, admission=door_of(world)) as it:
        events = await it.events(Sampling(n=2, temperature=1.0))
        assert finish_of(events) == ["length", "length"]
        made = usage_of(events).completion_tokens
    assert made == 600
    assert (whole(tokens), tokens.debt) == ((0, 600), 0)


async def test_an_answer_that_may_not_go_on_waits_for_rights_that_are_on_their_way(
    tmp_path: Path,
) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens", on_exhausted="finish"), 300, 10_000)
    tokens.pool = 500
    given: list[int] = []

    async def refill(share: FakeShare, cost: int, within_s: float) -> bool:
        if given:
            return False
        given.append(share.spent)
        share.left += 100
        return True

    world.rights.refill = refill
    engine = roomy(FakeEngine(endless))
    async with bench_of(tmp_path, {"a": engine}, admission=door_of(world)) as it:
        events = await it.events(Sampling(temperature=1.0))
    assert given == [300]
    assert usage_of(events).completion_tokens == 400


async def test_an_answer_that_may_owe_goes_on_to_its_own_end(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("output_tokens"), 300, 10_000)
    engine = roomy(FakeEngine(endless))
    async with bench_of(tmp_path, {"a": engine}, admission=door_of(world)) as it:
        events = await it.events(Sampling(max_tokens=500))
    assert usage_of(events).completion_tokens == 500
    assert (whole(tokens), tokens.debt) == ((0, 300), 200)


async def test_without_a_length_the_worst_case_is_the_rest_of_the_context(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("tokens", reserve="worst_case"), 1_000)
    reserved = []

    async def script(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        reserved.append(1_000 - tokens.left)
        async for chunks in says(TEXT)(request):
            yield chunks

    async with bench_of(tmp_path, {"a": FakeEngine(script)}, admission=door_of(world)) as it:
        await it.answer()
        await it.answer(Sampling(max_tokens=10))
        await it.answer(Sampling(n=2))
    # The context has 64 tokens, the prompt two of them.
    assert reserved[0] == 64
    assert reserved[1] == 43 + 12
    # Both calls of the third one see the reservation for both of its answers.
    assert reserved[2] == reserved[3] == 43 + 12 + 2 + 2 * 62


async def test_a_request_without_limits_has_no_ticket(tmp_path: Path) -> None:
    async with bench_of(tmp_path, {"a": FakeEngine()}, admission=door_of(LimitWorld())) as it:
        run = it.start()
        async with aclosing(run.events()) as events:
            async for _ in events:
                assert run.ticket is None


# ── Let in before anybody reads ──────────────────────────────────────────────


async def test_who_enters_first_is_charged_once_and_holds_his_place_until_the_end(
    tmp_path: Path,
) -> None:
    world = LimitWorld()
    requests = world.add(limit(), 5)
    places = world.add(limit("concurrent", window_ms=0), 2)
    door = door_of(world)
    async with bench_of(tmp_path, {"a": FakeEngine(says(TEXT))}, admission=door) as it:
        run = it.start()
        await run.enter()
        assert (whole(requests), places.left, door.tallies.open) == ((4, 1), 1, 1)
        await asyncio.sleep(0)
        async for _ in run.events():
            pass
        run.leave()
        assert [outcome.kind for outcome in it.outcomes] == ["ok"]
    assert (whole(requests), whole(places)) == ((4, 1), (2, 0))
    assert door.tallies.open == 0


async def test_who_enters_and_leaves_without_reading_has_cost_nothing(tmp_path: Path) -> None:
    world = LimitWorld()
    requests = world.add(limit(), 5)
    places = world.add(limit("concurrent", window_ms=0), 2)
    door = door_of(world)
    engine = FakeEngine(says(TEXT))
    async with bench_of(tmp_path, {"a": engine}, admission=door) as it:
        run = it.start()
        await run.enter()
        run.leave()
        run.leave()
    assert (whole(requests), whole(places)) == ((5, 0), (2, 0))
    assert door.tallies.open == 0
    assert not engine.requests


async def test_who_may_not_enter_hears_it_there_and_counts_as_refused(tmp_path: Path) -> None:
    world = LimitWorld()
    world.add(limit(), 0, 10)
    door = door_of(world)
    async with bench_of(tmp_path, {"a": FakeEngine(says(TEXT))}, admission=door) as it:
        with pytest.raises(LimitedError):
            await it.start().enter()
        assert [(one.kind, one.status) for one in it.outcomes] == [("refused", 429)]
    assert door.tallies.open == 0


async def test_who_asks_for_a_model_that_is_not_there_hears_it_at_the_door(tmp_path: Path) -> None:
    async with bench_of(tmp_path, {"a": FakeEngine(says(TEXT))}) as it:
        with pytest.raises(SmgError) as found:
            await it.start(model="nothing").enter()
        assert found.value.code == "model_not_found"
        assert [one.kind for one in it.outcomes] == ["refused"]
