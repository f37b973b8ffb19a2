import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator, Sequence

import pytest

from smg_node.core.generation.events import Delta, Event
from support.http import http_node, raw_http
from support.http.http_node import FakeRun, chat, for_ever, node, opening
from support.http.raw_http import ask, connect, until

pytestmark = pytest.mark.usefixtures("either_server")

CHAT = "/v1/chat/completions"
STREAM = json.dumps(chat(stream=True)).encode()
BLOCK = "x" * 20_000


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nhost: x\r\nbig: " + b"a" * 5000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
    ids=["a long line", "many lines", "a long path"],
)
async def test_a_head_that_is_too_large_is_a_431_in_the_envelope(head: bytes) -> None:
    async with node(header_line_max_bytes=4096) as served, connect(served.port) as client:
        client.writer.write(head)
        response = await client.response()
        assert response.status == 431
        assert response.error()["code"] == "header_too_large"
        assert response.headers["connection"] == "close"
        assert await client.at_end()


async def test_a_head_within_the_limits_is_read() -> None:
    async with node(header_line_max_bytes=16_384) as served:
        sent = {"big": "a" * 16_000} | {f"h{n}": "x" for n in range(100)}
        assert (await ask(served.port, "GET", "/health", b"", sent)).status == 200


@pytest.mark.parametrize(
    "junk", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
async def test_what_is_no_http_is_told_so(junk: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with node() as served, connect(served.port) as client:
        client.writer.write(junk)
        response = await client.response()
        assert (response.status, response.error()["code"]) == (400, "invalid_http")
        assert await client.at_end()
        assert (await ask(served.port, "GET", "/health")).status == 200
    assert not [record for record in caplog.records if "spoke TLS" not in record.getMessage()]


async def test_a_tls_hello_on_a_plain_port_is_counted_and_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_node, "SERVER", "direct")
    monkeypatch.setattr(http_node, "TLS", None)
    monkeypatch.setattr(raw_http, "TLS", None)
    async with node() as served:
        for _ in range(3):
            async with connect(served.port) as client:
                client.writer.write(b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03\r\n\r\n")
                assert await client.reader.read()
        refused = "smg_node_http_connections_refused_total"
        assert served.sample(refused, reason="tls_on_plain_port") == 3
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "a client spoke TLS to a port of plain HTTP"
    ]


async def test_any_bytes_at_all_leave_the_node_well(caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(11)
    seeds = [
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{}",
        b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nxx",
        b"POST /v1/tokenize HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    ]
    async with node() as served:
        for _ in range(60):
            junk = bytearray(rng.choice(seeds))
            for _ in range(rng.randrange(1, 6)):
                junk[rng.randrange(len(junk))] = rng.randrange(256)
            async with connect(served.port) as client:
                client.writer.write(bytes(junk))
                if rng.random() < 0.5:
                    client.vanish()
        assert (await ask(served.port, "GET", "/health")).status == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_head_that_dawdles_is_closed() -> None:
    async with node(header_read_s=0.1) as served, connect(served.port) as client:
        client.writer.write(b"GET /health HTTP/1.1\r\nhos")
        assert await client.at_end()
        refused = served.sample("smg_node_http_connections_refused_total", reason="header_timeout")
    assert refused == 1


async def test_an_idle_connection_outlives_the_time_for_a_head() -> None:
    async with node(header_read_s=0.05) as served, connect(served.port) as client:
        for _ in range(2):
            await client.send("GET", "/liveness")
            assert (await client.response()).status == 200
            await asyncio.sleep(0.2)


async def test_an_idle_connection_is_closed_in_the_end() -> None:
    async with node(idle_keepalive_s=0.1) as served, connect(served.port) as client:
        await client.send("GET", "/liveness")
        assert (await client.response()).status == 200
        assert await client.at_end()


async def test_connections_beyond_the_limit_are_refused_with_words() -> None:
    async with node(connections_max=2) as served:
        async with connect(served.port) as one, connect(served.port) as two:
            for client in (one, two):
                await client.send("GET", "/liveness")
                assert (await client.response()).status == 200
            async with connect(served.port) as third:
                response = await third.response()
                assert response.status == 429
                assert response.error()["code"] == "too_many_connections"
                assert await third.at_end()
            await one.send("GET", "/liveness")
            assert (await one.response()).status == 200
            assert served.sample("smg_node_http_connections") == 2
        await until(lambda: not served.sample("smg_node_http_connections"))
        assert (await ask(served.port, "GET", "/liveness")).status == 200


async def test_no_delay_is_set_on_every_accepted_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    async with node() as served:
        listener = served.server._listeners[1]
        admit = listener.admit

        def spy(connection, transport):  # type: ignore[no-untyped-def] # the listener's own types
            admitted = admit(connection, transport)
            asyncio.get_running_loop().call_soon(look, transport)
            return admitted

        def look(transport: asyncio.Transport) -> None:
            raw = transport.get_extra_info("socket")
            seen.append(raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

        monkeypatch.setattr(listener, "admit", spy)
        await ask(served.port, "GET", "/health")
    assert seen == [1]


async def flood(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    yield opening()
    while True:
        yield [Delta(0, 0, BLOCK, 1)]
        await asyncio.sleep(0.001)


async def test_a_client_that_reads_nothing_is_cut_and_no_other_notices() -> None:
    async def patient(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        script = flood if run.request.sampling.seed == 1 else for_ever
        async for batch in script(run):
            yield batch

    slow = json.dumps(chat(stream=True, seed=1)).encode()
    async with (
        node(patient, slow_client_bytes=65_536, slow_client_s=0.3, keepalive_s=0.05) as served,
        connect(served.port) as other,
        connect(served.port, 4096) as sleeper,
    ):
        await other.send("POST", CHAT, STREAM)
        await other.head()
        await other.chunk()
        await sleeper.send("POST", CHAT, slow)
        await until(lambda: len(served.generations.runs) == 2)
        run = served.generations.runs[1]
        async with asyncio.timeout(20):
            await run.closed.wait()
        assert await other.chunk() == b": ping\n\n"
        cut = served.sample("smg_node_http_connections_refused_total", reason="slow_client")
        assert cut == 1
        await until(lambda: served.access.lines)
        assert json.loads(served.access.lines[0])["status"] == 499
        assert not served.generations.runs[0].closed.is_set()


async def test_a_client_that_reads_slowly_but_reads_is_not_cut() -> None:
    async with (
        node(flood, slow_client_bytes=65_536, slow_client_s=2.0) as served,
        connect(served.port, 4096) as client,
    ):
        await client.send("POST", CHAT, STREAM)
        await client.head()
        run = served.generations.runs[0]
        for _ in range(20):  # twice as long as a client may read nothing, and far less than is sent
            await client.reader.readexactly(100_000)
            await asyncio.sleep(0.2)
        pulled = run.pulled
        assert not run.closed.is_set()
        await asyncio.sleep(0.2)
        assert run.pulled - pulled < 20, "the client is not behind, so nothing was shown"


async def test_a_taken_port_is_an_error_at_start_and_leaves_nothing_open() -> None:
    async with node() as served:
        with pytest.raises(OSError, match="in use"):
            async with node(listen=f"127.0.0.1:{served.port}"):
                pass
        assert (await ask(served.port, "GET", "/health")).status == 200


async def test_a_connection_on_which_nothing_ever_comes_is_closed_in_the_end() -> None:
    async with (
        node(idle_keepalive_s=0.1, server="direct") as served,
        connect(served.port) as client,
    ):
        assert await client.at_end()
