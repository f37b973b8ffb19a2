"""A server whose replicas know only their own sessions, behind a switch of connections: no call fails, none runs twice."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from smg_chaos.mcp.http_server import HttpServer
from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.pool import ServerPool, Target
from smg_node.mcp.session.forgotten_session import OPENINGS_MAX, RESENDS_MANY
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled, served
from support.mcp.replicas import connection_switch


async def behind(
    stack: AsyncExitStack, *faults: str, count: int = 3
) -> tuple[ServerPool, Target, list[HttpServer]]:
    """Return a pool, its target behind a switch, and the replicas."""
    servers = [await stack.enter_async_context(served("handshake", *faults)) for _ in range(count)]
    for at, server in enumerate(servers):
        # Ids of replicas differ, as those of any server do.
        server.book.opened = at * 1000
    switch = await stack.enter_async_context(connection_switch(*(one.port for one in servers)))
    target = Target(checked(ServerDefinition("s", url=switch.url)))
    pool = await stack.enter_async_context(pooled())
    return pool, target, servers


async def test_calls_one_after_the_other_and_beside_each_other_have_one_session() -> None:
    async with AsyncExitStack() as stack:
        pool, target, servers = await behind(stack)
        assert isinstance(await pool.list_tools(target), ToolList)
        for _ in range(5):
            assert isinstance(await pool.call(target, "write", "{}"), CallResult)
        calls = [pool.call(target, "slow", '{"seconds": 0.2}') for _ in range(12)]
        outcomes = await asyncio.gather(*calls)
        assert [one for one in outcomes if isinstance(one, Failure)] == []
        assert sum(server.book.runs["write"] for server in servers) == 5
        assert sum(server.book.runs["slow"] for server in servers) == 12
        assert sum(len(server.book.sessions) for server in servers) == 1


async def test_a_connection_that_led_to_another_replica_is_not_used_again() -> None:
    async with AsyncExitStack() as stack:
        pool, target, servers = await behind(stack)
        calls = [pool.call(target, "slow", '{"seconds": 0.2}') for _ in range(6)]
        await asyncio.gather(*calls)
        strays = sum(server.book.methods["tools/call"] for server in servers) - 6
        assert strays > 0
        # By now each connection that is kept leads to the one that knows the session.
        for _ in range(20):
            assert isinstance(await pool.call(target, "write", "{}"), CallResult)
        again = sum(server.book.methods["tools/call"] for server in servers) - 26
        assert again == strays


async def test_a_session_that_no_replica_knows_is_opened_anew() -> None:
    async with AsyncExitStack() as stack:
        pool, target, servers = await behind(stack)
        assert isinstance(await pool.call(target, "write", "{}"), CallResult)
        for server in servers:
            server.book.forget()
        assert isinstance(await pool.call(target, "write", "{}"), CallResult)
        assert sum(server.book.runs["write"] for server in servers) == 2
        assert sum(len(server.book.sessions) for server in servers) == 1


@pytest.mark.parametrize(("status", "times"), [(404, 2 * (RESENDS_MANY + 1)), (400, 1)])
async def test_a_server_that_forgets_every_session_at_once_is_given_up(
    status: int, times: int
) -> None:
    forgets = f"error:code=-32000,status={status},method=tools/call"
    async with AsyncExitStack() as stack:
        pool, target, servers = await behind(stack, forgets, count=1)
        failed = await pool.call(target, "write", "{}")
        assert isinstance(failed, Failure)
        assert servers[0].book.runs["write"] == 0
        assert servers[0].book.opened <= 2
        assert servers[0].book.methods["tools/call"] == times


@pytest.mark.parametrize(("status", "code"), [(404, 502), (400, 400), (403, 403)])
async def test_a_server_that_wants_no_session_to_begin_is_given_up(status: int, code: int) -> None:
    asked: list[str] = []

    async def mcp(request: web.Request) -> web.Response:
        body = await request.json()
        asked.append(body["method"])
        if body["method"] == "notifications/initialized":
            return web.Response(status=status)
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x"}}
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return web.json_response(answer, headers={"mcp-session-id": f"s-{len(asked)}"})

    app = web.Application()
    app.router.add_post("/mcp", mcp)
    async with TestServer(app) as server, pooled() as pool:
        definition = ServerDefinition("s", url=str(server.make_url("/mcp")), protocol="2025-11-25")
        failed = await pool.call(Target(checked(definition)), "write", "{}")
    assert isinstance(failed, Failure)
    assert (failed.code, failed.kind is FailureKind.LOST) == (code, status == 404)
    assert asked.count("initialize") == (1 if status == 403 else OPENINGS_MAX)
    assert len(asked) <= OPENINGS_MAX * (RESENDS_MANY + 2)
