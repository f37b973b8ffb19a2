"""Models as tools of the node's own MCP server: seen, called, limited, and cancelled, by scripted generations."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Delta, Event, Fail
from smg_node.core.generation.request import ChatPrompt
from support.history.fake_runs import FakeRun, Script
from support.http.http_node import Node, ending, for_ever, hello, node, opening
from support.http.raw_http import ask as raw_ask
from support.http.raw_http import connect, until
from support.mcp.client_calls import events, new, old
from support.mcp.faulty_server import served
from support.mcp.pooled_tools import spec, tools_of
from support.mcp.serving_node import keys_of, text

EXPOSED = {"m": "Knows plants.", "org/big-model": "", "away": ""}


@asynccontextmanager
async def exposing(script: Script = hello, **changes: Any) -> AsyncIterator[Node]:
    async with node(script, **changes) as at:
        at.parts.exposed_models = lambda: EXPOSED
        yield at


def fails(error: SmgError) -> Script:
    async def script(_run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Fail(error)]

    return script


async def test_models_that_are_exposed_and_served_are_tools() -> None:
    async with exposing() as at:
        listed = (await new(at.port, "tools/list")).json()["result"]["tools"]
        plain = (await old(at.port, "tools/list", path="/mcp/models")).json()["result"]["tools"]
        at.parts.exposed_models = dict
        none = (await old(at.port, "tools/list")).json()["result"]["tools"]
        gone = await old(at.port, "tools/list", path="/mcp/models")
    assert [one["name"] for one in listed] == ["models__m", "models__org_big-model"]
    assert [one["name"] for one in plain] == ["m", "org_big-model"]
    assert [one["title"] for one in plain] == ["m", "org/big-model"]
    assert plain[0]["description"] == "Knows plants."
    assert (none, gone.status) == ([], 404)


@pytest.mark.parametrize("ask", [new, old], ids=["new", "old"])
async def test_a_call_is_a_generation_of_its_caller(ask: Any) -> None:
    async with exposing() as at:
        (key,) = await keys_of(at, "acme")
        params = {
            "name": "models__m",
            "arguments": {"prompt": "Why?", "system": "Be brief.", "max_tokens": 9},
        }
        response = await ask(at.port, "tools/call", params, headers=key)
        (run,) = at.generations.runs
    result = response.json()["result"]
    assert result["content"] == [{"type": "text", "text": "Hello world"}]
    assert result["_meta"]["smg-node/usage"] == {"prompt_tokens": 3, "completion_tokens": 2}
    (prompt,) = run.request.prompts
    assert isinstance(prompt, ChatPrompt)
    assert [(turn.role, turn.content) for turn in prompt.turns] == [
        ("system", "Be brief."),
        ("user", "Why?"),
    ]
    assert (run.request.model, run.request.sampling.max_tokens) == ("m", 9)
    assert (run.context.tenant, run.context.key_id != "") == ("acme", True)
    assert not run.request.stream


async def test_a_model_of_one_server_is_called_by_its_own_name() -> None:
    async with exposing() as at:
        params = {"name": "org_big-model", "arguments": {"prompt": "Why?"}}
        response = await new(at.port, "tools/call", params, path="/mcp/models")
        assert text(response) == "Hello world"
        assert at.generations.runs[0].request.model == "org/big-model"


async def test_a_model_that_the_caller_cannot_have_is_as_unknown_as_any_name() -> None:
    error = SmgError(ErrorKind.NOT_FOUND, "no model 'm' for this key", code="model_not_found")
    async with exposing(fails(error)) as at:
        for ask in (new, old):
            answers = []
            for name in ("models__m", "models__nothing", "models__away"):
                params = {"name": name, "arguments": {"prompt": "x"}}
                response = await ask(at.port, "tools/call", params)
                answers.append((response.status, response.body.replace(name.encode(), b"NAME")))
            assert len(set(answers)) == 1
            assert b"unknown tool: NAME" in answers[0][1]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            SmgError(ErrorKind.RATE_LIMITED, "100 a day are used up", retry_after_s=7),
            "not run: 100 a day are used up; again in 7 s",
        ),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "it broke"), "tool failed: it broke"),
        (
            SmgError(ErrorKind.INVALID_REQUEST, "it is too long", where="messages"),
            "not run: messages: it is too long",
        ),
    ],
)
async def test_a_generation_that_fails_is_a_result_that_says_so(error: SmgError, said: str) -> None:
    async with exposing(fails(error)) as at:
        params = {"name": "models__m", "arguments": {"prompt": "x"}}
        response = await new(at.port, "tools/call", params)
        told = await new(at.port, "tools/call", params, token="p")
    assert (response.status, response.json()["result"]["isError"]) == (200, True)
    assert text(response) == said
    assert text(told) == said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "not run: give a prompt or messages, one of the two"),
        ({"prompt": "x", "logprobs": True}, "not run: 'logprobs' is none of prompt, "),
        ({"prompt": "x", "max_tokens": 0}, "not run: max_tokens: "),
        ({"prompt": "x", "temperature": "hot"}, "not run: temperature: "),
        ({"messages": [{"role": "nobody", "content": "x"}]}, "not run: messages[0].role: "),
        ({"messages": "x"}, "not run: messages: "),
    ],
)
async def test_arguments_that_cannot_be_are_named(arguments: dict[str, Any], said: str) -> None:
    async with exposing() as at:
        response = await new(at.port, "tools/call", {"name": "models__m", "arguments": arguments})
        assert not at.generations.runs
    assert response.json()["result"]["isError"] is True
    assert text(response).startswith(said)
    assert text(response).count(said.removeprefix("not run: ")) == 1


@pytest.mark.parametrize("ask", [new, old], ids=["new", "old"])
async def test_progress_counts_tokens_for_who_wants_it(ask: Any) -> None:
    async def slowly(_run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield opening()
        for _ in range(3):
            yield [Delta(0, 0, "ab", 2)]
            await asyncio.sleep(0.3)
        yield ending("ababab")

    async with exposing(slowly) as at:
        params = {"name": "models__m", "arguments": {"prompt": "x", "max_tokens": 50}}
        wanted = {**params, "_meta": {"progressToken": "p"}}
        told = await (
            new(at.port, "tools/call", params, token="p")
            if ask is new
            else old(at.port, "tools/call", wanted)
        )
        assert at.generations.runs[0].request.stream
    *steps, answer = events(told)
    assert [step["params"] for step in steps] == [
        {"progressToken": "p", "progress": done, "total": 50.0, "message": f"tokens so far: {done}"}
        for done in (2, 4, 6)
    ]
    assert answer["result"]["content"][0]["text"] == "ababab"


@pytest.mark.usefixtures("either_server")
@pytest.mark.parametrize("token", ["", "p"])
async def test_losing_the_client_ends_the_generation(token: str) -> None:
    async with exposing(for_ever) as at:
        params: dict[str, Any] = {"name": "models__m", "arguments": {"prompt": "x"}}
        if token:
            params["_meta"] = {"progressToken": token}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        async with connect(at.port) as client:
            headers = {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
            }
            await client.send("POST", "/mcp", json.dumps(message).encode(), headers)
            await until(at.generations.started.is_set)
            client.vanish()
        (run,) = at.generations.runs
        await until(run.closed.is_set)
        assert not run.finished


async def test_a_server_called_models_goes_before_models() -> None:
    async with (
        served() as server,
        tools_of(spec("models", server.url)) as tools,
        exposing() as at,
    ):
        at.parts.offered_tools = lambda: tools
        at.parts.exposed_models = lambda: {"m": "", "org/big-model": ""}
        all_ = (await old(at.port, "tools/list")).json()["result"]["tools"]
        one = (await old(at.port, "tools/list", path="/mcp/models")).json()["result"]["tools"]
        called = await old(
            at.port, "tools/call", {"name": "models__m", "arguments": {"prompt": "x"}}
        )
    names = [tool["name"] for tool in all_]
    assert names == sorted(names)
    assert {"models__m", "models__echo"} <= set(names)
    assert "m" not in {tool["name"] for tool in one}
    assert "echo" in {tool["name"] for tool in one}
    assert text(called) == "Hello world"


async def test_a_model_outside_of_what_a_key_is_for_is_no_tool_for_it() -> None:
    async with exposing() as at:
        wish = {"tenant": "acme", "models": ["org/*"]}
        made = await raw_ask(at.port, "POST", "/v1/cluster/keys", wish)
        key = {"authorization": f"Bearer {made.json()['key']}"}
        listed = await new(at.port, "tools/list", headers=key)
        names = [one["name"] for one in listed.json()["result"]["tools"]]
        assert names == ["models__org_big-model"]
        answers = []
        for name in ("models__m", "models__nothing"):
            params = {"name": name, "arguments": {"prompt": "x"}}
            response = await new(at.port, "tools/call", params, headers=key)
            answers.append((response.status, response.body.replace(name.encode(), b"NAME")))
        assert len(set(answers)) == 1
        params = {"name": "models__org_big-model", "arguments": {"prompt": "x"}}
        assert text(await new(at.port, "tools/call", params, headers=key)) == "Hello world"
