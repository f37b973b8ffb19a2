"""Pool: what is shared and what is not, lists that are kept, limits, and idle connections."""

import asyncio
from collections.abc import Awaitable

from smg_node.mcp.definition import bearer
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import WAITING_PER_SLOT, Target
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled, served, target, until


async def test_connections_are_by_server_credential_and_tenant() -> None:
    async with served("handshake") as server, pooled() as pool:
        at = target(server)
        others = [at, Target(at.definition, tenant="b"), Target(at.definition, bearer("token-1"))]
        for one in (*others, *others):
            assert isinstance(await pool.call(one, "echo", "{}"), CallResult)
        assert len(pool) == 3
        assert server.book.opened == 3


async def test_a_verdict_serves_all_tenants_of_a_credential() -> None:
    async with served("both") as server, pooled() as pool:
        at = target(server)
        await pool.open(at)
        await pool.open(Target(at.definition, tenant="b"))
        assert server.book.methods["server/discover"] == 1


async def test_a_list_is_kept_for_as_long_as_the_server_says() -> None:
    async with served("modern") as server, pooled() as pool:
        at = target(server)
        for _ in range(3):
            assert isinstance(await pool.list_tools(at), ToolList)
        assert server.book.methods["tools/list"] == 1
        await pool.list_tools(at, fresh=True)
        assert server.book.methods["tools/list"] == 2


async def test_a_list_without_a_time_has_ours() -> None:
    async with served("handshake") as server, pooled(McpLimits(list_ttl_s=0.0)) as pool:
        at = target(server)
        await pool.list_tools(at)
        await pool.list_tools(at)
        assert server.book.methods["tools/list"] == 2


async def test_an_old_list_serves_while_the_server_is_away() -> None:
    async with pooled(McpLimits(list_ttl_s=0.0)) as pool:
        async with served("handshake") as server:
            at = target(server)
            first = await pool.list_tools(at)
        assert await pool.list_tools(at) == first
        assert isinstance(await pool.list_tools(at, fresh=True), Failure)


async def test_a_list_in_pages_is_whole_and_sorted() -> None:
    async with served("modern", page=3) as server, pooled() as pool:
        listed = await pool.list_tools(target(server))
        assert isinstance(listed, ToolList)
        assert list(listed.tools) == sorted(listed.tools)
        assert len(listed.tools) == 10
        assert server.book.methods["tools/list"] == 4


async def test_no_more_calls_are_open_than_the_definition_allows() -> None:
    async with served("modern") as server, pooled() as pool:
        at = target(server, concurrency=2)
        waiting = 2 * (1 + WAITING_PER_SLOT)
        calls = [pool.call(at, "echo", "{}") for _ in range(waiting + 5)]
        outcomes = await asyncio.gather(*calls)
        refused = [one for one in outcomes if isinstance(one, Failure)]
        assert len(refused) == 5
        assert {one.kind for one in refused} == {FailureKind.REFUSED}
        assert "concurrency 2" in refused[0].message
        assert server.book.runs["echo"] == waiting


async def test_a_call_that_finds_no_free_place_in_its_time_has_not_run() -> None:
    async with served("modern") as server, pooled() as pool:
        at = target(server, concurrency=1)
        slow = pool.call(at, "slow", '{"seconds": 1}')
        late = pool.call(at, "echo", "{}", total_s=0.2)
        done, refused = await asyncio.gather(slow, late)
        assert isinstance(done, CallResult)
        assert isinstance(refused, Failure)
        assert not refused.sent
        assert server.book.runs["echo"] == 0


async def test_a_call_whose_time_is_over_is_not_sent_by_an_open_connection_either() -> None:
    async with served("modern") as server, pooled() as pool:
        at = target(server)
        await pool.call(at, "echo", "{}")
        late = await pool.call(at, "echo", "{}", total_s=0.0)
        assert isinstance(late, Failure)
        assert (late.kind, late.sent) == (FailureKind.TIMEOUT, False)
        assert server.book.runs["echo"] == 1


async def test_an_idle_connection_is_closed_and_its_session_ended() -> None:
    async with served("handshake") as server, pooled(McpLimits(session_idle_s=0.0)) as pool:
        at = target(server)
        await pool.call(at, "echo", "{}")
        pool.close_idle()
        assert len(pool) == 0
        await until(lambda: server.book.deleted == 1)
        assert isinstance(await pool.call(at, "echo", "{}"), CallResult)


async def test_a_connection_in_use_is_not_idle() -> None:
    async with served("handshake") as server, pooled(McpLimits(session_idle_s=0.0)) as pool:
        at = target(server)
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(pool.call(at, "slow", '{"seconds": 0.5}'))
            await asyncio.sleep(0.2)
            pool.close_idle()
        assert isinstance(slow.result(), CallResult)
        assert server.book.opened == 1


async def test_while_idle_connections_are_closed_none_of_them_is_used() -> None:
    async with served("handshake") as server, pooled(McpLimits(session_idle_s=0.0)) as pool:
        two = [Target(target(server).definition, tenant=tenant) for tenant in "ab"]
        for one in two:
            await pool.call(one, "echo", "{}")
        pool.close_idle()
        slow = [pool.call(one, "slow", '{"seconds": 0.3}') for one in two]
        outcomes = await asyncio.gather(*slow)
        assert all(isinstance(one, CallResult) for one in outcomes)
        await until(lambda: server.book.deleted == 2)
        assert server.book.opened == 4


async def test_the_end_of_the_pool_ends_every_session() -> None:
    async with served("handshake") as server:
        async with pooled() as pool:
            await pool.open(target(server))
            await pool.open(Target(target(server).definition, tenant="b"))
        assert server.book.deleted == 2


async def test_the_end_of_the_pool_ends_connections_that_have_calls_under_way() -> None:
    async with served("handshake") as server, asyncio.TaskGroup() as group:
        at = target(server)
        passing = Target(at.definition, lasting=False)
        async with pooled() as pool:
            slow = [pool.call(one, "slow", '{"seconds": 60}') for one in (at, passing)]
            calls = list(map(group.create_task, slow))
            await until(lambda: server.book.methods["tools/call"] == 2)
            pool.let_go({at.key[0]})
        assert server.book.deleted == 2
        ended = await asyncio.gather(*calls)
        assert [isinstance(one, Failure) and one.kind for one in ended] == [FailureKind.LOST] * 2
        late = await pool.call(passing, "echo", "{}")
        assert isinstance(late, Failure)
        assert late.kind is FailureKind.REFUSED


async def test_beyond_its_limit_the_longest_idle_connection_gives_way() -> None:
    async with served("handshake") as server, pooled(McpLimits(connections_max=2)) as pool:
        a, b, c = (Target(target(server).definition, tenant=tenant) for tenant in "abc")
        for one in (a, b, a, c):
            assert isinstance(await pool.call(one, "echo", "{}"), CallResult)
        assert len(pool) == 2
        await until(lambda: server.book.deleted == 1)
        assert server.book.opened == 3
        busy = [pool.call(one, "slow", '{"seconds": 0.5}') for one in (a, c)]
        late = asyncio.sleep(0.2, pool.call(b, "echo", "{}"))
        *_, refused = await asyncio.gather(*busy, _of(late))
        assert isinstance(refused, Failure)
        assert "2 servers" in refused.message


async def _of(late: Awaitable[Awaitable[CallResult | Failure]]) -> CallResult | Failure:
    return await (await late)
