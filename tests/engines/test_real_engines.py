"""A node before real vLLM and SGLang, by its own HTTP/2 client and by grpcio: the same answers, whole, at every turn.

Nobody here wrote these engines. Their model says one long text, so that every answer can be held against it.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from support.http import stream_client
from support.http.chat_client import (
    CHAT,
    begin,
    chat,
    content_of,
    error_of,
    finishes_of,
    port_of,
    say,
    text_of,
)
from support.http.raw_http import ask, connect
from support.processes.node import RunningNode, running_node
from support.processes.real_engines import CONTEXT, KINDS, STREAMS_MAX, RealEngine, running_engine

pytestmark = pytest.mark.integration

TRANSPORTS = ("h2", "grpcio")
TEXT = " ".join(f"{word}{n}" for n in range(360) for word in ("alpha", "beta", "gamma", "delta"))
"""Seconds of an engine's time."""
QUICK = (
    *("--workers.probe-interval-s", "0.5", "--workers.retry-s", "0.2"),
    *("--engine.stall-s", "60", "--engine.first-event-s", "120"),
)
MANY = 24
LOOSE = ("id", "created", "system_fingerprint")
"""What differs between any two answers."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One engine, and a node before it for each transport."""

    engine: RealEngine
    nodes: dict[str, RunningNode]

    def port(self, transport: str) -> int:
        return port_of(self.nodes[transport].url)


@pytest.fixture(scope="module", params=sorted(KINDS))
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    kind = KINDS[request.param]
    with ExitStack() as stack:
        engine = stack.enter_context(running_engine(kind, tmp_path_factory.mktemp(kind.name), TEXT))
        nodes = {
            transport: stack.enter_context(
                running_node(
                    tmp_path_factory.mktemp(transport),
                    workers=[f"grpc://{engine.address}?model=long"],
                    flags=(*QUICK, "--engine.transport", transport),
                )
            )
            for transport in TRANSPORTS
        }
        _prime(nodes[TRANSPORTS[0]])
        yield Bench(engine, nodes)


def _prime(node: RunningNode) -> None:
    """Have an engine compile what it compiles when first asked: vLLM does for log probabilities, for 20 s and more."""
    body = chat("long", max_tokens=2, logprobs=True, top_logprobs=2)
    status, answer = stream_client.ask(node, "POST", CHAT, body)
    assert status == 200, answer


def told(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in LOOSE}


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_answer_is_the_whole_text(bench: Bench, transport: str) -> None:
    answer = await say(bench.port(transport), chat("long", temperature=0))
    assert content_of(answer) == TEXT
    found = answer.json()
    assert found["choices"][0]["finish_reason"] == "stop"
    # An engine may count the token that ends the text.
    count = len(bench.engine.script.ids)
    assert found["usage"]["completion_tokens"] in (count, count + 1)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_stream_is_the_whole_text(bench: Bench, transport: str) -> None:
    body = chat("long", temperature=1, stream_options={"include_usage": True})
    async with connect(bench.port(transport)) as client:
        streamed = await (await begin(client, body)).to_end()
    assert streamed.done
    assert (text_of(streamed), finishes_of(streamed)) == (TEXT, ["stop"])
    assert len(streamed.chunks) > 20, "it came bit by bit"
    assert streamed.chunks[-1]["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": 7},
        {"stop": ["gamma3"]},
        {"n": 2, "max_tokens": 20},
        {"logprobs": True, "top_logprobs": 2, "max_tokens": 9},
        {"max_tokens": 1},
        {"seed": 5, "temperature": 0.7, "max_tokens": 30},
    ],
    ids=["max_tokens", "stop", "n", "logprobs", "one token", "seed"],
)
async def test_both_transports_tell_the_same(bench: Bench, fields: dict[str, Any]) -> None:
    body = chat("long", **{"temperature": 0, **fields})
    answers = [await say(bench.port(transport), body) for transport in TRANSPORTS]
    one, other = (answer.json() for answer in answers)
    assert [answer.status for answer in answers] == [200, 200], answers
    for choice in one["choices"]:
        assert TEXT.startswith(choice["message"]["content"])
        assert choice["finish_reason"] == ("stop" if "stop" in fields else "length")
    assert len(one["choices"]) == fields.get("n", 1)
    if "stop" in fields:
        assert content_of(answers[0]) == TEXT.partition("gamma3")[0]
    # How much of a prompt was cached depends on who came first.
    for found in (one, other):
        found["usage"].pop("prompt_tokens_details", None)
    assert told(one) == told(other)


async def test_a_mistake_of_the_client_is_told_alike(bench: Bench) -> None:
    body = chat("long", max_tokens=5)
    body["messages"][0]["content"] = "Well, well. " * CONTEXT
    answers = [await say(bench.port(transport), body) for transport in TRANSPORTS]
    assert [answer.status for answer in answers] == [400, 400]
    assert answers[0].json()["error"]["code"] == answers[1].json()["error"]["code"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_long_prompt_arrives_whole(bench: Bench, transport: str) -> None:
    body = chat("long", max_tokens=5, temperature=0)
    short = (await say(bench.port(transport), body)).json()["usage"]["prompt_tokens"]
    body["messages"][0]["content"] = "Well, well. " * 150
    answer = await say(bench.port(transport), body)
    assert TEXT.startswith(content_of(answer))
    assert answer.json()["usage"]["prompt_tokens"] > short + 900


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_many_streams_at_once_are_all_whole(bench: Bench, transport: str) -> None:
    port = bench.port(transport)

    async def one() -> str:
        async with connect(port) as client:
            streamed = await (await begin(client, chat("long"))).to_end()
            assert streamed.done
            return text_of(streamed)

    assert await asyncio.gather(*(one() for _ in range(STREAMS_MAX))) == [TEXT] * STREAMS_MAX


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_that_goes_away_leaves_nothing_open(bench: Bench, transport: str) -> None:
    port = bench.port(transport)
    async with connect(port) as client:
        stream = await begin(client, chat("long"))
        await stream.until_text()
        client.vanish()

    async def is_idle() -> bool:
        workers = (await ask(port, "GET", "/workers")).json()["workers"]
        return all(worker["inflight"] == 0 for worker in workers)

    for _ in range(200):
        if await is_idle():
            break
        await asyncio.sleep(0.1)
    else:
        pytest.fail("a call is still open")
    assert content_of(await say(port, chat("long"))) == TEXT


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_engine_that_is_killed_and_comes_back(bench: Bench, transport: str) -> None:
    """Half an answer ends with a truthful error, and the node serves again by itself."""
    port, engine = bench.port(transport), bench.engine
    async with AsyncExitStack() as stack:
        # Many, so that the engine is busy with them for seconds.
        clients = [await stack.enter_async_context(connect(port)) for _ in range(MANY)]
        streams = [await begin(client, chat("long")) for client in clients]
        await streams[0].until_text()
        assert engine.process is not None
        engine.process.signal(signal.SIGKILL)
        engine.stop()
        ended = [await stream.to_end() for stream in streams]
    cut = [one for one in ended if not one.done]
    assert cut, "it was killed in their midst"
    assert all(text_of(one) == TEXT for one in ended if one.done)
    assert all(TEXT.startswith(text_of(one)) for one in cut)
    assert {error_of(one)["type"] for one in cut} == {"server_error"}
    engine.start()
    again = await say(port, chat("long"))
    for _ in range(300):
        if again.status == 200:
            break
        await asyncio.sleep(0.2)
        again = await say(port, chat("long"))
    assert content_of(again) == TEXT
