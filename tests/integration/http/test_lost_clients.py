"""Clients that vanish or do not read cost the engine nothing, and other clients notice nothing."""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from support.http.chat_client import (
    CHAT,
    JSON,
    becomes,
    begin,
    chat,
    content_of,
    port_of,
    say,
    text_of,
)
from support.http.raw_http import RawClient, connect
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Load, Simulated, load_of, running_simulated

_log = logging.getLogger(__name__)

pytestmark = pytest.mark.integration

SLOW_CLIENT_S = 1.0
# The goal is 100 ms; this is the promise (a slot is free within a second), which two busy cores keep.
FREE_S = 1.0
WAIT_S = 30.0
"""For everything else; nothing here measures time by it."""
ENDLESS = chat("endless")
STAYING_TOKENS = 400
Vanish = Callable[[RawClient], None]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """An engine that never ends of itself: a word every 2 ms, room for answers of many megabytes."""
    flags = ("--script", "endless", "--itl-ms", "2", "--slots", "64")
    room = ("--context", "1000000", "--blocks", "64000", "--no-cache")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags, *room) as running:
        yield running


@pytest.fixture(scope="module")
def torrent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """The same, as fast as it can."""
    flags = ("--script", "endless", "--itl-ms", "0", "--coalesce", "20")
    room = ("--context", "1000000", "--blocks", "64000", "--no-cache")
    with running_simulated(tmp_path_factory.mktemp("torrent"), *flags, *room) as running:
        yield running


@pytest.fixture(scope="module")
def node(
    engine: Simulated, torrent: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNode]:
    workers = [
        f"grpc://{engine.address}?model=endless",
        f"grpc://{torrent.address}?model=torrent",
    ]
    slow = ("--stream.slow-client-s", str(SLOW_CLIENT_S), "--stream.slow-client-bytes", "65536")
    with running_node(tmp_path_factory.mktemp("node"), workers=workers, flags=slow) as running:
        yield running


@pytest.fixture
def load(engine: Simulated) -> Iterator[Load]:
    with load_of(engine.address) as load:
        yield load


@pytest.fixture(autouse=True)
async def nothing_left(node: RunningNode, load: Load) -> AsyncIterator[None]:
    """Whatever a test did, node and engine are idle before and after it, and no mistake was logged."""
    yield
    await becomes(lambda: load() == 0, WAIT_S, "the engine is idle")
    await becomes(lambda: node.metric("smg_node_worker_inflight") == 0, WAIT_S, "no call is open")
    await becomes(
        lambda: node.metric("smg_node_http_requests_inflight") == 0, WAIT_S, "nobody is answered"
    )
    assert "Traceback" not in node.process.said()


def closes(client: RawClient) -> None:
    client.close()


def resets(client: RawClient) -> None:
    client.vanish()


def half_closes(client: RawClient) -> None:
    client.writer.write_eof()


WAYS: tuple[Vanish, ...] = (closes, resets, half_closes)


async def staying(port: int) -> str:
    """Read one stream to its end, which nobody else may disturb."""
    async with connect(port) as client:
        stream = await begin(client, {**ENDLESS, "max_tokens": STAYING_TOKENS})
        assert stream.status == 200
        streamed = await stream.to_end()
    assert streamed.done
    return text_of(streamed)


async def undisturbed(port: int) -> str:
    """Return what a stream that stays says when nobody else is there."""
    text = await staying(port)
    assert ((SAYS + " ") * STAYING_TOKENS).startswith(text.rstrip("\ufffd"))
    assert len(text) > len(SAYS)
    return text


@pytest.mark.parametrize("vanish", WAYS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "unstreamed"])
async def test_a_lost_client_frees_the_slot_within_a_second(
    node: RunningNode,
    load: Load,
    vanish: Vanish,
    streamed: bool,
) -> None:
    port = port_of(node.url)
    gone_before = node.metric("smg_node_http_requests_total", status="499")
    taken_s = []
    rounds = 5
    for _ in range(rounds):
        async with connect(port) as client:
            if streamed:
                await (await begin(client, ENDLESS)).until_text()
            else:
                await client.send("POST", CHAT, json.dumps(ENDLESS).encode(), JSON)
            await becomes(lambda: load() == 1, WAIT_S, "the engine is at work")
            vanish(client)
            taken_s.append(await becomes(lambda: load() == 0, FREE_S, "the engine is idle"))
    _log.info("slot free after %s ms", [round(taken * 1000) for taken in taken_s])
    await becomes(
        lambda: node.metric("smg_node_http_requests_total", status="499") == gone_before + rounds,
        WAIT_S,
        "every lost client is counted",
    )


async def test_clients_vanish_at_random_moments_and_others_notice_nothing(
    node: RunningNode, load: Load
) -> None:
    port = port_of(node.url)
    expected = await undisturbed(port)
    rng = random.Random(20260117)

    async def lost() -> None:
        moments = [(rng.choice(WAYS), rng.random() < 0.5, rng.uniform(0, 0.06)) for _ in range(15)]
        for vanish, streamed, after_s in moments:
            async with connect(port) as client:
                body = json.dumps({**ENDLESS, "stream": streamed}).encode()
                # Sometimes before the body is complete.
                cut = len(body) if rng.random() < 0.8 else rng.randrange(len(body))
                length = {**JSON, "content-length": str(len(body))}
                await client.send("POST", CHAT, body[:cut], length)
                await asyncio.sleep(after_s)
                vanish(client)

    async with asyncio.TaskGroup() as group:
        stayed = [group.create_task(staying(port)) for _ in range(6)]
        for _ in range(6):
            group.create_task(lost())
    assert [task.result() for task in stayed] == [expected] * 6
    await becomes(lambda: load() == 0, FREE_S, "the engine is idle")


async def test_a_lost_client_with_many_choices_frees_all_of_them(
    node: RunningNode, load: Load
) -> None:
    async with connect(port_of(node.url)) as client:
        await begin(client, {**ENDLESS, "n": 5})
        await becomes(lambda: load() >= 1, WAIT_S, "the engine is at work")
        client.vanish()
        await becomes(lambda: load() == 0, FREE_S, "the engine is idle")


async def test_a_client_that_does_not_read_is_cut_and_others_notice_nothing(
    node: RunningNode, torrent: Simulated
) -> None:
    port = port_of(node.url)
    expected = await undisturbed(port)
    body = {**chat("torrent"), "max_tokens": 900_000, "stream": True}
    cut_before = node.metric("smg_node_http_connections_refused_total", reason="slow_client")

    def pouring() -> int:
        """Calls open at the engine that pours; its own account ends when everything is made."""
        return int(node.metric("smg_node_worker_inflight", worker=f"grpc://{torrent.address}"))

    async with connect(port, receive_buffer=4096) as lazy:
        await lazy.send("POST", CHAT, json.dumps(body).encode(), JSON)
        lazy.writer.transport.pause_reading()  # type: ignore[attr-defined]  # every loop has it
        await becomes(lambda: pouring() == 1, WAIT_S, "the call is open")
        stayed = [await staying(port) for _ in range(2)]
        # Its own second, the time to fill the buffers between, and a busy machine.
        await becomes(lambda: pouring() == 0, SLOW_CLIENT_S + WAIT_S, "the call is closed")
    assert stayed == [expected] * 2
    cut = node.metric("smg_node_http_connections_refused_total", reason="slow_client")
    assert cut == cut_before + 1


async def test_a_slow_reader_slows_the_engine_and_gets_everything(
    node: RunningNode, torrent: Simulated
) -> None:
    """It reads in sips, each well before its time is up."""
    wanted = 8_000
    # More than a kernel buffers: 20 alternatives a token.
    large = {"logprobs": True, "top_logprobs": 20, "stream_options": {"include_usage": True}}
    body = {**chat("torrent"), "max_tokens": wanted, **large}
    async with connect(port_of(node.url), receive_buffer=4096) as client:
        stream = await begin(client, body)
        # A sip is what one wake-up brought, which may be a good part of what an engine may be ahead.
        while len(stream.raw) < 300_000:
            await stream.more()
            await asyncio.sleep(0.1)
        held = node.metric("smg_node_worker_inflight", worker=f"grpc://{torrent.address}")
        assert held == 1, "the whole answer was buffered somewhere"
        streamed = await stream.to_end()
    assert streamed.done
    assert streamed.chunks[-1]["usage"]["completion_tokens"] == wanted
    text = text_of(streamed)
    assert ((SAYS + " ") * (len(text) // len(SAYS) + 1)).startswith(text.rstrip("\ufffd"))


async def test_the_node_answers_as_before(node: RunningNode) -> None:
    answer = await say(port_of(node.url), {**ENDLESS, "max_tokens": 20})
    assert SAYS.startswith(content_of(answer))
