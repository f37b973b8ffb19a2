import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import BlockEnd, Delta, Event, Fail
from support.http.http_node import FakeRun, chat, ending, hello, node, opening
from support.http.raw_http import ask, connect, until

pytestmark = pytest.mark.usefixtures("either_server")

CHAT = "/v1/chat/completions"
STREAM = json.dumps(chat(stream=True)).encode()


def broken(code: str = "upstream_error") -> Fail:
    return Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died", code=code))


async def test_a_stream_has_the_headers_of_one_and_ends_with_done() -> None:
    async with node() as served:
        response = await ask(served.port, "POST", CHAT, STREAM)
    headers = response.headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "content-length" not in headers
    assert "content-encoding" not in headers
    assert headers["x-request-id"] == headers["request-id"]
    frames = response.body.split(b"\n\n")
    assert frames[-2:] == [b"data: [DONE]", b""]
    assert all(frame.startswith(b"data: ") and b"\n" not in frame for frame in frames[:-1])


async def test_each_wake_up_is_one_write() -> None:
    step = asyncio.Event()

    async def stepwise(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "a", 1), Delta(0, 0, "b", 1)]
        await step.wait()
        yield [Delta(0, 0, "c", 1)]
        yield ending("abc")

    async with node(stepwise) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        await client.head()
        first = await client.chunk()
        assert first.count(b"data: ") == 3  # the role, a, b
        step.set()
        assert (await client.chunk()).count(b"data: ") == 1
        assert (await client.chunk()).endswith(b"data: [DONE]\n\n")
        assert await client.chunk() == b""


async def test_a_client_of_http_1_0_gets_its_stream_without_chunks() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM, version="1.0")
        response = await client.response()
    assert "transfer-encoding" not in response.headers
    assert response.headers["connection"] == "close"
    assert response.body.endswith(b"data: [DONE]\n\n")


async def test_a_stream_that_is_slow_to_begin_is_begun_with_comments() -> None:
    go = asyncio.Event()

    async def late(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go.wait()
        async for batch in hello(run):
            yield batch

    async with (
        node(late, commit_after_s=0.04, keepalive_s=0.04) as served,
        connect(served.port) as client,
    ):
        await client.send("POST", CHAT, STREAM)
        status, _ = await client.head()
        assert status == 200
        assert [await client.chunk() for _ in range(3)] == [b": ping\n\n"] * 3
        go.set()
        body = b""
        while part := await client.chunk():
            body += part
    assert body.endswith(b"data: [DONE]\n\n")


async def test_a_quiet_stream_is_kept_alive_and_a_lively_one_is_not_disturbed() -> None:
    go = asyncio.Event()

    async def pausing(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "a", 1)]
        await go.wait()
        yield ending("a")

    async with (
        node(pausing, commit_after_s=9.0, keepalive_s=0.04) as served,
        connect(served.port) as client,
    ):
        await client.send("POST", CHAT, STREAM)
        await client.head()
        assert b'"a"' in await client.chunk()
        assert await client.chunk() == b": ping\n\n"
        go.set()
        rest = b""
        while part := await client.chunk():
            rest += part
    assert rest.endswith(b"data: [DONE]\n\n")
    async with node(keepalive_s=30.0) as served:
        assert b"ping" not in (await ask(served.port, "POST", CHAT, STREAM)).body


async def test_a_failure_in_the_very_first_batch_keeps_its_status() -> None:
    async def at_once(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "x", 1), BlockEnd(0, 0, "text", "x"), broken()]

    async with node(at_once) as served:
        response = await ask(served.port, "POST", CHAT, STREAM)
    assert response.status == 502
    assert response.error()["code"] == "upstream_error"


async def test_a_failure_after_the_first_byte_is_the_last_frame_without_done() -> None:
    async def midway(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "x", 1)]
        yield [BlockEnd(0, 0, "text", "x"), broken("engine_died")]

    async with node(midway) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        response = await client.response()
        last = json.loads(response.body.rstrip().rpartition(b"data: ")[2])
        assert response.status == 200
        assert last["error"]["code"] == "engine_died"
        assert b"[DONE]" not in response.body
        # The stream ended as HTTP demands, so the connection is good for another request.
        await client.send("GET", "/liveness")
        assert (await client.response()).status == 200
        assert json.loads(served.access.lines[0])["error"] == "engine_died"


async def test_a_failure_after_a_comment_is_in_the_stream_too() -> None:
    go = asyncio.Event()

    async def doomed(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go.wait()
        yield [broken()]

    async with node(doomed, commit_after_s=0.03) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        assert (await client.head())[0] == 200
        assert await client.chunk() == b": ping\n\n"
        go.set()
        last = await client.chunk()
        while last == b": ping\n\n":
            last = await client.chunk()
        assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "upstream_error"
        assert await client.chunk() == b""


@pytest.mark.parametrize("how", ["raises", "ends"])
async def test_a_run_that_breaks_its_promise_midway_is_an_error_in_the_stream(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def rude(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "x", 1)]
        if how == "raises":
            raise ZeroDivisionError("our secret")

    async with node(rude) as served:
        response = await ask(served.port, "POST", CHAT, STREAM)
        assert served.generations.runs[0].closed.is_set()
    last = json.loads(response.body.rstrip().rpartition(b"data: ")[2])
    assert last["error"]["code"] == "internal_error"
    assert b"[DONE]" not in response.body
    assert b"secret" not in response.body
    assert len(caplog.records) == 1


async def test_a_failure_nobody_can_put_into_words_breaks_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Mute:
        said = False

        def frames(self, events: Sequence[Event]) -> bytes:
            if self.said:
                raise ZeroDivisionError("the presenter is broken")
            self.said = True
            return b"data: 1\n\n"

        def around(self) -> None:
            return None

    async with node() as served, connect(served.port) as client:
        with monkeypatch.context() as patch:
            patch.setattr(type(served.parts.dialects["chat"]), "presenter", lambda *_: Mute())
            await client.send("POST", CHAT, STREAM)
            await client.head()
            assert await client.chunk() == b"data: 1\n\n"
            # Never a clean end: the last chunk of zero bytes must not have come.
            assert await client.at_end()
        assert (await ask(served.port, "POST", CHAT, STREAM)).status == 200
    assert len(caplog.records) == 2


async def test_a_run_is_not_asked_for_more_than_its_client_takes() -> None:
    block = "x" * 50_000

    async def flood(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield opening()
        for _ in range(400):
            yield [Delta(0, 0, block, 1)]
        yield ending(block * 400)

    async with (
        node(flood, slow_client_bytes=100_000) as served,
        connect(served.port, 4096) as client,
    ):
        await client.send("POST", CHAT, STREAM)
        await client.head()
        run = served.generations.runs[0]
        await client.chunk()
        before = -1
        while before != run.pulled:  # until it stands still
            before = run.pulled
            await asyncio.sleep(0.2)
        assert run.pulled < 300
        size = 0
        while part := await client.chunk():
            size += len(part)
        assert size > 400 * 50_000
        assert run.finished


class Steps:
    """Events that are no generator: nobody closes them but who promised to."""

    def __init__(self) -> None:
        self.closed = False

    def __aiter__(self) -> "Steps":
        return self

    async def __anext__(self) -> Sequence[Event]:
        return [*opening(), Delta(0, 0, "x" * 50_000, 1)]

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("ends", ["our mistake", "the client"])
async def test_the_run_is_closed_also_when_the_end_comes_from_outside_of_it(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Repeating:
        def frames(self, events: Sequence[Event]) -> bytes:
            if ends == "our mistake":
                raise ZeroDivisionError
            return b"x" * 50_000

        def around(self) -> None:
            return None

    steps = Steps()
    async with node(slow_client_bytes=65_536) as served, connect(served.port, 4096) as client:
        monkeypatch.setattr(FakeRun, "events", lambda self: steps)
        monkeypatch.setattr(
            type(served.parts.dialects["chat"]), "presenter", lambda *_: Repeating()
        )
        await client.send("POST", CHAT, STREAM)
        if ends == "the client":
            # It waits for the client by now, not for the run.
            await client.head()
            client.vanish()
        await until(lambda: steps.closed)
