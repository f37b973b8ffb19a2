"""Calls of own engines behind a route: the public name outside, the model's own workers inside, and one request in the books."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Begin, Delta, End, Fail, Usage
from smg_node.core.generation.request import ChatPrompt, TextPrompt, Turn
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import EngineRequest
from smg_node.pipeline.relay.relay_request import APIS, relayable
from support.engines.fake_engine import FakeEngine, Script, card, says
from support.engines.relay_bench import Told, streamed, told, worker
from support.engines.relay_bench import whole as whole_of
from support.rights.fake_rights import LimitWorld, door_of, limit, whole
from support.routes.own_bench import own_bench

ROUTES = {"public": ["engines/tiny"], "tiny": ["engines/tiny"], "gone": ["engines/nobody"]}


def engine(model: str = "tiny", script: Script | None = None, **more: object) -> FakeEngine:
    """Return an engine that says hello, or what the script does; `more` is of its card."""
    found = FakeEngine(script or says("hello"), model=model)
    found.model_card = card(model, **more)
    return found


@pytest.mark.parametrize("model", ["public", "tiny"])
async def test_events_have_the_public_name_and_one_outcome(tmp_path: Path, model: str) -> None:
    async with own_bench(tmp_path, ROUTES, {"e": engine()}) as b:
        events = await b.events(model)
        assert isinstance(events[0], Begin)
        assert events[0].model == model
        assert "".join(one.text for one in events if isinstance(one, Delta)) == "hello"
        assert isinstance(events[-1], End)
        assert b.idle()
        [outcome] = b.outcomes
        assert (outcome.model, outcome.kind, outcome.attempts) == (model, "ok", 1)
        assert (outcome.prompt_tokens, outcome.completion_tokens) == (2, 6)
        assert outcome.first_token_s is not None
        [journey] = b.journal.get("req_1")
        assert journey.model == model
        chosen = [b.fleet.get(step.worker).url.endpoint for step in journey.steps]
        assert chosen == ["provider://engines/tiny", "grpc://e:1"]
        assert outcome.worker == b.fleet.get("grpc://e:1").id


async def test_an_answer_comes_whole_and_by_pulling_too(tmp_path: Path) -> None:
    async with own_bench(tmp_path, ROUTES, {"e": engine()}) as b:
        answer = await b.answer("public")
        assert answer.choices[0].text() == "hello"
        pulled = [event async for batch in b.start("public").events() for event in batch]
        assert isinstance(pulled[-1], End)
        assert b.idle()
        assert [one.model for one in b.outcomes] == ["public", "public"]


async def test_a_model_without_workers_is_a_clear_refusal_and_no_attempt_is_repeated(
    tmp_path: Path,
) -> None:
    async with own_bench(tmp_path, ROUTES, {"e": engine()}) as b:
        events = await b.events("gone")
        [failed] = events
        assert isinstance(failed, Fail)
        assert failed.error.code == "no_worker_available"
        assert failed.error.status == 503
        [outcome] = b.outcomes
        assert (outcome.model, outcome.attempts) == ("gone", 1)


async def test_a_first_target_that_broke_is_followed_by_the_second(tmp_path: Path) -> None:
    async def breaks(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "no")
        yield []

    bad = engine("bad", breaks)
    routes = {"public": ["engines/bad", {"to": "engines/tiny", "on": ["broken"]}]}
    async with own_bench(tmp_path, routes, {"b": bad, "e": engine()}) as b:
        events = await b.events("public")
        assert "".join(one.text for one in events if isinstance(one, Delta)) == "hello"
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.attempts) == ("ok", 2)
        assert b.idle()
        # Its own workers answer for it; the target keeps no grudge.
        [target] = [one for one in b.fleet.workers() if one.own_model == "bad"]
        assert target.breaker.usable(asyncio.get_running_loop().time())


async def test_what_broke_behind_the_first_word_is_told_and_not_begun_anew(tmp_path: Path) -> None:
    async def cuts(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (104, 101))]
        await asyncio.sleep(0.01)
        raise SmgError(ErrorKind.UPSTREAM_FAILED, "no")

    bad = engine("bad", cuts)
    routes = {"public": ["engines/bad", {"to": "engines/tiny", "on": ["broken"]}]}
    async with own_bench(tmp_path, routes, {"b": bad, "e": engine()}) as b:
        events = await b.events("public")
        assert isinstance(events[-1], Fail)
        assert sum(isinstance(one, Begin) for one in events) == 1
        assert [one.kind for one in b.outcomes] == ["failed"]
        # Who sees nothing before the end gets the other one's.
        whole_answer = await b.answer("public")
        assert whole_answer.choices[0].text() == "hello"
        assert b.idle()


async def test_full_engines_are_passed_by_where_another_target_is_there(tmp_path: Path) -> None:
    free = asyncio.Event()

    async def waits(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        await free.wait()
        async for chunks in says("slow")(request):
            yield chunks

    slow = engine("slow", waits, running_max=1)
    routes = {"public": ["engines/slow", {"to": "engines/tiny", "on": ["full"]}]}
    async with own_bench(tmp_path, routes, {"s": slow, "e": engine()}) as b:
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(b.answer("public", timeout_s=20)) for _ in range(40)]
            async with asyncio.timeout(10):
                while sum(run.done() for run in runs) < 20:  # noqa: ASYNC110 - from outside
                    await asyncio.sleep(0.005)
            assert not all(run.done() for run in runs)
            free.set()
        assert {run.result().choices[0].text() for run in runs} == {"slow", "hello"}
        assert {one.kind for one in b.outcomes} == {"ok"}
        assert b.idle()


async def test_full_engines_alone_are_waited_for(tmp_path: Path) -> None:
    one = engine("slow", says("slow"), running_max=1)
    async with own_bench(tmp_path, {"public": ["engines/slow"]}, {"s": one}) as b:
        answers = await asyncio.gather(*(b.answer("public") for _ in range(40)))
        assert {answer.choices[0].text() for answer in answers} == {"slow"}


async def test_a_target_has_as_much_room_as_its_servers(tmp_path: Path) -> None:
    free = asyncio.Event()
    large = engine("large", running_max=1_000)

    async def waits(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        await free.wait()
        async for chunks in says("hello")(request):
            yield chunks

    large.script = waits
    async with (
        own_bench(tmp_path, {"public": ["engines/large"]}, {"l": large}) as b,
        asyncio.TaskGroup() as group,
    ):
        runs = [group.create_task(b.answer("public", timeout_s=20)) for _ in range(200)]
        async with asyncio.timeout(10):
            while large.open < 200:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        free.set()
        answers = [await run for run in runs]
        assert {answer.choices[0].text() for answer in answers} == {"hello"}


async def test_what_engines_refuse_is_the_clients_and_no_other_target_is_asked(
    tmp_path: Path,
) -> None:
    routes = {"public": ["engines/small", {"to": "engines/tiny", "on": ["broken", "full"]}]}
    small = engine("small")
    async with own_bench(tmp_path, routes, {"s": small, "e": engine()}) as b:
        prompts = (TextPrompt("x" * 200, add_special_tokens=False),)
        [failed] = await b.events("public", prompts=prompts)
        assert isinstance(failed, Fail)
        assert failed.error.kind is ErrorKind.INVALID_REQUEST
        assert b.outcomes[0].kind == "refused"


async def test_a_cancelled_client_frees_target_and_engine(tmp_path: Path) -> None:
    async def hangs(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [Chunk(0, (104,))]
        await asyncio.Event().wait()

    stuck = engine(script=hangs)
    async with own_bench(tmp_path, ROUTES, {"e": stuck}) as b:
        said = asyncio.Event()

        def hear(batch: Sequence[object]) -> None:
            said.set()

        async with asyncio.TaskGroup() as group:
            task = group.create_task(b.start("public").tell(hear))
            await said.wait()
            task.cancel()
        assert b.idle()
        assert [one.kind for one in b.outcomes] == ["client_gone"]


async def test_a_split_and_the_fastest_choose_among_own_engines_too(tmp_path: Path) -> None:
    async def late(request: EngineRequest) -> AsyncIterator[Sequence[Chunk]]:
        await asyncio.sleep(0.2)
        async for chunks in says("late")(request):
            yield chunks

    targets = ["engines/slow", "engines/tiny"]
    routes = {
        "fastest": {"targets": targets, "choose": "fastest"},
        "split": {"targets": targets, "split": {"to": "engines/slow", "share": 1.0}},
    }
    async with own_bench(tmp_path, routes, {"s": engine("slow", late), "e": engine()}) as b:
        split = [(await b.answer("split")).choices[0].text() for _ in range(3)]
        assert split == ["late"] * 3
        heard = [(await b.answer("fastest")).choices[0].text() for _ in range(12)]
        # Each is measured once or twice; then the one that takes 200 ms longer is left alone, but for a look now and then.
        assert heard.count("hello") >= 8
        assert {one.kind for one in b.outcomes} == {"ok"}


# ── HTTP servers ─────────────────────────────────────────────────────────────

CHUNK = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"hey"},"finish_reason":null}]}\n\n'
LAST = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USED = b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}\n\ndata: [DONE]\n\n'


async def test_own_http_servers_are_found_behind_a_route_of_their_own_name(tmp_path: Path) -> None:
    seen = []

    def answers(call: object) -> Told:
        seen.append(call)
        return streamed(CHUNK, LAST, USED)

    prompts = (ChatPrompt((Turn("user", "hi"),)),)
    async with own_bench(tmp_path, {"m": ["engines/m"]}, servers={"w": worker(answers)}) as b:
        events = await b.events("m", prompts=prompts)
        assert "".join(one.text for one in events if isinstance(one, Delta)) == "hey"
        assert len(seen) == 1
        [outcome] = b.outcomes
        assert (outcome.model, outcome.prompt_tokens, outcome.completion_tokens) == ("m", 7, 3)
        assert any(isinstance(one, Usage) for one in events)
        assert b.idle()


async def test_embeddings_of_a_route_are_its_servers(tmp_path: Path) -> None:
    row = {"data": [{"embedding": [1.0]}], "model": "m", "usage": {"prompt_tokens": 2}}
    one = worker(lambda call: told(row))
    body = {"model": "public", "input": "hi"}
    async with own_bench(tmp_path, {"public": ["engines/m"]}, servers={"w": one}) as b:
        asked = relayable(APIS["embeddings"], b'{"model":"public","input":"hi"}', body)
        head, said = await whole_of(b.relays.start(asked, {}, b.context(), ""))
        assert head.status == 200
        assert b'"model": "public"' in said or b'"model":"public"' in said


# ── Limits ───────────────────────────────────────────────────────────────────


async def test_limits_count_what_the_engine_did_and_give_back_the_rest(tmp_path: Path) -> None:
    world = LimitWorld()
    requests, open_, tokens = (
        world.add(limit(), 5),
        world.add(limit("concurrent", window_ms=0), 2),
        world.add(limit("tokens"), 1_000),
    )
    async with own_bench(tmp_path, {**ROUTES}, {"e": engine()}, admission=door_of(world)) as b:
        await b.events("public")
        assert (whole(requests), whole(open_)) == ((4, 1), (2, 0))
        # Two of the prompt and six of the answer; what was reserved by an estimate is back.
        assert whole(tokens) == (992, 8)
        await b.events("gone")
        assert whole(tokens) == (992, 8)
        assert whole(open_) == (2, 0)


async def test_a_limit_that_refuses_is_no_reason_to_ask_another_target(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("tokens"), 10)
    routes = {"public": ["engines/small", {"to": "engines/tiny", "on": ["rate", "broken"]}]}
    async with own_bench(
        tmp_path, routes, {"s": engine("small"), "e": engine()}, admission=door_of(world)
    ) as b:
        prompts = (TextPrompt("x" * 20, add_special_tokens=False),)
        [failed] = await b.events("public", prompts=prompts, max_tokens=1)
        assert isinstance(failed, Fail)
        assert isinstance(failed.error, LimitedError)
        assert whole(tokens) == (10, 0)
        assert [one.kind for one in b.outcomes] == ["refused"]
