"""generateContent over HTTP: paths, both forms of a stream, counting, and every error in Google's envelope."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Delta, Event, Fail
from smg_node.dialects.gemini.presenter import KEEPALIVE
from support.http.http_node import FakeRun, ending, hello, node, opening
from support.http.raw_http import Response, ask, connect

BODY = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
PREFIXES = ("/v1", "/v1beta", "/v1alpha")
GENERATE = "/v1beta/models/m:generateContent"
STREAM = "/v1beta/models/m:streamGenerateContent"


def parts_of(frames: Sequence[dict[str, Any]]) -> str:
    return "".join(
        part["text"] for frame in frames for part in frame["candidates"][0]["content"]["parts"]
    )


def told(response: Response) -> tuple[int, int, str]:
    """Return the status of an error, and the code and the word in it."""
    error = response.error()
    assert set(error) <= {"code", "message", "status", "details"}
    return response.status, error["code"], error["status"]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("model", ["m", "qwen/qwen3-8b", "base:adapter", "a%2Fb"])
async def test_a_model_may_have_slashes_and_colons(prefix: str, model: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", f"{prefix}/models/{model}:generateContent", BODY)
        (run,) = served.generations.runs
    assert answer.status == 200
    assert answer.json()["candidates"][0]["content"]["parts"] == [{"text": "Hello world"}]
    assert (run.request.model, run.dialect) == (model.replace("%2F", "/"), "gemini")


@pytest.mark.parametrize("path", [GENERATE, STREAM, f"{STREAM}?alt=sse"])
async def test_answers_have_no_header_of_another_vendor(path: str) -> None:
    async with node() as served:
        answers = [await ask(served.port, "POST", path, BODY) for _ in range(2)]
    for answer in answers:
        assert answer.status == 200
        assert answer.headers["x-smg-node"] == "node-a"
        assert [name for name in answer.headers if name.startswith("openai-")] == []


async def test_a_stream_of_events_is_nothing_but_data() -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", f"{STREAM}?alt=sse", BODY)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    frames = answer.body.split(b"\r\n\r\n")
    assert frames.pop() == b""
    assert all(frame.startswith(b"data: {") for frame in frames)
    assert parts_of([json.loads(frame[6:]) for frame in frames]) == "Hello world"


@pytest.mark.parametrize("query", ["", "?alt=json"])
async def test_without_alt_a_stream_is_an_array(query: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", f"{STREAM}{query}", BODY)
    assert answer.headers["content-type"] == "application/json"
    assert parts_of(answer.json()) == "Hello world"


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent", "countTokens"])
async def test_another_form_than_events_and_json_is_refused(method: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", f"/v1beta/models/m:{method}?alt=proto", BODY)
    assert told(answer) == (400, 400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(("query", "keepalive"), [("?alt=sse", KEEPALIVE), ("", b"\n")])
async def test_a_quiet_stream_gets_what_its_clients_skip(query: str, keepalive: bytes) -> None:
    go = asyncio.Event()

    async def late(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go.wait()
        async for batch in hello(run):
            yield batch

    async with (
        node(late, commit_after_s=0.04, keepalive_s=0.04) as served,
        connect(served.port) as client,
    ):
        await client.send("POST", f"{STREAM}{query}", json.dumps(BODY).encode())
        await client.head()
        assert await client.chunk() == keepalive
        assert await client.chunk() == keepalive
        go.set()
        raw = keepalive
        while chunk := await client.chunk():
            raw += chunk
    if query:
        frames = [json.loads(frame[6:]) for frame in raw.split(b"\r\n\r\n")[:-1]]
    else:
        frames = json.loads(raw)
    assert parts_of(frames) == "Hello world"


@pytest.mark.parametrize("query", ["?alt=sse", ""])
async def test_the_end_may_come_in_a_wake_up_of_its_own(query: str) -> None:
    async def stepwise(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        block, finish, usage, end = ending("")
        for event in (*opening(), block, finish, usage, end):
            yield [event]
            await asyncio.sleep(0)

    async with node(stepwise) as served:
        answer = await ask(served.port, "POST", f"{STREAM}{query}", BODY)
    frames = answer.json() if not query else [json.loads(answer.body.strip()[6:])]
    (frame,) = frames
    assert frame["candidates"][0]["finishReason"] == "STOP"
    assert frame["usageMetadata"]["totalTokenCount"] == 5


async def test_a_failure_in_a_stream_is_an_error_in_it() -> None:
    async def broken(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "x", 1)]
        yield [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died"))]

    async with node(broken) as served:
        answer = await ask(served.port, "POST", f"{STREAM}?alt=sse", BODY)
        array = await ask(served.port, "POST", STREAM, BODY)
    error = {"error": {"code": 502, "message": "the engine died", "status": "UNAVAILABLE"}}
    *_, last, nothing = answer.body.split(b"\r\n\r\n")
    assert (json.loads(last.removeprefix(b"data: ")), nothing) == (error, b"")
    assert array.json()[-1] == error


async def test_a_failure_before_an_array_has_one_content_type() -> None:
    async def failing(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died"))]

    async with node(failing) as served, connect(served.port) as client:
        await client.send("POST", STREAM, json.dumps(BODY).encode())
        head = await client.reader.readuntil(b"\r\n\r\n")
    assert head.lower().count(b"content-type:") == 1


# ── Counting ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("body", [BODY, {"generateContentRequest": {"model": "models/m", **BODY}}])
async def test_tokens_are_counted_without_generating(body: dict[str, Any]) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", "/v1/models/m:countTokens", body)
        assert not served.generations.runs
    tokens = len("chat")
    assert answer.json() == {
        "totalTokens": tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}],
    }


async def test_what_counts_for_nothing_is_named_there_too() -> None:
    async with node() as served:
        answer = await ask(
            served.port, "POST", "/v1/models/m:countTokens", {**BODY, "labels": {"a": "b"}}
        )
    assert answer.headers["x-smg-ignored-params"] == "labels"


# ── Errors ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "name", ["m", "m:", "m:embedContent", "m:generatecontent", "generateContent"]
)
async def test_a_method_that_nobody_knows_is_not_found(prefix: str, name: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", f"{prefix}/models/{name}", BODY)
    assert told(answer) == (404, 404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent", "countTokens"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "contents"),
        ({"contents": 1}, "contents"),
        ({"contents": [{"role": "user", "parts": [{"text": 1}]}]}, "contents[0].parts[0].text"),
    ],
)
async def test_a_wrong_body_is_told_with_its_place(
    method: str, body: dict[str, Any], field: str
) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", f"/v1/models/m:{method}?alt=sse", body)
    assert told(answer) == (400, 400, "INVALID_ARGUMENT")
    (details,) = answer.error()["details"]
    assert details["fieldViolations"][0]["field"] == field


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"7", b'{"contents": NaN}', b"\xff"])
async def test_what_is_no_object_is_refused(raw: bytes) -> None:
    async with node() as served:
        answer = await ask(served.port, "POST", GENERATE, raw)
    assert told(answer) == (400, 400, "INVALID_ARGUMENT")


async def test_errors_around_the_route_are_googles_too() -> None:
    async with node(data_access="closed") as served:
        unknown = await ask(served.port, "POST", GENERATE, BODY)
    async with node(body_max_bytes=64) as served:
        large = await ask(served.port, "POST", GENERATE, b"x" * 65)
    async with node() as served:
        kind = await ask(served.port, "POST", GENERATE, b"x", {"content-type": "text/plain"})
    assert told(unknown) == (401, 401, "UNAUTHENTICATED")
    assert told(large) == (413, 413, "INVALID_ARGUMENT")
    assert told(kind) == (415, 415, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SmgError(ErrorKind.RATE_LIMITED, "slow", retry_after_s=2.5), (429, 429, "RESOURCE_EXHAUSTED")),
        (SmgError(ErrorKind.OVERLOADED, "full", retry_after_s=2.5), (503, 503, "UNAVAILABLE")),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "cannot", status=501), (400, 400, "INVALID_ARGUMENT")),
        (SmgError(ErrorKind.UPSTREAM_TIMEOUT, "late"), (504, 504, "DEADLINE_EXCEEDED")),
        (RuntimeError("secret"), (500, 500, "INTERNAL")),
    ],
)  # fmt: skip
async def test_a_generation_that_fails_is_told_in_googles_words(
    error: Exception, expected: tuple[int, int, str]
) -> None:
    async def failing(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        if isinstance(error, SmgError):
            yield [Fail(error)]
            return
        raise error
        yield ()

    async with node(failing) as served:
        for path in (GENERATE, f"{STREAM}?alt=sse", STREAM):
            answer = await ask(served.port, "POST", path, BODY)
            assert told(answer) == expected
            assert b"secret" not in answer.body
            if expected[0] in (429, 503):
                assert answer.headers["retry-after-ms"] == "2500"
                assert answer.error()["details"][0]["retryDelay"] == "2.5s"


@pytest.mark.parametrize(
    ("headers", "stream_s", "whole_s"),
    [
        ({}, 60.0, 60.0),
        ({"x-server-timeout": "5"}, 5.0, 5.0),
        ({"x-server-timeout": "600"}, 60.0, 60.0),
        ({"x-server-timeout": "soon"}, 60.0, 60.0),
        ({"x-server-timeout": "-1"}, 60.0, 60.0),
        ({"x-server-timeout": "nan"}, 60.0, 60.0),
        ({"x-server-timeout": "9", "x-smg-timeout-ms": "4000"}, 4.0, 4.0),
    ],
)
async def test_the_time_a_client_gives_the_server_bounds_every_answer(
    headers: Mapping[str, str], stream_s: float, whole_s: float
) -> None:
    deadlines: list[float] = []

    async def timed(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        deadlines.append(run.context.deadline_s - run.context.received_s)
        async for batch in hello(run):
            yield batch

    async with node(timed, request_s=60.0) as served:
        await ask(served.port, "POST", f"{STREAM}?alt=sse", BODY, headers)
        await ask(served.port, "POST", GENERATE, BODY, headers)
    assert deadlines == pytest.approx([stream_s, whole_s])
