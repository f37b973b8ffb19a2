"""Life of a socket: pings, close codes, sizes, clients that do not read, garbage."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from smg_node.core.generation.events import BlockEnd, Delta, End, Event, Finish, Usage
from smg_node.http.routes.sockets import responses_socket
from smg_node.http.routes.sockets.responses_socket import ResponsesSocketRules
from smg_node.http.sockets.frames import FrameError, FrameReader, Message
from support.history.history_world import counting
from support.http.history_routes import Here
from support.http.http_node import FakeRun, hello, node, opening
from support.http.raw_http import RawClient, ask, connect, until
from support.http.socket_client import PATH, create, heard, say, socket, text_of, turn

OFFER = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def ruled(monkeypatch: pytest.MonkeyPatch, **rules: float) -> None:
    """Have sockets live by these rules."""
    usual = responses_socket.ResponsesSocketRoutes.__init__
    given = ResponsesSocketRules(**rules)  # type: ignore[arg-type] # numbers of either kind
    monkeypatch.setattr(usual, "__defaults__", (given,))


async def opened(client: RawClient) -> None:
    await client.send("GET", PATH, headers=OFFER)
    assert (await client.head())[0] == 101


def frame(opcode: int, payload: bytes, *, last: bool = True) -> bytes:
    """Return a masked frame of less than 64 KiB."""
    mask = b"\1\2\3\4"
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return bytes([opcode | (0x80 if last else 0)]) + length + mask + masked


@pytest.mark.usefixtures("either_server")
async def test_a_client_that_answers_no_pings_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    ruled(monkeypatch, ping_s=0.02)
    async with node() as served, connect(served.port) as client:
        await opened(client)
        assert await client.reader.readexactly(4) == b"\x89\x00\x89\x00"
        assert await client.at_end()
        await until(lambda: served.access.lines)
        assert json.loads(served.access.lines[-1])["status"] == 101


@pytest.mark.usefixtures("either_server")
async def test_a_client_that_answers_pings_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    ruled(monkeypatch, ping_s=0.02)
    async with node() as served, connect(served.port) as client:
        await opened(client)
        for _ in range(8):
            assert await client.reader.readexactly(2) == b"\x89\x00"
            client.writer.write(frame(10, b""))
        assert not served.access.lines


@pytest.mark.usefixtures("either_server")
async def test_a_socket_ends_at_its_age_after_what_it_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ruled(monkeypatch, age_max_s=0.05)
    aged = asyncio.Event()

    async def waits(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await aged.wait()
        async for batch in hello(run):
            yield batch

    async with node(waits, history=Here()) as served, socket(served.port) as client:
        await create(client, input="hi", stream_id="x")
        told = await heard(client)
        assert told["error"]["code"] == "websocket_connection_limit_reached"
        aged.set()
        assert text_of(await turn(client)) == "Hello world"
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1001


@pytest.mark.usefixtures("either_server")
async def test_a_message_that_is_too_large_ends_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    ruled(monkeypatch, message_max_bytes=1_000)
    async with node() as served, socket(served.port) as client:
        await client.send("x" * 1_000)
        assert (await heard(client))["error"]["code"] == "invalid_payload"
        await client.send("x" * 1_001)
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1009


@pytest.mark.usefixtures("either_server")
async def test_a_message_in_parts_is_too_large_by_their_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ruled(monkeypatch, message_max_bytes=1_000)
    async with node() as served, connect(served.port) as client:
        await opened(client)
        client.writer.write(frame(1, b"x" * 600, last=False) + frame(0, b"x" * 600))
        close = await client.reader.readexactly(4)
        assert (close[:1], close[2:]) == (b"\x88", (1009).to_bytes(2, "big"))


@pytest.mark.usefixtures("either_server")
@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(1, b"\xff"), 1007),
        (frame(3, b""), 1002),
        (frame(0, b"x"), 1002),
        (frame(9, b"", last=False), 1002),
        (b"\xc1\x80\0\0\0\0", 1002),
        (frame(8, b"\x03"), 1002),
        (frame(8, (1005).to_bytes(2, "big")), 1002),
        (frame(1, b"a", last=False) + frame(1, b"b"), 1002),
        (b"\x81\xff" + b"\xff" * 8 + b"\0\0\0\0", 1009),
    ],
    ids=[
        *("text", "opcode", "continuation", "ping in parts", "bits", "half a code", "code"),
        *("two messages", "endless"),
    ],
)
async def test_what_is_no_websocket_ends_the_socket_with_a_code(sent: bytes, code: int) -> None:
    async with node() as served, connect(served.port) as client:
        await opened(client)
        client.writer.write(sent)
        close = await client.reader.readexactly(4)
        assert (close[:1], int.from_bytes(close[2:], "big")) == (b"\x88", code)


@pytest.mark.usefixtures("either_server")
async def test_a_client_that_does_not_read_slows_the_engine_down() -> None:
    async def floods(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield opening()
        for _ in range(2_000):
            yield [Delta(0, 0, "x" * 10_000, 1)]
        text = "x" * 20_000_000
        yield [BlockEnd(0, 0, "text", text), Finish(0, "stop"), Usage(3, 2, 0), End()]

    async with node(floods, history=Here(), slow_client_bytes=65_536) as served:
        async with connect(served.port, receive_buffer=4_096) as client:
            await opened(client)
            body = {"type": "response.create", "model": "m", "input": "hi", "store": False}
            client.writer.write(frame(1, json.dumps(body).encode()))
            await until(lambda: served.generations.runs)
            [run] = served.generations.runs
            await until(lambda: run.pulled > 10)
            before, now = -1, run.pulled
            while now != before:
                await asyncio.sleep(0.2)
                before, now = now, run.pulled
            assert now < 1_500, "the rest waits for the client"
        await run.closed.wait()


@pytest.mark.usefixtures("either_server")
async def test_all_lanes_go_on_once_a_client_reads_again() -> None:
    async def much(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield opening()
        for _ in range(20):
            yield [Delta(0, 0, "x" * 50_000, 1)]
        text = "x" * 1_000_000
        yield [BlockEnd(0, 0, "text", text), Finish(0, "stop"), Usage(3, 2, 0), End()]

    async with (
        node(much, history=Here(), slow_client_bytes=65_536) as served,
        socket(served.port, max_queue=1, max_size=None) as client,
    ):
        for at in range(8):
            await create(client, input="hi", store=False, stream_id=f"lane-{at}")
        await until(lambda: len(served.generations.runs) == 8)
        runs, before = served.generations.runs, -1
        while before != (now := sum(run.pulled for run in runs)):
            before = now
            await asyncio.sleep(0.2)
        async with asyncio.timeout(20):
            ended = [(await turn(client))[-1]["type"] for _ in range(8)]
        assert ended == ["response.completed"] * 8


@pytest.mark.usefixtures("either_server")
async def test_pings_of_a_client_that_does_not_read_are_left_to_it() -> None:
    pings = frame(9, b"x" * 125) * 1_000

    async def sent(client: RawClient) -> None:
        for _ in range(400):
            client.writer.write(pings)
            await client.writer.drain()

    async with (
        node(history=Here(), slow_client_bytes=65_536) as served,
        connect(served.port, receive_buffer=4_096) as client,
    ):
        await opened(client)
        # More than what lies between the two of us has room for.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sent(client), 2)
        client.vanish()


@pytest.mark.usefixtures("either_server")
async def test_a_client_that_is_behind_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ruled(monkeypatch, ping_s=0.05)

    async def much(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield opening()
        text = "x" * 2_000_000
        yield [Delta(0, 0, text, 1)]
        yield [BlockEnd(0, 0, "text", text), Finish(0, "stop"), Usage(3, 2, 0), End()]

    async with (
        node(much, history=Here(), slow_client_bytes=65_536) as served,
        connect(served.port, receive_buffer=4_096) as client,
    ):
        await opened(client)
        body = {"type": "response.create", "model": "m", "input": "hi", "store": False}
        client.writer.write(frame(1, json.dumps(body).encode()))
        await until(lambda: served.generations.runs)
        await asyncio.sleep(0.5)
        read = b""
        async with asyncio.timeout(20):
            while b"response.completed" not in read:
                part = await client.reader.read(1_000_000)
                assert part, "it was cut"
                read = read[-100:] + part


@pytest.mark.usefixtures("either_server")
async def test_many_messages_wait_for_their_turn_and_none_is_lost() -> None:
    async with node(counting, history=Here()) as served, socket(served.port) as client:
        for at in range(150):
            await create(client, input="hi", store=False, metadata={"at": str(at)})
        told: list[str] = []
        while len(told) < 150:
            told.append((await turn(client))[-1]["response"]["metadata"]["at"])
        assert told == [str(at) for at in range(150)]


@pytest.mark.usefixtures("either_server")
async def test_too_many_lanes_are_refused_and_the_others_go_on() -> None:
    go_on = asyncio.Event()

    async def waits(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go_on.wait()
        async for batch in hello(run):
            yield batch

    async with node(waits, history=Here()) as served, socket(served.port) as client:
        for at in range(17):
            await create(client, input="hi", stream_id=f"lane-{at}", store=False)
        told = await heard(client)
        assert (told["status"], told["stream_id"]) == (429, "lane-16")
        assert told["error"]["code"] == "websocket_stream_limit_reached"
        go_on.set()
        ended = [(await turn(client))[-1]["type"] for _ in range(16)]
        assert ended == ["response.completed"] * 16


def test_a_node_that_serves_no_socket_loads_nothing_of_them() -> None:
    # In a process of its own: this one has loaded them.
    import subprocess
    import sys

    code = (
        "import sys, smg_node.http.app;"
        "print([name for name in sys.modules if '.routes.sockets' in name"
        " or name.endswith(('sockets.frames', 'sockets.handshake', 'sockets.inner_exchange'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def read_all(pieces: Sequence[bytes]) -> tuple[list[Message], int]:
    """Return the messages of a stream however it is cut, and the code of what ends it; 0 for nothing."""
    reader = FrameReader(message_max_bytes=5_000)
    for piece in pieces:
        reader.feed(piece)
    found: list[Message] = []
    try:
        while True:
            async with asyncio.timeout(0):
                found.append(await reader.next())
    except TimeoutError:
        return found, 0
    except FrameError as error:
        return found, error.code


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda body: frame(1, body)), st.data())
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_the_same_at_every_cut(sent: bytes, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(sent)))
    whole = asyncio.run(read_all([sent]))
    assert asyncio.run(read_all([sent[:cut], sent[cut:]])) == whole


@pytest.mark.usefixtures("either_server")
async def test_garbage_never_harms_the_node() -> None:
    chance = random.Random(3)
    async with node(history=Here()) as served:
        for _ in range(25):
            async with connect(served.port) as client:
                await opened(client)
                start = frame(1, b'{"type":"response.create","model":"m","input":"hi"}')
                garbage = chance.randbytes(chance.randrange(1, 200))
                client.writer.write(start[: chance.randrange(len(start) + 1)] + garbage)
                if chance.random() < 0.5:
                    client.vanish()
        assert (await ask(served.port, "GET", "/liveness")).status == 200
        async with socket(served.port) as client2:
            await say(client2, type="x")
            assert (await heard(client2))["error"]["code"] == "unknown_event"
