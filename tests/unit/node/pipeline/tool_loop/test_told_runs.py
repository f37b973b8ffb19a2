"""Told runs: verdict, rule, outcome and time of every call, and nothing of what was said in it."""

import asyncio

from smg_node.core.journey import Ran
from smg_node.mcp.failures import Failure, bare_status
from smg_node.mcp.server_spec import ToolRule
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)

W = {"w": ["weather", "drop", "limits"]}


async def test_every_call_is_told_without_its_words() -> None:
    async def works(tool: str, arguments: str, options: CallOptions) -> CallResult | Failure:
        await asyncio.sleep(0.002)
        return bare_status(401) if tool == "limits" else CallResult(is_error="bad" in arguments)

    rows: list[tuple[str, Ran]] = []
    blocks = [
        calls("weather", '{"a":"secret"}'),
        calls("weather", '{"a":"bad"}', block=1),
        calls("drop", block=2),
        calls("limits", block=3),
        calls("nonsense", block=4),
    ]
    servers = Servers(W, works, specs={"w": {"tools": {"drop": ToolRule(approval="deny")}}})
    await heard(
        Model(speech(*blocks), speech(said("done"))),
        servers,
        request(serving("w")),
        on_run=lambda request_id, ran: rows.append((request_id, ran)),
    )
    assert {request_id for request_id, _ in rows} == {"r-1"}
    told = {(ran.tool, ran.verdict, ran.rule, ran.outcome) for _, ran in rows}
    assert told == {
        ("weather", "allow", "default", "ok"),
        ("weather", "allow", "default", "tool_error"),
        ("limits", "allow", "default", "auth"),
        ("drop", "deny", "tools.drop.approval", "refused"),
        ("nonsense", "deny", "no such tool", "refused"),
    }
    assert all(ran.ms > 0 for _, ran in rows if ran.verdict == "allow")
    assert "secret" not in repr(rows)


async def test_what_was_cut_is_told_as_cut() -> None:
    begun = asyncio.Event()

    async def never(tool: str, arguments: str, options: CallOptions) -> CallResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    rows: list[Ran] = []
    generations = loop(
        Model(speech(calls("weather"))),
        Servers(W, never),
        on_run=lambda _request_id, ran: rows.append(ran),
    )
    run = generations.start("chat", request(serving("w")), CONTEXT)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run.tell(Listener().receive))
        await begun.wait()
        task.cancel()
    assert [ran.outcome for ran in rows] == ["cut"]
