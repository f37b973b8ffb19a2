"""Sessions that processes of several nodes share: one of each server, credential, tenant and thread, whoever calls."""

import asyncio
from dataclasses import replace

import pytest

from smg_node.cluster.mcp.session_records import ClusterSessions
from smg_node.mcp.definition import bearer
from smg_node.mcp.failures import Failure
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, Target
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.session.session_record import SessionRecord
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import served, target, until
from support.mcp.session_world import SessionWorld, sharing


async def call(pool: ServerPool, at: Target, tool: str = "echo", arguments: str = "{}") -> str:
    outcome = await pool.call(at, tool, arguments)
    assert isinstance(outcome, CallResult), outcome
    opened = await pool.open(at)
    assert isinstance(opened, Opened)
    return opened.session.session_id


def holder(records: ClusterSessions, key: str) -> str:
    kept = records.get(key)
    return "" if kept is None else kept.record.holder


async def test_whoever_calls_goes_on_with_the_session_that_is_there() -> None:
    async with served("handshake") as server, sharing("a", "b", "c") as (_, pools):
        at = target(server)
        ids = {await call(pool, at) for pool in (*pools, *pools)}
        assert ids == {"session-1"}
        assert server.book.opened == 1
        assert server.book.methods["initialize"] == 1
        assert server.book.methods["server/discover"] == 1
        assert len(set(server.book.request_ids)) == len(server.book.request_ids)


async def test_a_node_that_dies_takes_no_session_with_it() -> None:
    world = SessionWorld()
    async with served("handshake") as server:
        at = target(server)
        async with world.pool("b") as b:
            async with world.pool("a") as a:
                await call(a, at)
            assert server.book.deleted == 0
            world.names.remove("a")
            assert await call(b, at) == "session-1"
        assert (server.book.opened, server.book.deleted) == (1, 1)
        assert not world.rows


async def test_the_last_node_that_leaves_ends_the_session() -> None:
    world = SessionWorld()
    async with served("handshake") as server, world.pool("a") as a:
        await call(a, target(server))
        await a.close()
        assert (server.book.opened, server.book.deleted) == (1, 1)


@pytest.mark.parametrize("differs", ["tenant", "credential", "thread", "definition", "guarded"])
async def test_nothing_is_shared_with_another(differs: str) -> None:
    async with served("handshake") as server, sharing("a", "b") as (_, (a, b)):
        at = target(server)
        others = {
            "tenant": replace(at, tenant="other"),
            "credential": replace(at, credential=bearer("token-of-another")),
            "thread": replace(at, scope="thread t-2"),
            "definition": target(server, protocol="2025-06-18"),
            "guarded": replace(at, guarded=True),
        }
        if differs == "guarded":
            assert isinstance(await b.call(others[differs], "echo", "{}"), Failure)
            return
        assert await call(a, at) == "session-1"
        assert await call(b, others[differs]) == "session-2"


async def test_what_no_other_request_comes_for_is_not_shared() -> None:
    async with served("handshake") as server, sharing("a") as (world, (a,)):
        at = target(server)
        await call(a, replace(at, scope="request r-1", alone=True))
        await a.call(replace(at, lasting=False), "echo", "{}")
        assert server.book.opened == 2
        assert world.writes == 0


async def test_the_modern_era_has_nothing_to_share() -> None:
    async with served("modern") as server, sharing("a", "b") as (world, (a, b)):
        at = target(server)
        assert {await call(pool, at) for pool in (a, b)} == {""}
        assert world.writes == 0


async def test_a_row_says_nothing_and_is_opened_by_the_key_alone() -> None:
    async with served("handshake") as server, sharing("a", "b") as (world, (a, b)):
        at = target(server)
        await call(a, at)
        ((key, row),) = world.rows.items()
        assert b"session-1" not in row.content
        assert len(key) == 32
        world.key = bytes(36)
        assert await call(b, at) == "session-2"


async def test_a_session_that_is_gone_is_opened_anew_by_one_and_taken_over_by_the_others() -> None:
    async with served("handshake") as server, sharing("a", "b", "c") as (_, pools):
        at = target(server)
        for pool in pools:
            await call(pool, at)
        server.book.forget()
        for pool in (*pools, *pools):
            assert await call(pool, at, "write") == "session-2"
        assert (server.book.opened, server.book.runs["write"]) == (2, 6)


async def test_of_two_that_are_opened_at_a_time_one_stays() -> None:
    slow = served("handshake", "slow:method=initialize,seconds=0.2")
    async with slow as server, sharing("a", "b") as (_, pools):
        at = target(server)
        await asyncio.gather(*(call(pool, at) for pool in pools))
        assert len({await call(pool, at) for pool in pools}) == 1
        assert server.book.opened == 2


async def test_a_session_of_a_release_that_speaks_more_is_left_to_those_who_can() -> None:
    async with served("handshake") as server, sharing("a") as (world, (a,)):
        at, records = target(server), world.records("z")
        key = records.key(at.key)
        later = SessionRecord("of-a-later-release", "2031-01-01", records.me)
        assert records.put(key, later, 60_000)
        assert [await call(a, at) for _ in range(3)] == ["session-1"] * 3
        kept = records.get(key)
        assert kept is not None
        assert kept.record == later


async def test_a_stream_of_a_session_that_another_took_the_place_of_is_let_go() -> None:
    async with served("handshake") as server, sharing("a") as (world, (a,)):
        at, records = target(server), world.records("z")
        await call(a, at)
        await until(lambda: server.book.streams == 1)
        session = server.book.open_session("2025-11-25")
        key = records.key(at.key)
        assert records.put(
            key, SessionRecord(session, "2025-11-25", records.me, lists=True), 60_000
        )
        assert await call(a, at) == session
        await until(lambda: holder(records, key) == "a.7f3c")
        assert server.book.streams == 2


async def test_the_stream_is_had_by_one_and_what_it_hears_is_known_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("smg_node.mcp.connection.RELIST_S", 0.0)
    async with served("handshake") as server, sharing("a", "b") as (world, (a, b)):
        at, records = target(server), world.records("z")
        assert isinstance(await a.list_tools(at), ToolList)
        await until(lambda: holder(records, records.key(at.key)) == "a.7f3c")
        assert isinstance(await b.list_tools(at), ToolList)
        listed, writes = server.book.methods["tools/list"], world.writes
        await server.say(jsonrpc="2.0", method="notifications/tools/list_changed")
        await until(lambda: world.writes > writes)
        for pool in (a, b, a, b):
            assert isinstance(await pool.list_tools(at), ToolList)
        assert server.book.methods["tools/list"] == listed + 2
        assert server.book.streams == 1


async def test_an_idle_session_is_ended_by_the_last_that_used_it() -> None:
    limits = McpLimits(session_idle_s=0.2)
    async with served("handshake") as server, sharing("a", "b", limits=limits) as (_, (a, b)):
        at = target(server)
        await call(a, at)
        await call(b, at)
        a.close_idle()
        assert len(a) == 1
        await asyncio.sleep(0.3)
        a.close_idle()
        await asyncio.sleep(0.1)
        assert (len(a), server.book.deleted) == (0, 0)
        b.close_idle()
        await until(lambda: server.book.deleted == 1)
        assert len(b) == 0


async def test_a_session_that_others_use_is_left_to_them() -> None:
    limits = McpLimits(session_idle_s=1.0)
    async with served("handshake") as server, sharing("a", "b", limits=limits) as (_, (a, b)):
        at = target(server)
        await call(a, at)
        for _ in range(6):
            await asyncio.sleep(0.2)
            await call(b, at)
        a.close_idle()
        await asyncio.sleep(0.1)
        assert (len(a), server.book.deleted) == (0, 0)
        assert await call(b, at) == "session-1"
        assert await call(a, at) == "session-1"


async def test_use_is_written_down_seldom() -> None:
    async with served("handshake") as server, sharing("a", "b") as (world, (a, b)):
        at = target(server)
        await call(a, at)
        await call(b, at)
        await asyncio.sleep(0.2)
        writes = world.writes
        for _ in range(20):
            await call(a, at)
            await call(b, at)
        assert world.writes == writes
        world.ahead_ms += 40_000
        await call(a, at)
        assert world.writes == writes + 1


async def test_what_is_not_defined_any_more_is_ended_when_no_other_can_call_in_it() -> None:
    limits = McpLimits(session_idle_s=1.0)
    async with served("handshake") as server, sharing("a", "b", limits=limits) as (_, (a, b)):
        at = target(server)
        await call(a, at)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(b.call(at, "slow", '{"seconds": 0.5}'))
            await until(lambda: server.book.methods["tools/call"] == 2)
            for pool in (a, b):
                pool.let_go([at.key[0]])
        assert isinstance(running.result(), CallResult)
        assert server.book.deleted == 0
        await until(lambda: server.book.deleted == 1)


async def test_a_session_with_an_id_too_long_to_travel_is_its_process_s_alone() -> None:
    async with served("handshake") as server, sharing("a", "b") as (world, (a, b)):
        opened = server.book.open_session

        def longer(revision: str) -> str:
            session = opened(revision)
            server.book.sessions["x" * 400 + session] = server.book.sessions.pop(session)
            return "x" * 400 + session

        server.book.open_session = longer  # type: ignore[method-assign]  # the server's own ids are short
        at = target(server)
        ids = [await call(pool, at) for pool in (a, b, a, b)]
        assert len(set(ids)) == 2
        assert not world.rows


async def test_a_node_alone_ends_the_sessions_of_what_gives_way_or_is_defined_no_more() -> None:
    limits = McpLimits(connections_max=1)
    async with served("handshake") as server, sharing("a", limits=limits) as (world, (a,)):
        first, second = (replace(target(server), scope=f"thread {name}") for name in "ab")
        await call(a, first)
        await call(a, second)
        await until(lambda: server.book.deleted == 1)
        a.let_go([second.key[0]])
        await until(lambda: server.book.deleted == 2)
        assert (server.book.opened, world.rows) == (2, {})


async def test_who_used_a_session_last_keeps_it_until_its_record_is_over() -> None:
    limits = McpLimits(session_idle_s=0.2)
    async with served("handshake") as server, sharing("a", "b", limits=limits) as (world, (a, _)):
        await call(a, target(server))
        await asyncio.sleep(0.3)
        # Its writer's clock, or this one, was set meanwhile.
        world.ahead_ms = -5_000
        a.close_idle()
        await asyncio.sleep(0.1)
        assert (len(a), server.book.deleted) == (1, 0)
        world.ahead_ms = 0
        a.close_idle()
        await until(lambda: server.book.deleted == 1)
        assert len(a) == 0
