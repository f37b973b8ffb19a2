import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from smg_node.core.generation.events import Delta, Event
from smg_node.http.middleware.drain_phases import Phase
from support.http.http_node import FakeRun, Node, chat, ending, for_ever, node, opening, silence
from support.http.raw_http import ask, connect, until

pytestmark = pytest.mark.usefixtures("either_server")

CHAT = "/v1/chat/completions"
STREAM = json.dumps(chat(stream=True)).encode()


async def reached(served: Node, phase: Phase) -> None:
    await until(lambda: served.server.phase >= phase)


async def test_an_idle_node_leaves_at_once_after_settling() -> None:
    async with node() as served:
        port = served.port
        async with asyncio.timeout(20):
            await served.server.drain()
        assert served.server.phase is Phase.OVER
        with pytest.raises(ConnectionRefusedError):
            await ask(port, "GET", "/health")


async def test_while_it_settles_a_node_is_not_ready_but_serves() -> None:
    async with node(settle_s=30.0) as served, asyncio.TaskGroup() as tasks:
        farewell = tasks.create_task(served.server.drain())
        await reached(served, Phase.SETTLING)
        ready = await ask(served.port, "GET", "/readiness")
        assert ready.status == 503
        assert ready.json()["reasons"] == ["the node is draining"]
        assert (await ask(served.port, "GET", "/health")).status == 200
        answer = await ask(served.port, "POST", CHAT, chat())
        assert answer.status == 200
        assert "connection" not in answer.headers
        served.server.hurry()
        await farewell


async def test_a_running_stream_finishes_and_late_requests_are_sent_elsewhere() -> None:
    go = asyncio.Event()

    async def waiting(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "x", 1)]
        await go.wait()
        yield ending("x")

    async with (
        node(waiting) as served,
        connect(served.port) as stream,
        connect(served.port) as late,
    ):
        await late.send("GET", "/liveness")
        assert (await late.response()).status == 200
        await stream.send("POST", CHAT, STREAM)
        await stream.head()
        async with asyncio.TaskGroup() as tasks:
            farewell = tasks.create_task(served.server.drain())
            await reached(served, Phase.CLOSING)
            await late.send("POST", CHAT, STREAM)
            refused = await late.response()
            assert not farewell.done()
            go.set()
        parts = b""
        while part := await stream.chunk():
            parts += part
        assert await stream.at_end()
    assert refused.status == 503
    assert refused.error()["code"] == "draining"
    assert refused.headers["retry-after"] == "1"
    assert refused.headers["connection"] == "close"
    assert parts.endswith(b"data: [DONE]\n\n")
    assert len(served.generations.runs) == 1


async def test_a_late_probe_is_still_answered() -> None:
    async with (
        node(for_ever) as served,
        connect(served.port) as stream,
        connect(served.port) as late,
    ):
        await late.send("GET", "/liveness")
        await late.response()
        await stream.send("POST", CHAT, STREAM)
        await stream.head()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(served.server.drain())
            await reached(served, Phase.CLOSING)
            await late.send("GET", "/readiness")
            response = await late.response()
            served.server.hurry()
    assert response.status == 503
    assert response.json()["status"] == "not ready"
    assert response.headers["connection"] == "close"


async def test_what_outlives_the_grace_is_told_in_the_stream() -> None:
    async with node(for_ever, grace_s=0.05) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        await client.head()
        await served.server.drain()
        response = b""
        while part := await client.chunk():
            response += part
        assert await client.at_end()
        assert served.generations.runs[0].closed.is_set()
    last = json.loads(response.rstrip().rpartition(b"data: ")[2])
    assert last["error"]["code"] == "server_shutting_down"
    assert b"[DONE]" not in response


async def test_what_has_not_begun_when_it_is_cut_has_a_status() -> None:
    async with (
        node(silence) as served,
        connect(served.port) as plain,
        connect(served.port) as streamed,
    ):
        await plain.send("POST", CHAT, json.dumps(chat()).encode())
        await streamed.send("POST", CHAT, STREAM)
        await until(lambda: len(served.generations.runs) == 2)
        served.server.hurry()
        await served.server.drain()
        for client in (plain, streamed):
            response = await client.response()
            assert response.status == 503
            assert response.error()["code"] == "server_shutting_down"
            assert response.headers["connection"] == "close"
        assert all(run.closed.is_set() for run in served.generations.runs)


async def test_a_second_signal_skips_what_is_left_of_the_wait() -> None:
    async with (
        node(for_ever, settle_s=60.0, grace_s=60.0) as served,
        connect(served.port) as client,
    ):
        await client.send("POST", CHAT, STREAM)
        await client.head()
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            tasks.create_task(served.server.drain())
            await reached(served, Phase.SETTLING)
            served.server.hurry()
        assert served.server.phase is Phase.OVER


async def test_a_request_that_ignores_its_cut_does_not_hold_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("smg_node.http.middleware.drain_phases.CUT_S", 0.05)
    stuck = asyncio.Event()

    async def stubborn(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [*opening(), Delta(0, 0, "x", 1)]
        try:
            await asyncio.Event().wait()
        finally:
            await stuck.wait()

    async with node(stubborn) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        await client.head()
        served.server.hurry()
        async with asyncio.timeout(20):
            await served.server.drain()
        assert served.server.phase is Phase.OVER
        stuck.set()


async def test_stopping_without_a_farewell_still_closes_every_run() -> None:
    async with node(for_ever) as served, connect(served.port) as client:
        await client.send("POST", CHAT, STREAM)
        await client.head()
        async with asyncio.timeout(20):
            await served.server.stop()
            await served.generations.runs[0].closed.wait()
            await served.server.stop()


class Work:
    """Work without a request."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.cuts = 0
        self.changed: Callable[[], None] = lambda: None

    def cut(self) -> None:
        self.cuts += 1


async def test_work_that_outlives_its_request_is_waited_for() -> None:
    work = Work(1)
    async with node() as served, asyncio.TaskGroup() as tasks:
        served.server.wait_for(work)
        farewell = tasks.create_task(served.server.drain())
        await reached(served, Phase.CLOSING)
        await asyncio.sleep(0.02)
        assert not farewell.done()
        work.count = 0
        work.changed()
        await farewell
    assert work.cuts == 0


async def test_work_that_outlives_its_request_is_cut_with_the_requests() -> None:
    work = Work(1)
    async with node() as served, asyncio.TaskGroup() as tasks:
        served.server.wait_for(work)
        farewell = tasks.create_task(served.server.drain())
        await reached(served, Phase.CLOSING)
        served.server.hurry()
        await reached(served, Phase.CUTTING)
        assert work.cuts == 1
        work.count = 0
        work.changed()
        await farewell
