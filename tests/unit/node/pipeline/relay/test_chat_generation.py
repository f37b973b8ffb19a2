"""Generations by HTTP workers: a wish goes out as a chat, the answer comes back as events, and breaks are told as such."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Begin, BlockStart, Fail
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    Sampling,
    ToolCall,
    Turn,
)
from smg_node.engines.transport.transport import TransportError
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.pipeline.relay import answer_collector as chat_relay
from smg_node.system_clock import SystemClock
from support.answers.chat_chunks import DONE, blocks, call, calls, chunk, event, usage_of, used
from support.engines.chat_relay_bench import GOOD, ROLE, bench, fine, heard
from support.engines.relay_bench import (
    Told,
    lost,
    streamed,
    told,
    unreached,
    worker,
)
from support.engines.relay_pairs import CACHED, STYLES, Network, said
from support.rights.fake_rights import LimitWorld, door_of, limit, whole


async def test_an_answer_is_told_and_counted_as_the_dialects_own(tmp_path: Path) -> None:
    one = worker(fine)
    async with bench(tmp_path, w=one) as b:
        run = b.start(stream=False, ignored=("user",))
        assert (run.worker, run.attempts, run.ticket, run.ignored) == ("", 0, None, ("user",))
        events = await heard(run)
        assert blocks(events) == ["text Hi!"]
        begin = events[0]
        assert isinstance(begin, Begin)
        assert (begin.model, begin.prompt_tokens, len(begin.id)) == ("m", 0, 32)
        usage = usage_of(events)
        assert (usage.prompt_tokens, usage.completion_tokens) == (9, 4)
        assert run.worker == b.relays.outcomes[0].worker != ""
        [outcome] = b.relays.outcomes
        assert (outcome.dialect, outcome.kind, outcome.streamed) == ("responses", "ok", False)
        assert (outcome.prompt_tokens, outcome.completion_tokens) == (9, 4)
        assert [one.dialect for one in b.relays.journal.get(begin.id)] == ["responses"]
    [sent] = one.calls
    assert sent.path == "/v1/chat/completions"
    assert json.loads(sent.body)["stream_options"] == {"include_usage": True}


async def test_the_worker_is_asked_by_its_own_name_for_the_model(tmp_path: Path) -> None:
    one = worker(fine, name="theirs")
    settings = {"ours": ModelSettings(aliases=("alias",))}
    async with bench(tmp_path, w=one, query="?model=ours", settings=settings) as b:
        for name in ("ours", "alias"):
            begin = (await b.events(model=name))[0]
            assert isinstance(begin, Begin)
            assert begin.model == name
    assert [json.loads(sent.body)["model"] for sent in one.calls] == ["theirs", "theirs"]


async def test_models_of_engines_are_left_to_them_and_so_are_unknown_ones(tmp_path: Path) -> None:
    async with bench(tmp_path, w=worker(fine)) as b:
        events = await b.events(model="another")
        assert blocks(events) == ["text Hello world"]
        [run] = b.engines.runs
        assert run.request.model == "another"
        assert run.context.deadline_s <= SystemClock().monotonic_s(), "it was waited for already"
        assert b.relays.outcomes == []


async def test_who_is_in_begins_once_and_who_leaves_has_cost_nothing(tmp_path: Path) -> None:
    one = worker(fine)
    async with bench(tmp_path, w=one) as b:
        run = b.start()
        await run.enter()
        assert one.calls == []
        assert blocks(await heard(run)) == ["text Hi!"]
        run.leave()
        idle = b.start()
        idle.leave()
        await idle.enter()
        idle.leave()
        assert len(b.relays.outcomes) == len(one.calls) == 1


@pytest.mark.parametrize(
    "bad",
    [
        lost(),
        unreached(),
        told({}, 500),
        told({}, 429),
        streamed(lost()),
        streamed(ROLE, lost()),
        streamed(ROLE, DONE),
        streamed(ROLE, chunk("abort"), DONE),
        streamed(b"data: nonsense\n\n", DONE),
        streamed(ROLE, event({"error": {"message": "cuda", "code": 500}}), DONE),
        streamed(ROLE, event({"error": {"message": "cuda"}}), DONE),
        told([1]),
        told({"choices": []}),
    ],
)
async def test_what_breaks_before_the_first_word_is_told_by_another(
    tmp_path: Path, bad: Told | TransportError
) -> None:
    failing = worker(lambda call: bad)
    async with bench(tmp_path, a=failing, b=worker(fine)) as b:
        for _ in range(2):
            assert blocks(await b.events()) == ["text Hi!"]
        assert [one.kind for one in b.relays.outcomes] == ["ok", "ok"]
        assert max(one.attempts for one in b.relays.outcomes) == 2
    assert len(failing.calls) >= 1


@pytest.mark.parametrize(
    "rest",
    [
        (lost(),),
        (),
        (DONE,),
        (b"data: {\n\n", DONE),
        (chunk("error"), DONE),
        (event({"error": {"message": "cuda", "code": 500}}),),
        (calls(call(0, "{}")), chunk("stop"), DONE),
    ],
)
async def test_what_breaks_later_ends_with_the_break(tmp_path: Path, rest: Any) -> None:
    torn = worker(lambda call: streamed(ROLE, chunk(content="so"), *rest))
    async with bench(tmp_path, a=torn, b=torn) as b:
        events = await b.events()
        assert blocks(events) == ["text so"]
        last = events[-1]
        assert isinstance(last, Fail)
        assert last.error.status >= 500
        [outcome] = b.relays.outcomes
        assert (outcome.kind, outcome.attempts) == ("failed", 1)


async def test_an_answer_that_has_finished_is_whole_whatever_becomes_of_its_call(
    tmp_path: Path,
) -> None:
    torn = worker(lambda call: streamed(chunk(content="so"), chunk("stop"), lost()))
    async with bench(tmp_path, w=torn) as b:
        events = await b.events()
        assert blocks(events) == ["text so"]
        assert not isinstance(events[-1], Fail)


@pytest.mark.parametrize(
    ("answer", "code", "status", "words"),
    [
        (told({"error": {"message": "n is odd"}}, 400), "upstream_refused", 400, "n is odd"),
        (told({"detail": "odd"}, 422), "upstream_refused", 400, "odd"),
        (Told((b"<html>",), 418), "upstream_refused", 400, "refused the request"),
        (
            told({"error": {"message": "maximum context length is 8"}}, 400),
            "context_length_exceeded",
            400,
            "prompt is too long for the worker: maximum context length is 8",
        ),
        (
            told(
                {
                    "error": {
                        "message": "input (9 tokens) is longer than the model's context length (8"
                    }
                },
                422,
            ),
            "context_length_exceeded",
            400,
            "prompt is too long: 9 tokens > 8 maximum",
        ),
        (
            told({"error": {"code": "context_length_exceeded"}}, 400),
            "context_length_exceeded",
            400,
            "",
        ),
        (
            streamed(event({"error": {"message": "odd", "code": 400}}), DONE),
            "upstream_refused",
            400,
            "odd",
        ),
    ],
)
async def test_a_refusal_is_told_in_the_workers_words_and_asked_for_once(
    tmp_path: Path, answer: Told, code: str, status: int, words: str
) -> None:
    one = worker(lambda call: answer)
    async with bench(tmp_path, a=one, b=one) as b:
        error = await b.failure()
        assert (error.code, error.status) == (code, status)
        assert words in error.message
        assert b.relays.outcomes[0].kind == "refused"
    assert len(one.calls) == 1


async def test_an_answer_that_is_not_streamed_is_understood_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    async with bench(tmp_path, w=worker(lambda call: told(whole))) as b:
        assert blocks(await b.events()) == ["text Hi"]
        monkeypatch.setattr(chat_relay, "WHOLE_MAX_BYTES", 10)
        assert "did not stream" in (await b.failure()).message


async def test_what_no_worker_should_be_sent_is_refused_before(tmp_path: Path) -> None:
    one = worker(fine)
    async with bench(tmp_path, w=one) as b:
        error = await b.failure(sampling=Sampling(n=2))
        assert (error.kind, error.where) == (ErrorKind.INVALID_REQUEST, "n")
        bad = Constraint("regex", "(", "regex")
        run = b.start(sampling=Sampling(constraint=bad))
        with pytest.raises(SmgError) as found:
            await run.enter()
        assert found.value.where == "regex"
    assert one.calls == []


async def test_who_stops_reading_has_cut_the_call(tmp_path: Path) -> None:
    one = worker(lambda call: streamed(ROLE, chunk(content="so"), asyncio.Event()))
    async with bench(tmp_path, w=one) as b:
        events = b.start().events()
        assert len(await anext(events)) == 3
        await events.aclose()
        assert (one.open, one.cut) == (0, 1)
        assert b.relays.outcomes[0].kind == "client_gone"


async def test_silence_until_the_deadline_is_its_error(tmp_path: Path) -> None:
    one = worker(lambda call: streamed(asyncio.Event()))
    async with bench(tmp_path, w=one) as b:
        error = await b.failure(timeout_s=0.05)
        assert error.kind is ErrorKind.UPSTREAM_TIMEOUT


async def test_names_of_calls_in_the_prompt_are_not_used_again(tmp_path: Path) -> None:
    asked = calls(call(0, "{}", name="f", call_id="call_0"))
    one = worker(lambda _: streamed(asked, chunk("tool_calls"), DONE))
    async with bench(tmp_path, w=one) as b:
        fresh = await b.events()
        again = ChatPrompt(
            (
                Turn("user", "hi"),
                Turn("assistant", None, calls=(ToolCall("call_0", "f", "{}"),)),
                Turn("tool", "1", answers_call="call_0"),
            )
        )
        repeated = await b.events(prompts=(again,))
        assert [one.call_id for one in fresh if isinstance(one, BlockStart)] == ["call_0"]
        [made] = [one.call_id for one in repeated if isinstance(one, BlockStart)]
        begin = repeated[0]
        assert isinstance(begin, Begin)
        assert made == f"call_{begin.id}_0"


@pytest.mark.parametrize("style", STYLES)
async def test_two_workers_may_share_the_answer(tmp_path: Path, style: str) -> None:
    last = used(9, 4, prompt_tokens_details={"cached_tokens": 8})
    net = Network(style, streams=b"".join((*GOOD[:4], last, DONE)))
    p, d = net.prefill(), net.decode()
    async with bench(tmp_path, queries=said(net), p=p, d=d) as b:
        events = await b.events()
        assert blocks(events) == ["text Hi!"]
        assert usage_of(events).cached_tokens == CACHED
        assert (b.relays.outcomes[0].kind, net.computed) == ("ok", 0)
    assert (len(p.calls), len(d.calls)) == (1, 1)


# ── Limits ───────────────────────────────────────────────────────────────────


async def test_who_is_not_let_in_is_told_so_before_anybody_is_asked(tmp_path: Path) -> None:
    world, one = LimitWorld(), worker(fine)
    world.add(limit(), 1)
    door = door_of(world)
    async with bench(tmp_path, admission=door, w=one) as b:
        first, second = b.start(), b.start()
        await first.enter()
        assert first.ticket is not None
        with pytest.raises(LimitedError):
            await second.enter()
        assert blocks(await heard(first)) == ["text Hi!"]
        assert [(each.kind, each.status) for each in b.relays.outcomes] == [
            ("refused", 429),
            ("ok", 200),
        ]
        assert [each.dialect for each in b.relays.outcomes] == ["responses", "responses"]
    assert len(one.calls) == 1
    assert door.tallies.open == 0


async def test_who_leaves_without_reading_gets_all_of_it_back(tmp_path: Path) -> None:
    world = LimitWorld()
    tokens = world.add(limit("tokens"), 1_000)
    door = door_of(world)
    async with bench(tmp_path, admission=door, w=worker(fine)) as b:
        run = b.start()
        await run.enter()
        assert whole(tokens)[0] < 1_000
        run.leave()
        assert whole(tokens) == (1_000, 0)
        assert blocks(await b.events()) == ["text Hi!"]
        assert whole(tokens) == (987, 13)
    assert door.tallies.open == 0
