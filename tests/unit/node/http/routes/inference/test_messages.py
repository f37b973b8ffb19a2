"""`POST /v1/messages` over HTTP: the official client as judge of answers, streams and every kind of error."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.request import Prompt
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from smg_node.http.middleware.inflight import draining
from smg_node.http.ports.tokens import Tokenized
from support.http.fake_tokens import FakeTokens
from support.http.http_node import FakeRun, Node, hello, node, opening
from support.http.raw_http import Response, ask, connect
from support.rights.fake_rights import LimitWorld, door_of, limit, whole

PATH = "/v1/messages"
WISH: dict[str, Any] = {
    "model": "m",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "Hi"}],
}


def serving(served: Node) -> None:
    """Let the node know this dialect; what it serves by itself stays."""
    dialect = MessagesDialect(ReaderOptions(), ThoughtSeals(PlainVault()), time.monotonic)
    served.parts.dialects = {**served.parts.dialects, "messages": dialect}


def client(served: Node, **more: Any) -> AsyncAnthropic:
    return AsyncAnthropic(
        api_key="none",
        base_url=f"http://127.0.0.1:{served.port}",
        _strict_response_validation=True,
        **{"max_retries": 0, **more},
    )


def failing(error: SmgError, *before: Event) -> Any:
    async def fail(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        if before:
            yield list(before)
        yield [Fail(error)]

    return fail


@pytest.mark.parametrize("routing", [True, False])
@pytest.mark.parametrize("stream", [False, True])
async def test_answers_have_no_header_of_another_vendor(stream: bool, routing: bool) -> None:
    async with node(hello, expose_routing_headers=routing) as served:
        serving(served)
        # The head of the second answer is a prepared one.
        answers = [
            await ask(served.port, "POST", PATH, {**WISH, "stream": stream}) for _ in range(2)
        ]
    for answer in answers:
        assert answer.status == 200
        assert answer.headers["request-id"].startswith("req_")
        assert answer.headers.get("x-smg-attempts") == ("1" if routing else None)
        assert [name for name in answer.headers if name.startswith("openai-")] == []


async def test_the_official_client_reads_answers_and_streams() -> None:
    async with node(hello) as served:
        serving(served)
        async with client(served) as one:
            whole = await one.messages.create(**WISH)
            async with one.messages.stream(**WISH) as events:
                put_together = await events.get_final_message()
            beta = await one.beta.messages.create(**WISH)
    for message in (whole, put_together, beta):
        assert message.content[0].to_dict() == {"type": "text", "text": "Hello world"} | (
            {"parsed_output": None} if "parsed_output" in message.content[0].to_dict() else {}
        )
        assert (message.model, message.stop_reason) == ("m", "end_turn")
        assert (message.usage.input_tokens, message.usage.output_tokens) == (3, 2)
    assert whole._request_id is not None
    assert whole._request_id.startswith("req_")


async def test_a_stream_is_of_events_and_ends_without_done() -> None:
    async with node(hello) as served:
        serving(served)
        response = await ask(served.port, "POST", PATH + "?beta=true", {**WISH, "stream": True})
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["request-id"] == response.headers["x-request-id"]
    assert response.body.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    assert b"[DONE]" not in response.body


async def test_a_quiet_stream_is_kept_alive_with_pings() -> None:
    go = asyncio.Event()

    async def late(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go.wait()
        async for batch in hello(run):
            yield batch

    async with (
        node(late, commit_after_s=0.04, keepalive_s=0.04) as served,
        connect(served.port) as raw,
    ):
        serving(served)
        await raw.send("POST", PATH, json.dumps({**WISH, "stream": True}).encode())
        assert (await raw.head())[0] == 200
        assert await raw.chunk() == b'event: ping\ndata: {"type":"ping"}\n\n'
        go.set()


def envelope(response: Response) -> tuple[int, str, str]:
    """Return status, type and message of an error in the envelope of this API, with the id of its request."""
    body = response.json()
    assert body["type"] == "error"
    assert body["request_id"] == response.headers["request-id"]
    assert set(body["error"]) <= {"type", "message", "details"}
    return response.status, body["error"]["type"], body["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "kind", "message", "retried"),
    [
        (
            invalid("messages[2].content[0].text: must be a string", "messages[2].content[0].text"),
            400,
            "invalid_request_error",
            "messages.2.content.0.text: must be a string",
            None,
        ),
        (
            prompt_too_long(9_000, 8_000, "messages"),
            400,
            "invalid_request_error",
            "prompt is too long: 9000 tokens > 8000 maximum",
            None,
        ),
        (
            SmgError(
                ErrorKind.NOT_FOUND, "there is no model 'm'", where="model", code="model_not_found"
            ),
            404,
            "not_found_error",
            "model: there is no model 'm'",
            None,
        ),
        (
            SmgError(ErrorKind.RATE_LIMITED, "too many", retry_after_s=2.5),
            429,
            "rate_limit_error",
            "too many",
            ("3", "2500", "true"),
        ),
        (
            SmgError(ErrorKind.INTERNAL, "secret"),
            500,
            "api_error",
            "The server had an error while processing the request.",
            None,
        ),
        (
            SmgError(
                ErrorKind.OVERLOADED, "all workers are full", code="overloaded", retry_after_s=4
            ),
            529,
            "overloaded_error",
            "all workers are full",
            ("4", "4000", "true"),
        ),
        (
            SmgError(
                ErrorKind.OVERLOADED, "no worker", code="no_worker_available", retry_after_s=1
            ),
            503,
            "overloaded_error",
            "no worker",
            ("1", "1000", "true"),
        ),
        (
            draining(leaving=True),
            503,
            "overloaded_error",
            draining(leaving=True).message,
            ("1", "1000", "true"),
        ),
        (SmgError(ErrorKind.UPSTREAM_TIMEOUT, "too slow"), 504, "timeout_error", "too slow", None),
    ],
)
async def test_an_error_has_status_type_and_words_of_this_api(
    stream: bool,
    error: SmgError,
    status: int,
    kind: str,
    message: str,
    retried: tuple[str, str, str] | None,
) -> None:
    async with node(failing(error)) as served:
        serving(served)
        response = await ask(served.port, "POST", PATH, {**WISH, "stream": stream})
    assert envelope(response) == (status, kind, message)
    names = ("retry-after", "retry-after-ms", "x-should-retry")
    expected = dict(zip(names, retried, strict=True)) if retried else {}
    assert {name: response.headers[name] for name in names if name in response.headers} == expected


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status", "kind"),
    [
        ("GET", PATH, b"", {}, 405, "invalid_request_error"),
        ("POST", PATH + "/strange", b"{}", {}, 404, "not_found_error"),
        ("POST", PATH, b"{", {}, 400, "invalid_request_error"),
        ("POST", PATH, b"[]", {}, 400, "invalid_request_error"),
        ("POST", PATH, b"{}", {"content-type": "text/plain"}, 415, "invalid_request_error"),
        ("POST", PATH, b" " * 5_000, {}, 413, "invalid_request_error"),
        ("POST", PATH, b"{}", {"authorization": "Bearer smg-wrong"}, 401, "authentication_error"),
    ],
)
async def test_whoever_refuses_does_so_in_this_envelope(
    method: str, path: str, body: bytes, headers: Mapping[str, str], status: int, kind: str
) -> None:
    async with node(hello, body_max_bytes=4_000) as served:
        serving(served)
        if status == 401:
            admin = {"tenant": "t", "role": "admin", "name": "a"}
            assert (await ask(served.port, "POST", "/v1/cluster/keys", admin)).status == 201
        async with connect(served.port) as raw:
            await raw.send(method, path, body, {"content-type": "application/json", **headers})
            response = await raw.response()
    assert envelope(response)[:2] == (status, kind)


async def test_a_thread_is_refused_with_the_code_that_the_client_knows() -> None:
    async with node(hello) as served:
        serving(served)
        async with client(served) as one:
            with pytest.raises(anthropic.BadRequestError) as found:
                await one.messages.create(**WISH, extra_body={"thread": {"type": "create"}})
    assert type(found.value).__name__ == "ThreadUnsupportedRequestError"
    assert found.value.request_id is not None
    assert found.value.request_id.startswith("req_")


async def limited(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    world = LimitWorld()
    world.add(limit(), 5, 10)
    run.ticket = door_of(world).ticket(run.context, "m")
    assert run.ticket is not None
    await run.ticket.enter()
    async for events in hello(run):
        yield events


@pytest.mark.parametrize("stream", [False, True])
async def test_limits_are_told_in_the_headers_of_this_api(stream: bool) -> None:
    async with node(limited) as served:
        serving(served)
        response = await ask(served.port, "POST", PATH, {**WISH, "stream": stream})
    headers = response.headers
    assert headers["anthropic-ratelimit-requests-limit"] == "10"
    assert headers["anthropic-ratelimit-requests-remaining"] == "4"
    reset = datetime.fromisoformat(headers["anthropic-ratelimit-requests-reset"])
    assert reset.tzinfo is not None
    assert not any(name.startswith("x-ratelimit") for name in headers)


async def test_counting_is_charged_as_a_request_without_tokens() -> None:
    world = LimitWorld()
    requests = world.add(limit(), 2, 10)
    tokens = world.add(limit("tokens"), 100)
    async with node() as served:
        serving(served)
        assert isinstance(served.parts.tokens, FakeTokens)
        served.parts.tokens.door = door_of(world)
        counted = [await ask(served.port, "POST", f"{PATH}/count_tokens", WISH) for _ in range(2)]
        refused = await ask(served.port, "POST", f"{PATH}/count_tokens", WISH)
        again = await ask(served.port, "POST", f"{PATH}/count_tokens", {**WISH, "messages": 1})
    assert [answer.json() for answer in counted] == [{"input_tokens": 4}] * 2
    left = [answer.headers["anthropic-ratelimit-requests-remaining"] for answer in counted]
    assert left == ["1", "0"]
    assert (refused.status, refused.json()["error"]["type"]) == (429, "rate_limit_error")
    assert int(refused.headers["retry-after"]) > 0
    assert again.status == 400
    assert (whole(requests), whole(tokens)) == ((0, 2), (100, 0))


async def test_what_cannot_be_counted_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def break_(tokens: FakeTokens, model: str, prompt: Prompt) -> Tokenized:
        raise invalid("the template refuses it")

    world = LimitWorld()
    requests = world.add(limit(), 2)
    monkeypatch.setattr(FakeTokens, "tokenize", break_)
    async with node() as served:
        serving(served)
        assert isinstance(served.parts.tokens, FakeTokens)
        served.parts.tokens.door = door_of(world)
        answer = await ask(served.port, "POST", f"{PATH}/count_tokens", WISH)
    assert answer.status == 400
    assert whole(requests) == (2, 0)


async def test_a_failure_in_a_stream_is_its_last_event() -> None:
    error = SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")
    async with node(failing(error, *opening())) as served:
        serving(served)
        async with client(served) as one:
            with pytest.raises(anthropic.APIStatusError, match="the engine died") as found:
                async with one.messages.stream(**WISH) as events:
                    await events.get_final_message()
    assert found.value.status_code == 200


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (SmgError(ErrorKind.RATE_LIMITED, "too many", retry_after_s=0.08), 3),
        (SmgError(ErrorKind.OVERLOADED, "full", code="overloaded", retry_after_s=0.08), 3),
        (
            SmgError(
                ErrorKind.OVERLOADED, "nobody", code="no_worker_available", retry_after_s=0.08
            ),
            3,
        ),
        (invalid("no", "messages"), 1),
    ],
)
async def test_the_client_tries_again_after_the_time_it_was_told(
    error: SmgError, tries: int
) -> None:
    began: list[float] = []

    async def refuse(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        began.append(time.monotonic())
        yield [Fail(error)]

    async with node(refuse) as served:
        serving(served)
        async with client(served, max_retries=2) as one:
            with pytest.raises(anthropic.APIStatusError) as found:
                await one.messages.create(**WISH)
    assert len(began) == tries
    pauses = [later - before for before, later in pairwise(began)]
    assert all(pause >= 0.08 for pause in pauses)
    assert found.value.request_id is not None
    assert found.value.request_id.startswith("req_")
