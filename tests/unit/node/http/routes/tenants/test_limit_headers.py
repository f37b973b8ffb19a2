"""What clients of the HTTP surface are told of limits: on every answer that one applies to, and on a refusal."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from smg_node.admission.limit_errors import LimitedError
from smg_node.core.generation.events import Event, Fail
from smg_node.core.request_context import RequestContext
from smg_node.http.middleware.error_replies import error_reply, family_of
from smg_node.http.route_table import Route
from support.http.http_node import FakeRun, chat, hello, node
from support.http.raw_http import ask
from support.rights.fake_rights import FakeMatch, LimitWorld, door_of, limit

TOLD = {
    "x-ratelimit-limit-requests": "10",
    "x-ratelimit-remaining-requests": "4",
    "x-ratelimit-reset-requests": "40s",
    "x-smg-limit": "tenant=acme#requests/minute",
    "x-smg-limit-state": "exact",
}


async def refused(match: FakeMatch) -> LimitedError:
    world = LimitWorld()
    world.add(match, 0, 10)
    ticket = door_of(world).ticket(RequestContext("r", 0.0, 60.0), "m")
    assert ticket is not None
    with pytest.raises(LimitedError) as caught:
        await ticket.enter()
    return caught.value


async def limited(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    world = LimitWorld()
    world.add(limit(), 5, 10)
    run.ticket = door_of(world).ticket(run.context, "m")
    assert run.ticket is not None
    await run.ticket.enter()
    async for events in hello(run):
        yield events


@pytest.mark.parametrize("stream", [False, True])
async def test_every_answer_tells_what_is_left(stream: bool) -> None:
    async with node(limited) as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat(stream))
    assert response.status == 200
    assert {name: response.headers[name] for name in TOLD} == TOLD


async def test_an_answer_without_limits_tells_of_none() -> None:
    async with node() as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat())
    assert not any(name.startswith(("x-ratelimit", "x-smg-limit")) for name in response.headers)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_says_which_limit_and_when_there_is_more(stream: bool) -> None:
    error = await refused(limit())

    async def refuse(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Fail(error)]

    async with node(refuse) as served:
        response = await ask(served.port, "POST", "/v1/chat/completions", chat(stream))
    assert response.status == 429
    assert response.error() == {
        "message": "the limit of tenant=acme is used up: 10 requests per minute;"
        " there is more in 40s",
        "type": "rate_limit_error",
        "param": "requests/minute",
        "code": "rate_limit_exceeded",
    }
    headers = response.headers
    assert {name: headers[name] for name in TOLD} == {
        **TOLD,
        "x-ratelimit-remaining-requests": "0",
    }
    assert 40 <= int(headers["retry-after"]) <= 41
    assert 40_000 <= int(headers["retry-after-ms"]) <= 41_000
    assert headers["x-smg-limit-reason"] == "used_up"
    assert headers["x-should-retry"] == "true"


async def test_nobody_is_told_to_try_again_for_a_budget_of_a_day() -> None:
    error = await refused(limit(window_ms=86_400_000))
    headers = error_reply(error, route=None, dialects={}, request_id="r").headers
    assert headers["x-should-retry"] == "false"
    assert headers["retry-after"] == "60"
    assert headers["x-smg-error-code"] == "insufficient_quota"


async def test_each_dialect_has_its_own_names() -> None:
    made: Any = {
        "method": "POST",
        "path": "/v1/x",
        "permission": "generate",
        "summary": "",
        "action": "",
    }
    messages = Route(**made, dialect="messages")
    assert (family_of(messages), family_of(Route(**made, dialect="chat"))) == (
        "anthropic",
        "openai",
    )
    assert family_of(None) == "openai"
    error = await refused(limit())
    headers = error_reply(error, route=messages, dialects={}, request_id="r").headers
    assert headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert headers["retry-after"]
