"""A whole generation over in-memory engines: events, refusals, failures, and readers who leave."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Begin, Delta, Fail, PromptEcho
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    Prompt,
    Sampling,
    TextPrompt,
    TokenPrompt,
    Turn,
    token_ids,
)
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from support.engines.fake_engine import FakeEngine, abilities, card, says
from support.engines.generation_bench import HI, bench
from support.fleet.fleet_builder import set_aside


async def test_an_answer_is_what_the_engine_said(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("héllo 🙂"))) as it:
        answer = await it.answer()
        assert answer.choices[0].text() == "héllo 🙂"
        assert answer.usage.prompt_tokens == 2
        assert answer.usage.cached_tokens == 2
        assert answer.usage.completion_tokens == len("héllo 🙂".encode()) + 1
        (outcome,) = it.outcomes
        assert (outcome.kind, outcome.status, outcome.worker) == (
            "ok",
            200,
            it.fleet.workers()[0].id,
        )
        assert outcome.first_token_s is not None
        assert it.idle()


async def test_many_prompts_and_answers_are_told_as_one_stream(tmp_path: Path) -> None:
    async def copies(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, tuple(request.ids))]
        await asyncio.sleep(0)
        yield [Chunk(0, (256,)), Chunk(0, (), finish="stop")]

    engines = {"a": FakeEngine(copies), "b": FakeEngine(copies)}
    async with bench(tmp_path, **engines) as it:
        prompts = tuple(TextPrompt(f"p{at}", add_special_tokens=False) for at in range(20))
        answer = await it.answer(Sampling(n=2, seed=7), prompts=prompts)
        assert [choice.text() for choice in answer.choices] == [
            f"p{at}" for at in range(20) for _ in range(2)
        ]
        asked = [request for engine in engines.values() for request in engine.requests]
        assert len({request.request_id for request in asked}) == 40
        assert {request.sampling.seed for request in asked} == {7, 8}
        assert answer.usage.prompt_tokens == sum(len(f"p{at}") for at in range(20))
        assert it.idle()


async def test_an_engine_that_can_gives_all_answers_in_one_call(tmp_path: Path) -> None:
    engine = FakeEngine(says("ab"))
    engine.abilities = abilities(native_n=True)
    async with bench(tmp_path, a=engine) as it:
        answer = await it.answer(Sampling(n=3))
        assert [choice.text() for choice in answer.choices] == ["ab"] * 3
        assert len(engine.requests) == 1
        # Greedy answers are asked for one by one: an engine refuses them together.
        answer = await it.answer(Sampling(n=3, temperature=0.0))
        assert [choice.text() for choice in answer.choices] == ["ab"] * 3
        assert [request.sampling.n for request in engine.requests] == [3, 1, 1, 1]


async def test_a_stop_string_only_we_matched_cancels_the_engine(tmp_path: Path) -> None:
    engine = FakeEngine(says("one two three four"))
    async with bench(tmp_path, a=engine) as it:
        answer = await it.answer(Sampling(stop=("tw",)))
        assert answer.choices[0].text() == "one "
        assert engine.cancelled == 1
        assert engine.open == 0


async def test_an_engine_that_ends_by_itself_is_not_cancelled(tmp_path: Path) -> None:
    engine = FakeEngine(says("done"))
    async with bench(tmp_path, a=engine) as it:
        await it.answer()
        assert engine.cancelled == 0


async def test_an_engine_that_never_ends_is_cancelled_after_its_end_of_text(tmp_path: Path) -> None:
    async def goes_on(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (*b"ab", 256))]
        await asyncio.sleep(60)

    engine = FakeEngine(goes_on)
    async with bench(tmp_path, a=engine) as it:
        assert (await it.answer()).choices[0].text() == "ab"
        assert engine.cancelled == 1


@pytest.mark.parametrize("after", [0, 1, 3])
async def test_a_reader_who_leaves_frees_the_engine_at_once(tmp_path: Path, after: int) -> None:
    async def slowly(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        for byte in b"abcdefgh":
            yield [Chunk(0, (byte,))]
        await asyncio.sleep(60)

    engine = FakeEngine(slowly)
    async with bench(tmp_path, a=engine) as it:
        run = it.start()
        events = run.events()
        for _ in range(after + 1):
            await anext(events)
        await events.aclose()
        assert engine.open == 0
        assert it.idle()
        assert it.outcomes[0].kind == "client_gone"
        assert it.outcomes[0].status == 499


async def test_a_cancelled_reader_of_many_legs_frees_them_all(tmp_path: Path) -> None:
    async def hangs(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (97,))]
        await asyncio.sleep(60)

    engine = FakeEngine(hangs)
    async with bench(tmp_path, a=engine) as it:
        run = it.start(Sampling(n=5))

        async def read() -> None:
            async with aclosing(run.events()) as batches:
                async for _ in batches:
                    pass

        async with asyncio.TaskGroup() as group:
            task = group.create_task(read())
            while engine.open < 5:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0)
            task.cancel()
        assert engine.open == 0
        assert it.idle()


async def test_engines_that_all_break_end_the_stream_with_an_error(tmp_path: Path) -> None:
    async def breaks(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        if list(request.ids)[-2:] == [*b"ab"]:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "not again")
        yield [Chunk(0, tuple(b"ab"))]
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "it died")

    async with bench(tmp_path, a=FakeEngine(breaks)) as it:
        seen = await it.events()
        assert "".join(item.text for item in seen if isinstance(item, Delta)) == "ab"
        assert isinstance(seen[-1], Fail)
        assert seen[-1].error.status == 502
        assert (it.outcomes[0].kind, it.outcomes[0].completion_tokens) == ("failed", 2)


async def test_an_end_without_a_finish_is_a_failure(tmp_path: Path) -> None:
    async def stops(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (97,))]

    async with bench(tmp_path, a=FakeEngine(stops)) as it:
        assert (await it.error()).kind is ErrorKind.UPSTREAM_FAILED


async def test_an_answer_nobody_asked_for_is_a_failure(tmp_path: Path) -> None:
    async def confused(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(1, (97,))]

    async with bench(tmp_path, a=FakeEngine(confused)) as it:
        assert (await it.error()).kind is ErrorKind.UPSTREAM_FAILED


@pytest.mark.parametrize(("token_id", "fine"), [(299, True), (300, False), (2**32 - 1, False)])
async def test_an_id_beyond_the_vocabulary_is_a_failure(
    tmp_path: Path, token_id: int, fine: bool
) -> None:
    """A model may have more rows than its tokenizer has tokens: those print nothing, as everywhere."""

    async def babble(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (104, token_id, 105))]
        yield [Chunk(0, (256,), finish="stop")]

    engine = FakeEngine(babble)
    engine.model_card = card(vocabulary=300)
    async with bench(tmp_path, a=engine) as it:
        if fine:
            assert (await it.answer()).choices[0].text() == "hi"
        else:
            error = await it.error()
            assert error.kind is ErrorKind.UPSTREAM_FAILED
            assert str(token_id) in error.message
        assert it.idle()


@pytest.mark.parametrize(
    ("defaults", "said", "drawn"),
    [
        ({}, Sampling(), (1.0, 1.0)),
        ({"temperature": 0.6, "top_p": 0.95}, Sampling(), (0.6, 0.95)),
        ({"temperature": 0.6}, Sampling(temperature=0.0, top_p=0.5), (0.0, 0.5)),
    ],
)
async def test_a_generation_says_with_what_it_is_drawn(
    tmp_path: Path, defaults: dict[str, float], said: Sampling, drawn: tuple[float, float]
) -> None:
    engine = FakeEngine(says("hi"))
    engine.model_card = card(sampling_defaults=defaults)
    async with bench(tmp_path, a=engine) as it:
        begin = (await it.events(said))[0]
        assert isinstance(begin, Begin)
        assert (begin.temperature, begin.top_p) == drawn


async def test_one_broken_leg_ends_all_of_them(tmp_path: Path) -> None:
    async def picky(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        if request.sampling.seed == 3:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "not this one")
        yield [Chunk(0, (97,))]
        await asyncio.sleep(60)

    engine = FakeEngine(picky)
    async with bench(tmp_path, a=engine) as it:
        assert (await it.error(Sampling(n=3, seed=1))).message == "not this one; 3 attempts failed"
        assert engine.open == 0
        assert it.idle()


@pytest.mark.parametrize(
    ("sampling", "prompts", "more", "where", "code"),
    [
        (Sampling(), (TextPrompt("", add_special_tokens=False),), {}, "prompt", "invalid_value"),
        (Sampling(), (TokenPrompt(token_ids([1, 258])),), {}, "prompt[1]", "invalid_value"),
        (Sampling(logit_bias={258: 1.0}), HI, {}, "logit_bias.258", "invalid_value"),
        (Sampling(stop_token_ids=(999,)), HI, {}, "stop_token_ids", "invalid_value"),
        (
            Sampling(),
            (TextPrompt("x" * 64, add_special_tokens=False),),
            {},
            "prompt",
            "context_length_exceeded",
        ),
        (Sampling(max_tokens=63), HI, {"clamped": False}, "max_tokens", "context_length_exceeded"),
        (Sampling(min_tokens=63), HI, {}, "min_tokens", "unsupported_parameter"),
        (Sampling(prompt_logprobs=0), HI, {}, "prompt_logprobs", "unsupported_parameter"),
        (
            Sampling(),
            (ChatPrompt((Turn("user", "hi"),)),),
            {},
            "messages",
            "invalid_value",
        ),
    ],
)
async def test_what_would_harm_an_engine_never_reaches_it(
    tmp_path: Path,
    sampling: Sampling,
    prompts: tuple[Prompt, ...],
    more: dict[str, object],
    where: str,
    code: str,
) -> None:
    engine = FakeEngine()
    async with bench(tmp_path, a=engine) as it:
        error = await it.error(sampling, prompts=prompts, **more)
        assert (error.status, error.where, error.code) == (400, where, code)
        assert engine.requests == []
        assert it.outcomes[0].kind == "refused"
        assert it.idle()


async def test_answers_are_clamped_to_the_context_and_prompts_cut_on_the_left(
    tmp_path: Path,
) -> None:
    engine = FakeEngine()
    async with bench(tmp_path, a=engine) as it:
        await it.answer(Sampling(max_tokens=1000))
        await it.answer()
        long = (TextPrompt("abcdefgh" * 20, add_special_tokens=False),)
        await it.answer(Sampling(max_tokens=1), prompts=long, truncate=-1)
        await it.answer(Sampling(max_tokens=1), prompts=long, truncate=4)
        assert [request.sampling.max_tokens for request in engine.requests] == [62, 62, 1, 1]
        assert bytes(list(engine.requests[2].ids)) == (b"abcdefgh" * 20)[-63:]
        assert bytes(list(engine.requests[3].ids)) == b"efgh"


async def test_a_prompt_is_echoed_before_its_answers(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("x"))) as it:
        seen = await it.events(Sampling(n=2), echo=True)
        echoes = [item for item in seen if isinstance(item, PromptEcho)]
        assert [(echo.choice, echo.text) for echo in sorted(echoes, key=lambda e: e.choice)] == [
            (0, "hi"),
            (1, "hi"),
        ]


async def test_hints_an_engine_cannot_take_are_named(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.abilities = abilities()
    async with bench(tmp_path, a=engine) as it:
        run = it.start(Sampling(seed=1))
        async for _ in run.events():
            pass
        assert run.ignored == ()


async def test_an_unknown_model_is_not_found_and_a_lost_fleet_is_unavailable(
    tmp_path: Path,
) -> None:
    engine = FakeEngine()
    async with bench(tmp_path, a=engine) as it:
        assert (await it.error(model="other")).code == "model_not_found"
        set_aside(it.fleet, "grpc://a:1", on=True)
        error = await it.error()
        assert (error.status, error.code) == (503, "no_worker_available")
        assert error.retry_after_s is not None


async def test_a_worker_that_comes_back_in_time_is_waited_for(tmp_path: Path) -> None:
    async with bench(tmp_path, a=FakeEngine(says("ok"))) as it:
        set_aside(it.fleet, "grpc://a:1", on=True)
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(it.answer())
            await asyncio.sleep(0.05)
            set_aside(it.fleet, "grpc://a:1", on=False)
        assert answer.result().choices[0].text() == "ok"


async def test_a_target_is_that_worker_or_an_error(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(says("from a")), "b": FakeEngine(says("from b"))}
    async with bench(tmp_path, **engines) as it:
        for _ in range(3):
            answer = await it.answer(target="grpc://b:1")
            assert answer.choices[0].text() == "from b"
        assert (await it.error(target="w-nobody")).code == "worker_not_found"
        set_aside(it.fleet, "grpc://b:1", on=True)
        assert (await it.error(target="grpc://b:1")).code == "worker_unavailable"


async def test_a_request_whose_time_is_up_is_not_sent(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with bench(tmp_path, a=engine) as it:
        assert (await it.error(timeout_s=0)).status == 504
        assert engine.requests == []


async def test_a_bad_constraint_is_refused_with_its_path_and_a_good_one_is_remembered(
    tmp_path: Path,
) -> None:
    engine = FakeEngine()
    engine.abilities = replace(abilities(), constraints=frozenset({"json_schema"}))
    async with bench(tmp_path, a=engine) as it:
        bad = Constraint("json_schema", '{"type": "strong"}', "response_format.json_schema.schema")
        error = await it.error(Sampling(constraint=bad))
        assert error.code == "invalid_json_schema"
        assert error.where == "response_format.json_schema.schema.type"
        good = replace(bad, value='{"type": "object", "description": "%s"}' % ("x" * 5000))
        for _ in range(2):
            await it.answer(Sampling(constraint=good))
        other = replace(bad, kind="regex", value="a+")
        assert (await it.error(Sampling(constraint=other))).code == "unsupported_parameter"
        assert len(engine.requests) == 2


async def test_the_trace_and_the_request_id_travel_to_the_engine(tmp_path: Path) -> None:
    engine = FakeEngine()
    headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-00", "x-request-id": "req_1"}
    async with bench(tmp_path, a=engine) as it:
        await it.answer(headers=headers)
        (asked,) = engine.requests
        assert asked.headers == headers
        assert asked.request_id.startswith("eng-")


async def test_text_that_becomes_ids_an_engine_does_not_have_is_refused(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.model_card = card(vocabulary=100)
    async with bench(tmp_path, a=engine) as it:
        error = await it.error(prompts=(TextPrompt("é", add_special_tokens=False),))
        assert (error.status, error.where) == (400, "prompt")
        assert "outside the vocabulary of 100" in error.message


async def test_legs_go_to_all_workers_that_can_do_what_the_first_one_can(tmp_path: Path) -> None:
    engines = {"a": FakeEngine(says("w")), "b": FakeEngine(says("w"))}
    engines["b"].abilities = abilities(stop_strings=True)
    async with bench(tmp_path, **engines) as it:
        answer = await it.answer(Sampling(n=6, temperature=0.0, logit_bias={1: 1.0}))
        assert {choice.text() for choice in answer.choices} == {"w"}
        assert [len(engine.requests) for engine in engines.values()] == [3, 3]
        assert it.idle()
