"""A node leaves without cutting anybody off, and whatever it leaves behind is free."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from support.http.chat_client import (
    CHAT,
    JSON,
    Stream,
    becomes,
    begin,
    chat,
    content_of,
    error_of,
    finishes_of,
    port_of,
    text_of,
)
from support.http.raw_http import RawClient, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Load, Simulated, load_of, running_simulated

pytestmark = pytest.mark.integration

WAIT_S = 30.0
FREE_S = 3.0
STEP_MS = 20
# About a second and a half of streaming: long enough for a signal in the middle, also when busy.
LONG = {**chat("sim"), "max_tokens": 75}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "endless", "--itl-ms", str(STEP_MS), "--model", "sim")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture
def load(engine: Simulated) -> Iterator[Load]:
    with load_of(engine.address) as load:
        yield load


@contextmanager
def leaving(scratch: Path, engine: Simulated, *flags: str) -> Iterator[RunningNode]:
    with running_node(scratch, workers=[f"grpc://{engine.address}"], flags=flags) as node:
        yield node
        assert "Traceback" not in node.process.said()


@pytest.fixture
async def clients() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def streams(clients: AsyncExitStack, node: RunningNode, count: int) -> list[Stream]:
    """Begin `count` streams and wait until every one has some text."""
    begun = []
    for _ in range(count):
        client = await clients.enter_async_context(connect(port_of(node.url)))
        begun.append(await begin(client, LONG))
    for stream in begun:
        await stream.until_text()
    return begun


async def kept_alive(clients: AsyncExitStack, node: RunningNode, count: int) -> list[RawClient]:
    """Open connections that have been used before, and stay."""
    opened = []
    for _ in range(count):
        client = await clients.enter_async_context(connect(port_of(node.url)))
        await client.send("GET", "/readiness")
        assert (await client.response()).status == 200
        opened.append(client)
    return opened


def whole(text: str) -> bool:
    return len(text) > len(SAYS) and (f"{SAYS} " * 75).startswith(text.rstrip("\ufffd"))


async def ended(node: RunningNode) -> int:
    return await asyncio.to_thread(node.process.wait, WAIT_S)


async def test_a_drain_lets_streams_finish_and_refuses_who_comes_late(
    engine: Simulated, load: Load, clients: AsyncExitStack, tmp_path: Path
) -> None:
    with leaving(tmp_path, engine) as node:
        running = await streams(clients, node, 4)
        waiting, prober, late, anchor = await kept_alive(clients, node, 4)
        # Has no end of its own: the node cannot be gone before everything was looked at.
        await begin(anchor, chat("sim"))
        await waiting.send("POST", CHAT, json.dumps(LONG).encode(), JSON)
        await becomes(lambda: load() == 6, WAIT_S, "all six are at work")
        node.process.signal(signal.SIGTERM)
        await asyncio.to_thread(node.process.wait_for, "draining", WAIT_S)
        await prober.send("GET", "/readiness")
        unready = await prober.response()
        assert unready.status == 503
        assert "draining" in unready.body.decode()
        await late.send("POST", CHAT, json.dumps(chat("sim")).encode(), JSON)
        refused = await late.response()
        assert refused.status == 503
        assert refused.error()["code"] == "draining"
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["connection"] == "close"
        with pytest.raises(ConnectionRefusedError):
            async with connect(port_of(node.url)):
                pass
        for stream in running:
            streamed = await stream.to_end()
            assert streamed.done
            assert finishes_of(streamed) == ["length"]
            assert whole(text_of(streamed))
        answer = await waiting.response()
        assert whole(content_of(answer))
        assert node.process.ended() is None
        anchor.vanish()
        assert await ended(node) == 0
    assert load() == 0


async def test_while_it_settles_everything_but_readiness_goes_on(
    engine: Simulated, tmp_path: Path
) -> None:
    with leaving(tmp_path, engine, "--drain.settle-s", "600") as node:
        node.process.signal(signal.SIGTERM)
        await asyncio.to_thread(node.process.wait_for, "draining", WAIT_S)
        async with connect(port_of(node.url)) as client:
            await client.send("GET", "/readiness")
            assert (await client.response()).status == 503
            for path in ("/liveness", "/health"):
                await client.send("GET", path)
                assert (await client.response()).status == 200
            body = json.dumps(chat("sim", max_tokens=3)).encode()
            await client.send("POST", CHAT, body, JSON)
            content_of(await client.response())
        node.process.signal(signal.SIGTERM)
        assert await ended(node) == 0


@pytest.mark.parametrize("how", ["second signal", "grace is over"])
async def test_what_is_left_at_the_end_is_told_so(
    engine: Simulated, load: Load, clients: AsyncExitStack, tmp_path: Path, how: str
) -> None:
    flags = ("--drain.grace-s", "0.3") if how == "grace is over" else ()
    endless = chat("sim")
    with leaving(tmp_path, engine, *flags) as node:
        running = []
        for _ in range(3):
            client = await clients.enter_async_context(connect(port_of(node.url)))
            running.append(await begin(client, endless))
        for stream in running:
            await stream.until_text()
        waiting = await clients.enter_async_context(connect(port_of(node.url)))
        await waiting.send("POST", CHAT, json.dumps(endless).encode(), JSON)
        await becomes(lambda: load() == 4, WAIT_S, "all four are at work")
        node.process.signal(signal.SIGTERM)
        if how == "second signal":
            await asyncio.to_thread(node.process.wait_for, "draining", WAIT_S)
            node.process.signal(signal.SIGTERM)
        for stream in running:
            error = error_of(await stream.to_end())
            assert error["code"] == "server_shutting_down"
            assert error["type"] == "server_error"
        answer = await waiting.response()
        assert answer.status == 503
        assert answer.error()["code"] == "server_shutting_down"
        assert int(answer.headers["retry-after"]) >= 1
        assert await ended(node) == 0
        await becomes(lambda: load() == 0, FREE_S, "the engine is idle")


async def test_an_idle_node_leaves_at_once_whoever_is_connected(
    engine: Simulated, clients: AsyncExitStack, tmp_path: Path
) -> None:
    with leaving(tmp_path, engine) as node:
        idle = await kept_alive(clients, node, 3)
        node.process.signal(signal.SIGINT)
        assert await ended(node) == 0
        for client in idle:
            assert await client.at_end()


async def test_a_client_that_does_not_read_cannot_keep_the_node(
    engine: Simulated, load: Load, clients: AsyncExitStack, tmp_path: Path
) -> None:
    with leaving(tmp_path, engine, "--drain.grace-s", "0.3") as node:
        client = await clients.enter_async_context(connect(port_of(node.url), 4096))
        body = json.dumps({**chat("sim"), "stream": True}).encode()
        await client.send("POST", CHAT, body, JSON)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # every loop has it
        await becomes(lambda: load() == 1, WAIT_S, "it is at work")
        node.process.signal(signal.SIGTERM)
        assert await ended(node) == 0
    await becomes(lambda: load() == 0, FREE_S, "the engine is idle")


async def test_a_node_that_is_killed_leaves_no_slot_occupied(
    engine: Simulated, load: Load, clients: AsyncExitStack, tmp_path: Path
) -> None:
    with leaving(tmp_path, engine) as node:
        running = await streams(clients, node, 4)
        await becomes(lambda: load() == 4, WAIT_S, "all four are at work")
        node.process.signal(signal.SIGKILL)
        await becomes(lambda: load() == 0, FREE_S, "the engine is idle")
        for stream in running:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError, ValueError)):
                await stream.to_end()
