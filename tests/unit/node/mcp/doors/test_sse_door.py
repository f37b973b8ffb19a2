"""SSE, the old transport: found by asking, one stream for all, and endpoints of other origins refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import Target
from smg_node.mcp.session.opening import Opened, Transport
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled, served, until


def text(outcome: CallResult | Failure) -> str:
    assert isinstance(outcome, CallResult), outcome
    return str(outcome.content[0]["text"])


def at(url: str, transport: str = "auto") -> Target:
    return Target(checked(ServerDefinition("s", url=url, transport=transport)))


@pytest.mark.parametrize("transport", ["auto", "sse"])
async def test_an_old_server_is_opened_and_called(transport: str) -> None:
    async with served() as server, pooled() as pool:
        old = at(server.url.replace("/mcp", "/sse"), transport)
        opened = await pool.open(old)
        assert isinstance(opened, Opened)
        assert opened.verdict.transport is Transport.SSE
        calls = [pool.call(old, "slow", '{"seconds": 0.2, "steps": 4}') for _ in range(5)]
        assert [text(one) for one in await asyncio.gather(*calls)] == ["4 steps"] * 5
        assert text(await pool.call(old, "echo", '{"text": "x"}')) == "x"
        assert server.book.runs == {"slow": 5, "echo": 1}


async def test_progress_extends_the_time_of_a_call() -> None:
    async with served() as server, pooled(McpLimits(call_idle_s=0.4)) as pool:
        old = at(server.url.replace("/mcp", "/sse"))
        assert text(await pool.call(old, "slow", '{"seconds": 1, "steps": 10}')) == "10 steps"
        failed = await pool.call(old, "slow", '{"seconds": 30}')
        assert isinstance(failed, Failure)
        assert failed.kind is FailureKind.TIMEOUT
        assert text(await pool.call(old, "echo", '{"text": "x"}')) == "x"
        await until(lambda: server.book.cancelled == 1)


async def test_the_end_of_the_stream_loses_its_calls_and_the_next_one_opens_another() -> None:
    async with served() as server, pooled() as pool:
        old = at(server.url.replace("/mcp", "/sse"))
        await pool.open(old)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(pool.call(old, "slow", '{"seconds": 30}'))
            await until(lambda: server.book.methods["tools/call"] == 1)
            server.end_streams()
        failed = call.result()
        assert isinstance(failed, Failure)
        assert (failed.code, failed.sent) == (502, True)
        assert text(await pool.call(old, "echo", '{"text": "x"}')) == "x"


@asynccontextmanager
async def stream_of(body: bytes) -> AsyncIterator[str]:
    """Yield the URL of a server that answers GET with these bytes, and nothing else."""

    async def get(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="text/event-stream")

    app = web.Application()
    app.router.add_get("/sse", get)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/sse"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"event: endpoint\ndata: http://127.0.0.1:1/m\n\n", "another origin"),
        (b"event: endpoint\ndata: //evil.example/m\n\n", "another origin"),
        (b"event: endpoint\ndata: file:///etc/passwd\n\n", "another origin"),
        (b"event: endpoint\ndata: http://[x/\n\n", "another origin"),
        (b"data: hello\n\n", "no endpoint"),
        (b": nothing\n", "ended before"),
        (b"", "ended before"),
    ],
)
async def test_a_stream_without_an_endpoint_of_ours_is_refused(body: bytes, why: str) -> None:
    async with stream_of(body) as url, pooled() as pool:
        failed = await pool.open(at(url, "sse"))
        assert isinstance(failed, Failure)
        assert why in failed.message
        assert not failed.sent or failed.kind is FailureKind.PROTOCOL


async def test_what_is_no_server_at_all_says_the_first_refusal() -> None:
    async with served() as server, pooled() as pool:
        failed = await pool.open(at(server.url.replace("/mcp", "/nothing")))
        assert isinstance(failed, Failure)
        assert failed.code == 404
