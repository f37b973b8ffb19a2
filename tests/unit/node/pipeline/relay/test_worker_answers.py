"""What is no answer is the worker's failure, whatever its status says; what blames the request is its client's."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.http.transport import HttpCall
from smg_node.pipeline.relay import relay_call
from smg_node.pipeline.relay.relay_call import KEPT_MAX_BYTES, Head
from smg_node.pipeline.relay.relay_request import APIS
from support.engines.relay_bench import SSE, Told, lost, relay_bench, streamed, told, worker

CHAT = {"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]}
TEXT = {"choices": [{"index": 0, "text": "hi", "finish_reason": "stop"}]}
ROWS = {"object": "list", "data": [{"index": 0, "embedding": [0.5]}]}
EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b"data: [DONE]\n\n",
)
HTML = (("content-type", "text/html"),)
TEXTS = (("content-type", "text/plain"),)
NO_KIND: tuple[tuple[str, str], ...] = ()
GOOD: dict[str, dict[str, Any]] = {
    "chat": CHAT,
    "completions": TEXT,
    "embeddings": ROWS,
    "rerank": {"results": [{"index": 0, "relevance_score": 1.0}]},
    "classify": {"data": [{"label": "a", "probs": [1.0]}]},
}
"""A whole answer of each API."""
NONE: list[tuple[str, Told]] = [
    ("empty", Told()),
    ("blank", Told((b" \n",))),
    ("204", Told(status=204)),
    ("an error", told({"error": {"message": "cuda", "code": 500}})),
    ("an error without a code", told({"error": {"message": "cuda"}})),
    ("an error of text", told({"error": "cuda"})),
    ("a flat error", told({"object": "error", "message": "cuda", "code": 503})),
    ("a detail", told({"detail": "Internal"})),
    ("an empty object", told({})),
    ("null", told(None)),
    ("text", Told((b"upstream connect error",), headers=TEXTS)),
    ("a page", Told((b"<html><body>hello</body></html>",), headers=HTML)),
    ("half", Told((b'{"choices":[{"text":',))),
    ("a stream", streamed(*EVENTS)),
    ("a number", told(5)),
]
NO_CHOICES: list[tuple[str, Told]] = [
    ("no choices", told({"choices": []})),
    ("choices of null", told({"choices": None})),
    ("a list", told([CHAT])),
    ("an empty choice", told({"choices": [{}]})),
    ("no message", told({"choices": [{"message": None}]})),
    ("given up", told({"choices": [{"message": {"content": "h"}, "finish_reason": "abort"}]})),
]


@pytest.mark.parametrize("api", GOOD)
@pytest.mark.parametrize("bad", [one[1] for one in NONE], ids=[one[0] for one in NONE])
async def test_a_success_that_is_no_answer_is_asked_for_again_and_is_a_502_then(
    tmp_path: Path, api: str, bad: Told
) -> None:
    failing, good = worker(lambda call: bad), worker(lambda call: told(GOOD[api]))
    async with relay_bench(tmp_path, a=failing, b=good) as b:
        for _ in range(3):
            head, body = await b.answer(api)
            assert (head.status, json.loads(body)) == (200, GOOD[api])
        assert failing.calls
        assert [one.kind for one in b.outcomes] == ["ok"] * 3
    async with relay_bench(tmp_path, a=worker(lambda call: bad)) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer(api)
        assert caught.value.status in (502, 503)
        assert caught.value.kind in (ErrorKind.UPSTREAM_FAILED, ErrorKind.OVERLOADED)
        assert "cuda" not in caught.value.message
        assert b.outcomes[0].kind == "failed"
        assert b.idle()


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("bad", [one[1] for one in NO_CHOICES], ids=[one[0] for one in NO_CHOICES])
async def test_a_generation_without_a_choice_is_none(tmp_path: Path, api: str, bad: Told) -> None:
    failing, good = worker(lambda call: bad), worker(lambda call: told(GOOD[api]))
    async with relay_bench(tmp_path, a=failing, b=good) as b:
        for _ in range(3):
            assert json.loads((await b.answer(api))[1]) == GOOD[api]
    assert failing.calls


@pytest.mark.parametrize("bad", [told([[0.5]]), told({"data": None}), told({"results": []})])
async def test_embeddings_come_as_a_list_of_data(tmp_path: Path, bad: Told) -> None:
    async with relay_bench(tmp_path, a=worker(lambda call: bad)) as b:
        with pytest.raises(SmgError, match="has no embeddings"):
            await b.answer("embeddings")


@pytest.mark.parametrize(
    "bad",
    [
        *(one[1] for one in NONE if one[0] != "a stream"),
        told(CHAT),
        Told(EVENTS, headers=TEXTS),
        Told(EVENTS, headers=NO_KIND),
        Told((b"",), headers=SSE),
        streamed(b": ping\n\n"),
        streamed(*EVENTS[2:]),
        Told((b"{" + b" " * KEPT_MAX_BYTES, b"}")),
    ],
)
async def test_what_is_no_stream_is_none_where_one_was_asked_for(tmp_path: Path, bad: Told) -> None:
    failing, good = worker(lambda call: bad), worker(lambda call: streamed(*EVENTS))
    async with relay_bench(tmp_path, a=failing, b=good) as b:
        for _ in range(3):
            head, body = await b.answer(stream=True)
            assert (head.events, body) == (True, b"".join(EVENTS))
    assert failing.calls


@pytest.mark.parametrize("kind", [TEXTS, NO_KIND, (("content-type", "text/json"),)])
async def test_an_answer_by_another_name_is_one(
    tmp_path: Path, kind: tuple[tuple[str, str], ...]
) -> None:
    named = replace(told(CHAT), headers=kind)
    async with relay_bench(tmp_path, w=worker(lambda call: named)) as b:
        head, body = await b.answer()
        assert (head.content_type, json.loads(body)) == ("", CHAT)


@pytest.mark.parametrize("body", [[{"index": 0, "score": 0.5}], {"results": []}])
async def test_a_rerank_is_any_object_or_list(tmp_path: Path, body: object) -> None:
    async with relay_bench(tmp_path, w=worker(lambda call: told(body))) as b:
        assert json.loads((await b.answer("rerank"))[1]) == body


async def test_what_cannot_be_read_passes_as_it_is(tmp_path: Path) -> None:
    packed = (("content-type", "application/json"), ("content-encoding", "gzip"))
    events = (("content-type", "text/event-stream"), ("content-encoding", "gzip"))
    for told_, stream in (
        (Told((b"\x1f\x8b",), headers=packed), False),
        (Told((b"\x1f\x8b", b"x"), headers=events), True),
    ):
        async with relay_bench(tmp_path, w=worker(lambda call, one=told_: one)) as b:  # type: ignore[misc]  # bound now
            head, body = await b.answer(stream=stream)
            assert head.headers == {"content-encoding": "gzip"}
            assert body.startswith(b"\x1f\x8b")


@pytest.mark.parametrize("last", [b"} \n", b"x"])
async def test_a_large_answer_is_judged_by_how_it_begins_and_ends(
    tmp_path: Path, last: bytes
) -> None:
    pieces = (b' {"data":[]' + b" " * KEPT_MAX_BYTES, b" " * 10, last)
    passed: list[Head | bytes] = []
    async with relay_bench(tmp_path, w=worker(lambda call: Told(pieces))) as b:

        async def read() -> None:
            async for piece in b.start("embeddings").answer():
                passed.append(piece)  # noqa: PERF401 - what came before an error is looked at

        if last == b"x":
            with pytest.raises(SmgError, match="is no whole JSON"):
                await read()
            assert b.outcomes[0].kind == "failed"
        else:
            await read()
    assert isinstance(passed[0], Head)
    assert b"".join(one for one in passed if isinstance(one, bytes)) == b"".join(pieces)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answer", "status", "code", "where", "words"),
    [
        (
            told({"error": {"message": "n is odd", "param": "n", "code": "bad_n"}}, 400),
            400,
            "bad_n",
            "n",
            "n is odd",
        ),
        (
            told({"error": {"message": "odd", "code": 400}}, 400),
            400,
            "upstream_refused",
            None,
            "odd",
        ),
        (told({"error": "odd"}, 400), 400, "upstream_refused", None, "odd"),
        (
            told({"object": "error", "message": "odd", "code": 400}, 400),
            400,
            "upstream_refused",
            None,
            "odd",
        ),
        (told({"detail": "odd"}, 400), 400, "upstream_refused", None, "odd"),
        (
            told({"detail": [{"loc": ["body", "n"], "msg": "no int"}]}, 422),
            400,
            "upstream_refused",
            "n",
            "n: no int",
        ),
        (Told((b"odd words",), 400, TEXTS), 400, "upstream_refused", None, "odd words"),
        (
            Told((b"<html><title>Too odd</title>",), 418, HTML),
            400,
            "upstream_refused",
            None,
            "Too odd",
        ),
        (
            Told((b"",), 400),
            400,
            "upstream_refused",
            None,
            "the worker refused the request and does not say why",
        ),
        (
            Told((b"<html><title>413 Too Large</title>",), 413, HTML),
            413,
            "request_too_large",
            None,
            "413 Too Large",
        ),
        (
            told({"error": {"message": "maximum context length is 8 tokens"}}, 400),
            400,
            "context_length_exceeded",
            "messages",
            "prompt is too long for the worker: maximum context length is 8 tokens",
        ),
    ],
)
async def test_a_refusal_of_any_form_is_one_error_in_the_workers_words(
    tmp_path: Path,
    answer: Told,
    status: int,
    code: str,
    where: str | None,
    words: str,
    *,
    stream: bool,
) -> None:
    refusing = worker(lambda call: answer)
    async with relay_bench(tmp_path, a=refusing, b=refusing) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer(stream=stream)
        error = caught.value
        assert (error.status, error.code, error.where) == (status, code, where)
        assert error.message == words
        assert len(refusing.calls) == 1
        [outcome] = b.outcomes
        assert (outcome.kind, outcome.status, outcome.error_code) == ("refused", status, code)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_inside_a_success_is_one_as_well(tmp_path: Path, *, stream: bool) -> None:
    said = {"object": "error", "message": "n is odd", "code": 400}
    event = b"data: " + json.dumps({"error": {"message": "n is odd", "code": 400}}).encode()
    for answer in (told(said), streamed(event + b"\n\n")) if stream else (told(said),):
        refusing = worker(lambda call, one=answer: one)  # type: ignore[misc]  # bound now
        async with relay_bench(tmp_path, a=refusing, b=refusing) as b:
            with pytest.raises(SmgError) as caught:
                await b.answer(stream=stream)
            assert (caught.value.status, caught.value.message) == (400, "n is odd")
            assert len(refusing.calls) == 1


NO_ROUTE = [
    Told(status=404),
    told({"detail": "Not Found"}, 404),
    told({"error": {"message": "Not Found", "type": "Not Found", "code": 404}}, 404),
    told({"detail": "Method Not Allowed"}, 405),
    Told((b"404 page not found\n",), 404, TEXTS),
]


@pytest.mark.parametrize("answer", NO_ROUTE)
async def test_a_generation_goes_to_a_worker_that_has_the_api(tmp_path: Path, answer: Told) -> None:
    def says(call: HttpCall) -> Told:
        return told(CHAT) if call.path == "/v1/chat/completions" else answer

    chats = worker(says)
    both = worker(lambda call: told(CHAT if "chat" in call.path else TEXT))
    async with relay_bench(tmp_path, a=chats, b=both) as b:
        for _ in range(4):
            assert json.loads((await b.answer("completions", prompt="x"))[1]) == TEXT
        assert len([call for call in chats.calls if call.path == "/v1/completions"]) == 1
        for _ in range(4):
            await b.answer()
        assert len([call for call in chats.calls if "chat" in call.path]) == 2
        view = b.fleet.get("http://a:1").breaker.view(0.0)
        assert view.failures == 0
    async with relay_bench(tmp_path, a=worker(says)) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer("completions", prompt="x")
        assert (caught.value.status, caught.value.code) == (501, "not_implemented")
        assert b.relays.has("m", APIS["chat"])


async def test_a_model_that_a_worker_does_not_know_any_more_is_its_failure(tmp_path: Path) -> None:
    gone = told({"error": {"message": "The model `m` does not exist.", "code": 404}}, 404)
    without, good = worker(lambda call: gone), worker(lambda call: told(CHAT))
    async with relay_bench(tmp_path, a=without, b=good) as b:
        for _ in range(3):
            assert json.loads((await b.answer())[1]) == CHAT
    async with relay_bench(tmp_path, a=worker(lambda call: gone)) as b:
        with pytest.raises(SmgError) as caught:
            await b.answer()
        assert caught.value.status == 502
        assert "The model `m` does not exist." in caught.value.message


async def test_an_api_that_was_missing_is_looked_for_again_when_the_worker_was_away(
    tmp_path: Path,
) -> None:
    one = worker(lambda call: Told(status=404))
    async with relay_bench(tmp_path, w=one) as b:
        with pytest.raises(SmgError):
            await b.answer()
        assert not b.relays.has("m", APIS["chat"])
        one.pages["/health"] = Told(status=503)
        await b.fleet.probe("http://w:1")
        assert b.relays.has("m", APIS["chat"])


async def test_a_worker_that_stays_after_its_last_event_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_call, "TAIL_S", 0.01)
    for rest in (30.0, lost(), b": bye\n\n"):
        one = worker(lambda call, more=rest: streamed(*EVENTS, more))  # type: ignore[misc]  # bound now
        async with relay_bench(tmp_path, w=one) as b:
            assert (await b.answer(stream=True))[1] == b"".join(EVENTS)
            assert b.outcomes[0].kind == "ok"
            assert one.open == 0


async def test_a_stream_is_tried_elsewhere_until_its_first_word(tmp_path: Path) -> None:
    role = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
    for bad in (lost(), b'data: {"error":"cuda"}\n\n', b"data: [DONE]\n\n"):
        torn = worker(lambda call, more=bad: streamed(b": hi\n\n", role, more))  # type: ignore[misc]  # bound now
        good = worker(lambda call: streamed(*EVENTS))
        async with relay_bench(tmp_path, a=torn, b=good) as b:
            for _ in range(3):
                assert (await b.answer(stream=True))[1] == b"".join(EVENTS)
        assert torn.calls


async def test_done_is_added_where_a_worker_leaves_it_out(tmp_path: Path) -> None:
    async with relay_bench(tmp_path, w=worker(lambda call: streamed(*EVENTS[:2]))) as b:
        assert (await b.answer(stream=True))[1] == b"".join(EVENTS)
        assert b.outcomes[0].kind == "ok"
        # Two were asked for, and only one is told of.
        with pytest.raises(SmgError, match="before the end of it"):
            await b.answer(stream=True, n=2)
