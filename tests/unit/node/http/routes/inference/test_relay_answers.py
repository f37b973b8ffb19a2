"""Relayed answers on the HTTP surface: heads, comments, errors, and clients that leave."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smg_node.engines.engine import EmbedRequest
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.transport.transport import TransportError
from support.engines.fake_engine import FakeEngine
from support.engines.relay_bench import (
    FakeTransport,
    RelayBench,
    Told,
    lost,
    relay_bench,
    streamed,
    told,
    worker,
)
from support.http.chat_client import JSON, Stream, becomes, begin, chat
from support.http.http_node import Node, node
from support.http.raw_http import RawClient, ask, connect

EVENT = b'data: {"model":"m","choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
FINISH = b'data: {"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = FINISH + b"data: [DONE]\n\n"
ANSWER: dict[str, Any] = {"choices": [{"index": 0, "message": {"content": "a"}}]}
Says = Callable[[HttpCall], Told | TransportError]


@asynccontextmanager
async def relaying(
    folder: Path, says: Says, *, engines: dict[str, FakeEngine] | None = None, **options: Any
) -> AsyncIterator[tuple[Node, RelayBench, FakeTransport]]:
    """Run an HTTP surface before one HTTP worker that serves `m`."""
    one = worker(says)
    async with relay_bench(folder, engines=engines, w=one) as b, node(**options) as surface:
        surface.parts.relays, surface.parts.embedder = b.relays, b.embedder
        yield surface, b, one


async def to_end(stream: Stream) -> None:
    while await stream.more():
        pass


async def read_all(client: RawClient) -> None:
    while await client.chunk():
        pass


async def test_a_whole_answer_has_the_workers_status_headers_and_body(tmp_path: Path) -> None:
    headers = (("content-type", "application/json; x=y"), ("x-theirs", "1"), ("set-cookie", "a"))
    raw = json.dumps(ANSWER).encode()
    made = Told((raw[:9], raw[9:]), 201, headers)
    async with relaying(tmp_path, lambda call: made) as (surface, _, one):
        answer = await ask(surface.port, "POST", "/v1/chat/completions", chat("m"), JSON)
        assert (answer.status, answer.body) == (201, raw)
        assert answer.headers["content-type"] == "application/json; x=y"
        assert "x-theirs" not in answer.headers
        assert answer.headers["x-smg-attempts"] == "1"
        assert answer.headers["x-smg-routed-worker-id"].startswith("w-")
        assert "set-cookie" not in answer.headers
        line = json.loads(surface.access.lines[-1])
        assert (line["model"], line["worker"]) == ("m", answer.headers["x-smg-routed-worker-id"])
        assert len(one.calls) == 1


async def test_credentials_and_odd_headers_of_a_client_stay_here(tmp_path: Path) -> None:
    sent = {
        **JSON,
        "authorization": "Bearer mine",
        "cookie": "a=b",
        "x-data-parallel-rank": "3",
        "user-agent": "me/1",
        "x-forwarded-for": "10.0.0.1",
    }
    async with relaying(tmp_path, lambda call: told(ANSWER)) as (surface, _, one):
        await ask(surface.port, "POST", "/v1/completions", {"model": "m", "prompt": "x"}, sent)
        [call] = one.calls
        assert call.headers["user-agent"] == "me/1"
        for name in ("authorization", "cookie", "x-data-parallel-rank", "x-forwarded-for", "host"):
            assert name not in call.headers
        assert call.body == json.dumps({"model": "m", "prompt": "x"}).encode()


async def test_a_stream_passes_as_it_comes(tmp_path: Path) -> None:
    says = streamed(EVENT[:9], EVENT[9:], DONE)
    async with relaying(tmp_path, lambda call: says) as (surface, _, _):
        async with connect(surface.port) as client:
            stream = await begin(client, chat("m"))
            await to_end(stream)
        assert stream.raw == EVENT + DONE
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"


async def test_comments_keep_a_stream_alive_but_tear_no_event_apart(tmp_path: Path) -> None:
    says = streamed(EVENT[:9], 0.2, EVENT[9:], 0.2, DONE)
    options: dict[str, Any] = {"commit_after_s": 0.02, "keepalive_s": 0.02}
    async with relaying(tmp_path, lambda call: says, **options) as (surface, _, _):
        async with connect(surface.port) as client:
            stream = await begin(client, chat("m"))
            await to_end(stream)
        assert b": ping\n\n" in stream.raw
        assert stream.raw.replace(b": ping\n\n", b"") == EVENT + DONE
        assert EVENT in stream.raw


async def test_a_refusal_after_comments_is_an_event(tmp_path: Path) -> None:
    words = json.dumps({"error": {"message": "no", "code": "x"}}, indent=1).encode()

    async with relaying(tmp_path, lambda call: Told((0.15, words), 400), commit_after_s=0.02) as (
        surface,
        _,
        _,
    ):
        async with connect(surface.port) as client:
            stream = await begin(client, chat("m"))
            assert stream.status == 200
            await to_end(stream)
        event = stream.raw.replace(b": ping\n\n", b"")
        error = {"message": "no", "type": "invalid_request_error", "param": None, "code": "x"}
        assert json.loads(event.removeprefix(b"data: ")) == {"error": error}
        assert DONE not in stream.raw


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings"])
@pytest.mark.parametrize(
    "refusal",
    [
        {"error": {"message": "The input (9 tokens) is longer than the model's context length (8 tokens)."}},
        {"object": "error", "message": "maximum context length is 8. You passed 9 input tokens", "code": 400},
        {"detail": "prompt is too long: 9 tokens > 8 maximum"},
    ],
)  # fmt: skip
async def test_a_workers_word_for_a_prompt_that_is_too_long_becomes_one_that_clients_know(
    tmp_path: Path, path: str, refusal: dict[str, Any]
) -> None:
    async with relaying(tmp_path, lambda call: told(refusal, 400)) as (surface, _, _one):
        body = json.dumps({"model": "m", "messages": [], "prompt": "p", "input": "i"}).encode()
        answer = await ask(surface.port, "POST", f"/v1/{path}", body, JSON)
        assert answer.status == 400
        assert answer.headers["x-smg-error-code"] == "context_length_exceeded"
        error = json.loads(answer.body)["error"]
        assert error["code"] == "context_length_exceeded"
        assert error["message"].startswith(
            "prompt is too long: 9 tokens > 8 maximum. This model's maximum context length is 8 tokens"
        )


async def test_a_stream_that_breaks_ends_with_an_error_event(tmp_path: Path) -> None:
    async with relaying(tmp_path, lambda call: streamed(EVENT, EVENT[:9], lost())) as (
        surface,
        b,
        _,
    ):
        async with connect(surface.port) as client:
            stream = await begin(client, chat("m"))
            await to_end(stream)
        assert stream.raw.startswith(EVENT + b'data: {"error"')
        error = json.loads(stream.raw.rpartition(b"data: ")[2])["error"]
        assert error["code"] == "upstream_unavailable"
        assert b.outcomes[0].kind == "failed"


async def test_a_large_answer_that_breaks_breaks_the_connection(tmp_path: Path) -> None:
    says = Told((b"{" + b" " * 1_200_000, lost()))
    async with relaying(tmp_path, lambda call: says) as (surface, b, _):
        async with connect(surface.port) as client:
            await client.send("POST", "/v1/completions", b'{"model":"m"}', JSON)
            status, _ = await client.head()
            assert status == 200
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await read_all(client)
        assert b.outcomes[0].kind == "failed"


async def test_a_client_that_leaves_cuts_the_call(tmp_path: Path) -> None:
    async with relaying(tmp_path, lambda call: streamed(EVENT, 30.0)) as (surface, b, one):
        async with connect(surface.port) as client:
            stream = await begin(client, chat("m"))
            await stream.until_text()
            client.vanish()
            await becomes(lambda: one.open == 0, 5, "the call is cut")
        assert b.idle()


async def test_errors_before_a_byte_have_their_own_status(tmp_path: Path) -> None:
    async with relaying(tmp_path, lambda call: told({}, 500)) as (surface, _, _):
        for streaming in (False, True):
            answer = await ask(
                surface.port, "POST", "/v1/chat/completions", chat("m", stream=streaming), JSON
            )
            assert answer.status == 502
            assert answer.json()["error"]["type"] == "server_error"
            assert answer.headers["x-smg-error-code"] == "upstream_error"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"model": "m", "stream": "yes"}, "invalid_value"),
        ({"model": "m", "kv_transfer_params": {}}, "unsupported_parameter"),
        ({"model": 5}, "invalid_value"),
        ({"query": "q"}, "missing_required_parameter"),
        ({"model": "nobody"}, "model_not_found"),
    ],
)
async def test_what_is_wrong_is_said_before_anybody_is_called(
    tmp_path: Path, body: dict[str, Any], code: str
) -> None:
    async with relaying(tmp_path, lambda call: told({})) as (surface, _, one):
        answer = await ask(surface.port, "POST", "/v1/rerank", body, JSON)
        assert answer.json()["error"]["code"] == code
        assert not one.calls


async def test_embeddings_come_from_engines_where_no_http_worker_has_them(tmp_path: Path) -> None:
    engine = FakeEngine(model="tiny")
    engine.abilities = replace(engine.abilities, embeds=True)
    async with relaying(tmp_path, lambda call: Told(status=404), engines={"e": engine}) as (
        surface,
        b,
        one,
    ):
        path = "/v1/embeddings"
        for form, vector in (("base64", "AACgQAAAAD8="), ("float", [5.0, 0.5])):
            body = {"model": "tiny", "input": ["abcd"], "encoding_format": form, "user": "me"}
            answer = await ask(surface.port, "POST", path, body, JSON)
            told_ = answer.json()
            assert answer.status == 200, answer.body
            assert told_["data"] == [{"object": "embedding", "index": 0, "embedding": vector}]
            assert told_["usage"] == {"prompt_tokens": 5, "total_tokens": 5}
            assert answer.headers["x-smg-ignored-params"] == "user"
            assert answer.headers["x-smg-routed-worker-id"].startswith("w-")
        shorter = {"model": "tiny", "input": "abcd", "dimensions": 1}
        short = await ask(surface.port, "POST", path, shorter, JSON)
        assert short.json()["data"][0]["embedding"] == [1.0]
        packed = {**shorter, "encoding_format": "base64"}
        short = await ask(surface.port, "POST", path, packed, JSON)
        assert short.json()["data"][0]["embedding"] == "AACAPw=="
        refused = await ask(
            surface.port, "POST", path, {"model": "tiny", "input": "a", "dimensions": 4}, JSON
        )
        error = refused.json()["error"]
        assert (refused.status, error["code"], error["param"]) == (
            400,
            "invalid_value",
            "dimensions",
        )
        assert error["message"] == "the embeddings of this model have 2 dimensions, not 4"
        ids = await ask(surface.port, "POST", path, {"model": "tiny", "input": [[1, 2], [3]]}, JSON)
        assert len(ids.json()["data"]) == 2
        assert all(isinstance(request, EmbedRequest) for request in engine.embedded)
        # And a model that only HTTP workers serve, which lack the API.
        nobody = await ask(surface.port, "POST", path, {"model": "m", "input": "a"}, JSON)
        assert (nobody.status, nobody.json()["error"]["code"]) == (501, "not_implemented")
        assert len(one.calls) == 1
        assert b.idle()


async def test_a_generation_of_every_model_goes_the_way_its_workers_speak(tmp_path: Path) -> None:
    async with relaying(tmp_path, lambda call: told({**ANSWER, "relayed": True})) as (
        surface,
        _,
        one,
    ):
        answer = await ask(surface.port, "POST", "/v1/chat/completions", chat("m"), JSON)
        assert answer.json() == {**ANSWER, "relayed": True}
        answer = await ask(surface.port, "POST", "/v1/chat/completions", chat("other"), JSON)
        assert "relayed" not in answer.json()
        assert len(one.calls) == 1


async def test_a_chat_that_asks_for_tools_of_this_side_is_read_here(tmp_path: Path) -> None:
    wants = {**JSON, "x-smg-mcp": "enabled"}
    async with relaying(tmp_path, lambda call: told(ANSWER)) as (surface, _, one):
        answer = await ask(surface.port, "POST", "/v1/chat/completions", chat("m"), wants)
        assert answer.json()["choices"][0]["message"]["content"] == "Hello world"
        assert not one.calls
        text = {"model": "m", "prompt": "x"}
        await ask(surface.port, "POST", "/v1/completions", text, wants)
        assert len(one.calls) == 1


async def test_a_switch_that_is_off_leaves_the_client_its_own_bytes(tmp_path: Path) -> None:
    off = {**JSON, "x-smg-mcp": "off"}
    async with relaying(tmp_path, lambda call: told({**ANSWER, "relayed": True})) as (
        surface,
        _,
        one,
    ):
        answer = await ask(surface.port, "POST", "/v1/chat/completions", chat("m"), off)
        assert answer.json() == {**ANSWER, "relayed": True}
        assert len(one.calls) == 1


THEIRS = (
    ("content-type", "application/json"),
    ("x-ratelimit-limit-requests", "7"),
    ("x-ratelimit-remaining-tokens", "1"),
    ("openai-organization", "org-theirs"),
    ("openai-version", "1999-01-01"),
    ("x-request-id", "theirs"),
    ("x-envoy-upstream-service-time", "5"),
    ("cf-ray", "1"),
    ("content-language", "en"),
)


@pytest.mark.parametrize("status", [200, 400])
async def test_headers_of_a_worker_stay_inside(tmp_path: Path, status: int) -> None:
    made = Told((json.dumps(ANSWER).encode(),), status, THEIRS)
    async with relaying(tmp_path, lambda call: made) as (surface, _, _):
        answer = await ask(surface.port, "POST", "/v1/chat/completions", chat("m"), JSON)
        assert answer.status == status
        shown = {name for name, value in THEIRS if answer.headers.get(name) == value}
        assert shown <= {"content-type", "content-language"}
        assert "cf-ray" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"])
@pytest.mark.parametrize(
    "body",
    [b'{"detail":"odd"}', b'{"object":"error","message":"odd","code":422}', b'{"error":"odd"}'],
)
async def test_every_form_of_refusal_is_the_one_of_the_clients_dialect(
    tmp_path: Path, path: str, body: bytes
) -> None:
    async with relaying(tmp_path, lambda call: Told((body,), 422)) as (surface, _, one):
        for streaming in (False, True):
            wish: dict[str, Any] = {
                "model": "m",
                "prompt": "x",
                "input": "x",
                "messages": [],
                "stream": streaming,
            }
            answer = await ask(surface.port, "POST", path, wish, JSON)
            error = {
                "message": "odd",
                "type": "invalid_request_error",
                "param": None,
                "code": "upstream_refused",
            }
            assert (answer.status, answer.json()) == (400, {"error": error})
            assert answer.headers["x-smg-error-code"] == "upstream_refused"
            line = json.loads(surface.access.lines[-1])
            assert (line["status"], line["error"]) == (400, "upstream_refused")
        assert len(one.calls) == 2


@pytest.mark.parametrize(
    ("answer", "told_"),
    [
        (told({"error": "it only embeds"}, 400), "ok"),
        (Told(status=404), "ok"),
        (told(ANSWER), "ok"),
        (told({}, 500), "the worker failed with status 500"),
        (told({}), "the worker's answer is an empty object"),
    ],
)
async def test_a_worker_that_refuses_to_generate_is_well(
    tmp_path: Path, answer: Told, told_: str
) -> None:
    async with relaying(tmp_path, lambda call: answer) as (surface, _, _):
        said = (await ask(surface.port, "GET", "/health_generate")).json()["models"]["m"]
        assert said.partition(";")[0] == told_
