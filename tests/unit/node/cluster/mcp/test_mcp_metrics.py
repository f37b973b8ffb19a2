"""Counts of calls and lists, by names that nobody can invent."""

from smg_node.mcp.failures import Failure, FailureKind
from support.mcp.faulty_server import served
from support.mcp.server_steps import call, define, on, resolved, world
from support.mcp.tool_desks import Maker, context


async def test_counts_are_by_names_that_operators_and_servers_gave() -> None:
    state, maker = world(), Maker("listed", ("127.0.0.1",))
    async with served("modern") as server:
        define(state, "docs", server.url)
        async with on(state, maker=maker, dynamic=True) as servers:
            found = await resolved(servers, "docs")
            given = await resolved(servers, "client-label", url=server.url)
            await servers.list_tools(found)
            for tool in ("echo", "fail", "invented-by-a-model"):
                await call(servers, found, tool)
            await call(servers, given, "echo")
            read = maker.meters.registry.get_sample_value
            sessions = read("smg_node_mcp_sessions")
    name = "smg_node_mcp_calls_total"
    counts = {
        (sample.labels["server"], sample.labels["tool"], sample.labels["outcome"]): sample.value
        for family in maker.meters.registry.collect()
        for sample in family.samples
        if sample.name == name
    }
    assert counts["docs", "echo", "ok"] == 1
    assert counts["docs", "fail", "tool_error"] == 1
    assert counts["docs", "other", "tool_error"] == 1, (
        "this server calls an unknown tool a failed one"
    )
    assert sum(counts.values()) == 4
    assert {key[:2] for key in counts} == {
        ("docs", "echo"), ("docs", "fail"), ("docs", "other"), ("other", "other"),
    }  # fmt: skip
    assert sessions == 2
    assert read("smg_node_mcp_lists_total", {"server": "docs", "outcome": "ok"}) == 1
    assert read("smg_node_mcp_call_seconds_count", {"server": "docs"}) == 3
    assert read("smg_node_mcp_result_bytes_count", {"server": "docs"}) == 3


async def test_a_tools_own_time_bounds_its_calls() -> None:
    state = world()
    async with served("modern") as server:
        define(state, "docs", server.url, tools={"slow": {"timeout_s": 0.2}})
        async with on(state) as servers:
            found = await resolved(servers, "docs")
            outcome = await servers.call(found, "slow", '{"seconds": 30}', context())
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.TIMEOUT
