"""Requests relayed to HTTP workers: what goes there, what comes back, what is tried again."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.journey import Broke, Chosen
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.transport.transport import TransportError
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.pipeline.relay.relay_call import KEPT_MAX_BYTES, Head
from smg_node.pipeline.relay.relay_request import APIS
from support.engines.fake_engine import FakeEngine
from support.engines.relay_bench import (
    FakeTransport,
    Told,
    listing,
    lost,
    relay_bench,
    streamed,
    told,
    unreached,
    whole,
    worker,
)

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
ANSWER = {"model": "m", "choices": [{"text": "hi"}], "usage": USAGE}
EVENT = b'data: {"model":"m","choices":[{"delta":{"content":"a"}}]}\n\n'
FINISH = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = FINISH + b"data: [DONE]\n\n"


def fine(call: HttpCall) -> Told:
    return told(ANSWER)


async def test_what_a_client_sent_goes_to_the_worker_as_it_came(tmp_path: Path) -> None:
    one = worker(fine)
    async with relay_bench(tmp_path, api_key="secret", w=one) as b:
        head, body = await b.answer(seed=1, strange={"a": [1]})
        assert (head.status, head.whole, head.events) == (200, True, False)
        assert json.loads(body) == ANSWER
        [call] = one.calls
        assert call.path == "/v1/chat/completions"
        assert json.loads(call.body)["strange"] == {"a": [1]}
        assert call.headers["authorization"] == "Bearer secret"
        assert call.headers["x-request-id"].startswith("eng-")
        assert call.headers["x-smg-request-id"] == "req_1"
        assert call.headers["traceparent"] == "00-1"
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.dialect, outcome.model) == ("ok", "chat", "m")
        assert (outcome.prompt_tokens, outcome.cached_tokens) == (9, 5)
        assert outcome.completion_tokens == 4
        assert b.idle()
        assert one.open == 0


async def test_a_stream_passes_piece_by_piece_and_its_usage_is_read(tmp_path: Path) -> None:
    last = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
    end = b"data: [DONE]\n\n"
    pieces = (EVENT[:7], EVENT[7:] + EVENT, FINISH + last[:30], last[30:], end)
    async with relay_bench(tmp_path, w=worker(lambda call: streamed(*pieces))) as b:
        run = b.start(stream=True)
        heard = [piece async for piece in run.answer()]
        assert isinstance(heard[0], Head)
        assert heard[0].events
        assert heard[1:] == [EVENT + EVENT, FINISH, last, end]
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.prompt_tokens, outcome.completion_tokens) == ("ok", 3, 2)
        assert outcome.streamed
        assert outcome.first_token_s is not None


async def test_a_large_answer_is_not_kept_back_for_ever(tmp_path: Path) -> None:
    pieces = [b"{" + b" " * 299_999, *[b" " * 300_000] * 3, b" " * 299_999 + b"}"]
    async with relay_bench(tmp_path, w=worker(lambda call: Told(pieces))) as b:
        heard = [piece async for piece in b.start().answer()]
        assert isinstance(heard[0], Head)
        assert not heard[0].whole
        sizes = [len(piece) for piece in heard[1:] if isinstance(piece, bytes)]
        assert KEPT_MAX_BYTES < sizes[0] < KEPT_MAX_BYTES + 300_000
        assert sum(sizes) == 1_500_000


@pytest.mark.parametrize(
    "bad",
    [
        lost(),
        unreached(),
        told({}, 500),
        told({}, 502),
        told({}, 503),
        told({}, 429),
        told({}, 401),
        told({}, 302),
        Told((b'{"half"', lost())),
        streamed(lost()),
        streamed(),
    ],
)
async def test_what_breaks_before_the_first_byte_is_tried_elsewhere(
    tmp_path: Path, bad: Told | TransportError
) -> None:
    good = worker(lambda call: streamed(EVENT, DONE))
    failing = worker(lambda call: bad)
    async with relay_bench(tmp_path, a=failing, b=good) as b:
        for _ in range(2):
            head, body = await b.answer(stream=True)
            assert (head.status, body) == (200, EVENT + DONE)
        assert len(failing.calls) >= 1
        assert len(good.calls) == 2
        assert [one.kind for one in b.outcomes] == ["ok", "ok"]
        assert max(one.attempts for one in b.outcomes) == 2
        steps = [step for one in b.journal.get("req_1") for step in one.steps]
        assert any(type(step) is Broke and step.then == "tried again" for step in steps)
        assert any(type(step) is Chosen and step.why == "retry" for step in steps)
        assert b.idle()


async def test_nobody_else_to_ask_means_the_error_itself(tmp_path: Path) -> None:
    full = Told(status=429, headers=(("retry-after", "3"),))
    async with relay_bench(tmp_path, w=worker(lambda call: full)) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer()
        assert caught.value.kind is ErrorKind.RATE_LIMITED
        assert caught.value.retry_after_s == 3
        assert "the worker is full" in caught.value.message
        assert b.outcomes[0].kind == "refused"
        assert b.idle()


async def test_a_stream_that_broke_is_not_begun_again(tmp_path: Path) -> None:
    torn = worker(lambda call: streamed(EVENT, lost()))
    async with relay_bench(tmp_path, a=torn, b=torn) as b:
        pieces = b.start(stream=True).answer()
        heard = [await anext(pieces), await anext(pieces)]
        with pytest.raises(SmgError, match="part of the answer"):
            await anext(pieces)
        assert heard[1:] == [EVENT]
        assert len(torn.calls) == 1
        assert b.outcomes[0].kind == "failed"


async def test_a_stream_without_its_end_was_cut(tmp_path: Path) -> None:
    async with relay_bench(tmp_path, w=worker(lambda call: streamed(EVENT))) as b:
        with pytest.raises(SmgError, match="before the end"):
            await b.answer(stream=True)


async def test_a_mistake_of_the_client_passes_in_the_workers_words(tmp_path: Path) -> None:
    words = {"error": {"message": "temperature, with secret in it"}}
    refusing = worker(lambda call: told(words, 400))
    async with relay_bench(tmp_path, api_key="secret", w=refusing) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer()
        assert caught.value.message == "temperature, with [the API key] in it"
        assert (caught.value.kind, caught.value.code) == (
            ErrorKind.INVALID_REQUEST,
            "upstream_refused",
        )
        assert len(refusing.calls) == 1
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.status) == ("refused", 400)
        [one] = b.fleet.workers()
        assert one.breaker.view(now_s()).failures == 0


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_a_worker_without_an_api_is_not_asked_for_it_again(tmp_path: Path) -> None:
    without = worker(lambda call: Told(status=404))
    having = worker(lambda call: told({"results": [call.path]}))
    async with relay_bench(tmp_path, a=without, b=having) as b:
        for _ in range(4):
            _, body = await b.answer("rerank", query="q", documents=["d"])
            assert json.loads(body) == {"results": ["/v1/rerank"]}
        assert sorted({call.path for call in without.calls}) == ["/rerank", "/v1/rerank"]
        assert len(without.calls) == 2
        assert [one.kind for one in b.outcomes] == ["ok"] * 4


async def test_an_api_that_no_worker_has_is_refused_at_once(tmp_path: Path) -> None:
    without = worker(lambda call: Told(status=405))
    async with relay_bench(tmp_path, w=without) as b:
        for _ in range(2):
            with pytest.raises(SmgError) as caught:
                await b.answer("classify", input="x")
            assert (caught.value.status, caught.value.code) == (501, "not_implemented")
        assert len(without.calls) == 2
        assert not b.relays.has("m", APIS["classify"])
        assert b.relays.has("m", APIS["rerank"])


async def test_the_workers_own_name_is_sent_and_ours_is_told(tmp_path: Path) -> None:
    theirs = worker(
        lambda call: told({"model": "theirs/x", "choices": [{"text": '"model":"theirs/x"'}]}),
        "theirs/x",
    )
    settings = {"ours": ModelSettings(aliases=("alias",))}
    async with relay_bench(tmp_path, settings=settings, query="?model=ours", w=theirs) as b:
        for name in ("ours", "alias"):
            _, body = await b.answer(model=name)
            assert json.loads(body) == {
                "model": "ours",
                "choices": [{"text": '"model":"theirs/x"'}],
            }
        assert {json.loads(call.body)["model"] for call in theirs.calls} == {"theirs/x"}
        assert b.relays.takes("alias")
        assert not b.relays.takes("theirs/x")
        assert not b.relays.takes(None)


async def test_labels_that_engines_mistake_for_ids_stay_here(tmp_path: Path) -> None:
    one = worker(fine)
    async with relay_bench(tmp_path, w=one) as b:
        await b.answer(rid="same", request_id="same", user="u")
        said = json.loads(one.calls[0].body)
        assert "rid" not in said
        assert "request_id" not in said
        assert said["user"] == "u"


@pytest.mark.parametrize(
    ("limits", "pieces", "code"),
    [
        (EngineOptions(first_event_s=0.05), (5.0, EVENT), "first_event_timeout"),
        (EngineOptions(stall_s=0.05), (EVENT, 5.0, DONE), "upstream_stalled"),
    ],
)
async def test_silence_ends_a_stream(
    tmp_path: Path, limits: EngineOptions, pieces: tuple[bytes | float, ...], code: str
) -> None:
    one = worker(lambda call: streamed(*pieces))
    async with relay_bench(tmp_path, options=limits, w=one) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer(stream=True)
        assert (caught.value.kind, caught.value.code) == (ErrorKind.UPSTREAM_TIMEOUT, code)
        assert one.open == 0
        assert b.idle()


async def test_an_answer_that_is_not_streamed_may_take_until_the_deadline(tmp_path: Path) -> None:
    quick = EngineOptions(first_event_s=0.01, stall_s=0.01)
    slow = worker(lambda call: Told((0.4, json.dumps(ANSWER).encode())))
    async with relay_bench(tmp_path, options=quick, w=slow) as b:
        assert json.loads((await b.answer())[1]) == ANSWER
        with pytest.raises(SmgError) as caught:
            await b.answer(timeout_s=0.05)
        assert caught.value.code == "deadline_exceeded"


async def test_a_client_that_leaves_has_the_call_cut(tmp_path: Path) -> None:
    one = worker(lambda call: streamed(EVENT, 30.0, DONE))
    async with relay_bench(tmp_path, w=one) as b:
        async with aclosing(b.start(stream=True).answer()) as pieces:
            assert isinstance(await anext(pieces), Head)
            assert await anext(pieces) == EVENT
            assert one.open == 1
        assert (one.open, one.cut) == (0, 1)
        assert b.idle()
        assert b.outcomes[0].kind == "client_gone"
        # One that is waiting for the head of an answer, too.
        async with asyncio.TaskGroup() as group:
            task = group.create_task(whole(b.start(stream=True)))
            await asyncio.sleep(0.02)
            task.cancel()
        assert one.open == 0
        assert b.idle()


async def test_a_wanted_worker_is_the_only_one_asked(tmp_path: Path) -> None:
    failing, good = worker(lambda call: told({}, 500)), worker(fine)
    async with relay_bench(tmp_path, a=failing, b=good) as b:
        target = b.fleet.get("http://a:1").id
        with pytest.raises(SmgError, match="this worker and no other"):
            await b.answer(target=target)
        assert not good.calls


async def test_a_worker_that_fails_all_the_time_is_passed_over(tmp_path: Path) -> None:
    failing, good = worker(lambda call: unreached()), worker(fine)
    async with relay_bench(tmp_path, a=failing, b=good) as b:
        for _ in range(30):
            await b.answer()
        assert len(good.calls) == 30
        assert len(failing.calls) < 15
        assert b.fleet.get("http://a:1").breaker.view(now_s()).state != "closed"


async def test_engines_generate_where_both_kinds_serve_a_model(tmp_path: Path) -> None:
    rows = {"object": "list", "data": [{"index": 0, "embedding": [0.5]}]}
    one = worker(lambda call: told(rows), "tiny")
    async with relay_bench(tmp_path, engines={"e": FakeEngine()}, w=one) as b:
        assert not b.relays.takes("tiny")
        assert b.relays.has("tiny", APIS["embeddings"])
        _, body = await b.answer("embeddings", model="tiny", input="x")
        assert json.loads(body) == rows
        model = await b.placer.model("tiny", deadline_s=float("inf"))
        assert model.name == "tiny"


async def test_tokens_of_a_relayed_model_are_nobodys_here(tmp_path: Path) -> None:
    async with relay_bench(tmp_path, w=worker(fine)) as b:
        with pytest.raises(SmgError) as caught:
            await b.placer.model("m", deadline_s=float("inf"))
        assert caught.value.status == 501
        with pytest.raises(SmgError) as caught:
            await b.answer(model="nobody")
        assert caught.value.code == "model_not_found"


async def test_two_models_of_one_worker_need_a_word_of_the_operator(tmp_path: Path) -> None:
    two = FakeTransport(says=fine, pages={"/health": Told(), "/v1/models": listing("a", "b")})
    async with relay_bench(tmp_path, query="?model=b", w=two) as b:
        await b.answer(model="b")
        assert json.loads(two.calls[0].body)["model"] == "b"
    fleetless = replace(two, calls=[])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3), relay_bench(tmp_path, w=fleetless):
            pass


async def test_a_worker_is_brought_up_looked_at_and_says_how_busy_it_is(tmp_path: Path) -> None:
    one = worker(fine)
    one.pages["/metrics"] = Told(
        (b'vllm:num_requests_running{a="b"} 3.0\nvllm:num_requests_waiting 9.0\n',)
    )
    async with relay_bench(tmp_path, w=one) as b:
        [known] = b.fleet.workers()
        async with asyncio.timeout(5):
            while not known.sampled:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)
        assert known.sampled[0].load.running == 3
        assert known.load.overloaded
        one.pages["/health"] = Told(status=500)
        async with asyncio.timeout(5):
            while known.routable:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
        assert known.reason == "w:1: /health answers 500: the worker is not well"


SEEN = "w:1: /v1/models answers 401: the worker does not let this node in; is its api_key right?"


@pytest.mark.parametrize(
    ("pages", "up", "reason"),
    [
        (
            {"/health": Told(status=503)},
            True,
            "w:1: /health answers 503: the worker is starting, or not well",
        ),
        ({"/v1/models": Told(status=401)}, True, SEEN),
        (
            {"/health": Told(status=404), "/v1/models": Told(status=404)},
            True,
            "w:1: /v1/models answers 404: no server with the OpenAI API is there",
        ),
        ({}, False, "w:1: failed to connect: nobody"),
    ],
)
async def test_what_was_seen_last_is_what_an_operator_reads(
    tmp_path: Path, pages: dict[str, Told], reason: str, *, up: bool
) -> None:
    one = worker(fine)
    async with relay_bench(tmp_path, w=one) as b:
        [known] = b.fleet.workers()
        well = dict(one.pages)
        one.pages.update(pages)
        one.up = up
        if reason != SEEN:
            assert (await b.fleet.probe("http://w:1")).reason == reason
        async with asyncio.timeout(5):
            while known.routable:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)
        assert known.reason == reason
        one.pages.update(well)
        one.up = True
        async with asyncio.timeout(5):
            while not known.routable:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
        assert known.reason == ""
