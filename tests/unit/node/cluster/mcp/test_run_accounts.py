"""Runs of tools are charged before they leave, and counted with what they cost once they are over."""

import asyncio

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.cluster.mcp.run_accounts import RunAccounts
from smg_node.cluster.mcp.tool_servers import ClusterToolServers
from smg_node.core.prices.price_list import PriceList
from smg_node.mcp.failures import Failure, prompt_text
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.system_clock import SystemClock
from support.http.request_usage import Wall
from support.mcp.faulty_server import served, until
from support.mcp.server_steps import define, on, resolved, world
from support.mcp.tool_desks import context
from support.rights.fake_rights import LimitWorld, door_of, limit, whole

_DAY_MS = 86_400_000


class Accounts:
    """A limit on runs of `docs/echo`, and a usage book."""

    def __init__(self, runs: int | None, **fields: int) -> None:
        self.book = UsageBook(PriceList(), now_ms=Wall().now_ms, life="a")
        limits = LimitWorld()
        self.door = door_of(limits)
        match = limit("requests", scope="tool=docs/echo", window_ms=_DAY_MS)
        self.share = limits.add(match, runs or 0)
        limits.rules.matches.clear()
        if runs is not None:
            limits.rules.tools.setdefault("docs/echo", []).append(match)

    def join(self, servers: ClusterToolServers) -> None:
        servers.accounts = RunAccounts(self.door, self.book, SystemClock())

    def counted(self) -> dict[str, tuple[int, int, int]]:
        """Runs, failed ones, cost in millionths, by tenant and tool."""
        return {
            f"{one.tenant} {one.tool}": (one.runs, one.failed, one.cost)
            for one in self.book.lines()
        }


async def echo(servers: ClusterToolServers, tool: str = "echo") -> CallResult | Failure:
    server = await resolved(servers, "docs", "acme")
    return await servers.call(server, tool, '{"text": "hi"}', context("acme", "k1"), CallOptions())


async def test_a_used_up_limit_keeps_a_run_from_being_sent() -> None:
    state, accounts = world(), Accounts(2)
    async with served() as server:
        define(state, "docs", server.url, tools={"echo": {"price_per_call": "0.5"}})
        async with on(state) as servers:
            accounts.join(servers)
            came = [await echo(servers) for _ in range(3)]
            assert [isinstance(one, CallResult) for one in came] == [True, True, False]
            last = came[2]
            assert isinstance(last, Failure)
            assert (last.outcome, last.sent) == ("limited", False)
            assert prompt_text(last).startswith("not run: the limit of tool=docs/echo is used up")
            assert last.retry_after_s
            assert isinstance(await echo(servers, "write"), CallResult)
        assert server.book.runs == {"echo": 2, "write": 1}
    assert whole(accounts.share) == (0, 2)
    assert accounts.counted() == {
        "acme docs/echo": (2, 0, 1_000_000),
        "acme docs/write": (1, 0, 0),
    }


async def test_what_was_never_sent_goes_back_and_is_not_counted() -> None:
    state, accounts = world(), Accounts(2)
    define(state, "docs", "http://127.0.0.1:9/mcp")
    async with on(state) as servers:
        accounts.join(servers)
        failed = await echo(servers)
    assert isinstance(failed, Failure)
    assert (failed.outcome, failed.sent) == ("lost", False)
    assert whole(accounts.share) == (2, 0)
    assert accounts.counted() == {}


async def test_a_run_whose_caller_leaves_stays_spent_and_is_counted_as_failed() -> None:
    state, accounts = world(), Accounts(2)
    async with served("both", "slow:seconds=30") as server:
        define(state, "docs", server.url)
        async with on(state) as servers:
            accounts.join(servers)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(echo(servers))
                await until(lambda: server.book.methods["tools/call"] == 1)
                running.cancel()
    assert running.cancelled()
    assert whole(accounts.share) == (1, 1)
    assert accounts.counted() == {"acme docs/echo": (1, 1, 0)}


async def test_without_limits_runs_are_counted_all_the_same() -> None:
    state, accounts = world(), Accounts(None)
    async with served() as server:
        define(state, "docs", server.url)
        async with on(state) as servers:
            servers.accounts = RunAccounts(None, accounts.book, SystemClock())
            assert isinstance(await echo(servers), CallResult)
    assert accounts.counted() == {"acme docs/echo": (1, 0, 0)}
