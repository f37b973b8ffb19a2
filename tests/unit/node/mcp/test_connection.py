"""Connections to a server by HTTP: both eras, both forms of answers, and every fault has its row of the table."""

import asyncio
import json

import pytest

from smg_chaos.mcp.tools import TOOLS
from smg_node.mcp.definition import ServerDefinition, bearer, checked
from smg_node.mcp.failures import Failure, FailureKind, responses_error
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import Target
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.session.tool_call import declined
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled, served, target, until

ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])
ANSWERS = pytest.mark.parametrize("answers", ["json", "sse"])


def text(outcome: CallResult | Failure) -> str:
    assert isinstance(outcome, CallResult), outcome
    return str(outcome.content[0]["text"])


def failure(outcome: CallResult | ToolList | Failure) -> Failure:
    assert isinstance(outcome, Failure), outcome
    return outcome


@ERAS
@ANSWERS
async def test_a_server_is_opened_listed_and_called(era: str, answers: str) -> None:
    async with served(era, answers=answers) as server, pooled() as pool:
        at = target(server)
        opened = await pool.open(at)
        assert isinstance(opened, Opened)
        assert opened.verdict.revision.era.value == era
        assert opened.session.facts.name == "smg-chaos"
        listed = await pool.list_tools(at)
        assert isinstance(listed, ToolList)
        assert list(listed.tools) == sorted(TOOLS)
        added = await pool.call(at, "add", '{"a": 9007199254740993, "b": 1}')
        assert isinstance(added, CallResult)
        assert json.loads(added.structured) == {"sum": 9007199254740994}
        assert text(await pool.call(at, "routed", '{"region": "eu", "text": "x"}')) == "x"
        assert text(await pool.call(at, "nothing", "")) == "Unknown tool: nothing"
        assert server.book.runs == {"add": 1, "routed": 1}
        assert len(set(server.book.request_ids)) == len(server.book.request_ids)


async def test_whoever_waits_for_a_list_that_fails_does_not_ask_again() -> None:
    asked = 0

    async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.close()

    server = await asyncio.start_server(closes, "127.0.0.1", 0)
    async with server, pooled() as pool:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        at = Target(checked(ServerDefinition("s", url=url)))
        failure(await pool.list_tools(at))
        once = asked
        lists = await asyncio.gather(*(pool.list_tools(at) for _ in range(8)))
        assert asked == 2 * once
        assert {failure(one).kind for one in lists} == {FailureKind.LOST}
        failure(await pool.list_tools(at))
        assert asked == 3 * once


async def test_an_old_list_is_not_tried_to_be_renewed_with_every_request() -> None:
    away = served("handshake", "status:code=503,method=tools/list,request=2")
    async with away as server, pooled(McpLimits(list_ttl_s=0.0)) as pool:
        at = target(server)
        first = await pool.list_tools(at)
        again = [await pool.list_tools(at) for _ in range(3)]
        assert server.book.methods["tools/list"] == 2
        assert isinstance(first, ToolList)
        assert all(isinstance(one, ToolList) and one.tools == first.tools for one in again)


async def test_whoever_waits_for_a_new_list_that_fails_has_the_old_one() -> None:
    away = served("handshake", "status:code=503,method=tools/list,request=2")
    async with away as server, pooled(McpLimits(list_ttl_s=0.0)) as pool:
        at = target(server)
        first = await pool.list_tools(at)
        fresh, waited = await asyncio.gather(pool.list_tools(at, fresh=True), pool.list_tools(at))
        assert failure(fresh).status == 503
        assert isinstance(first, ToolList)
        assert isinstance(waited, ToolList)
        assert waited.tools == first.tools
        assert server.book.methods["tools/list"] == 2


async def test_a_server_of_both_eras_is_spoken_to_in_the_newer_one_unless_said() -> None:
    async with served("both") as server, pooled() as pool:
        newer = await pool.open(target(server))
        older = await pool.open(target(server, protocol="2025-06-18"))
        assert isinstance(newer, Opened)
        assert isinstance(older, Opened)
        assert newer.verdict.revision.name == "2026-07-28"
        assert older.verdict.revision.name == "2025-06-18"


@ERAS
async def test_one_broken_connection_loses_one_of_fifty_calls(era: str) -> None:
    async with served(era, "reset:request=23") as server, pooled() as pool:
        at = target(server, concurrency=50)
        await pool.open(at)
        calls = [pool.call(at, "slow", '{"seconds": 0.3}') for _ in range(50)]
        outcomes = await asyncio.gather(*calls)
        failures = [one for one in outcomes if isinstance(one, Failure)]
        assert [one.code for one in failures] == [502]
        assert "may have run" in failures[0].message
        assert failures[0].sent
        assert server.book.runs["slow"] == server.book.methods["tools/call"] == 50
        assert len(outcomes) - len(failures) == 49


@ERAS
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 503])
async def test_a_status_alone_is_an_http_error(era: str, status: int) -> None:
    # A second 404 is no session that is gone: that was looked for once.
    spec = f"status:code={status},retry_after=7"
    async with served(era, spec) as server, pooled() as pool:
        failed = failure(await pool.call(target(server), "echo", "{}"))
        assert responses_error(failed)["type"] == "http_error"
        assert failed.code == status
        assert failed.retry_after_s == 7
        assert "html" not in failed.message
        assert failed.outcome == ("auth" if status == 401 else "http")
        assert server.book.runs["echo"] == 0


@ERAS
@pytest.mark.parametrize("status", [200, 400, 404])
async def test_a_json_rpc_error_is_one_at_any_status(era: str, status: int) -> None:
    async with served(era, f"error:code=-32000,status={status}") as server, pooled() as pool:
        failed = failure(await pool.call(target(server), "echo", "{}"))
        assert responses_error(failed) == {
            "type": "mcp_protocol_error",
            "code": -32000,
            "message": "on purpose",
        }


@ERAS
@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        ("garbage", FailureKind.PROTOCOL, -32700),
        ("accepted", FailureKind.PROTOCOL, -32700),
        ("401", FailureKind.HTTP, 401),
        ("redirect:code=307,to=http://127.0.0.1:1/", FailureKind.HTTP, 307),
        ("redirect:code=302,to=/mcp", FailureKind.HTTP, 302),
        ("redirect:code=307", FailureKind.LOST, 502),
    ],
)
async def test_other_answers_have_their_rows_too(
    era: str, fault: str, kind: FailureKind, code: int
) -> None:
    async with served(era, fault) as server, pooled() as pool:
        failed = failure(await pool.call(target(server), "echo", "{}"))
        assert (failed.kind, failed.code) == (kind, code)


async def test_one_redirect_within_the_origin_is_followed() -> None:
    async with served("modern", "redirect:times=1") as server, pooled() as pool:
        assert text(await pool.call(target(server), "echo", '{"text": "x"}')) == "x"


@ERAS
async def test_sizes_have_the_same_outcome_in_both_eras(era: str) -> None:
    limits = McpLimits(answer_bytes_max=1 << 20)
    for answers in ("json", "sse"):
        async with served(era, answers=answers) as server, pooled(limits) as pool:
            at = target(server)
            assert len(text(await pool.call(at, "big", '{"bytes": 600000}'))) == 600_000
            failed = failure(await pool.call(at, "big", '{"bytes": 2000000}'))
            assert "mcp.answer_bytes_max" in failed.message
            assert text(await pool.call(at, "echo", '{"text": "still"}')) == "still"


async def test_a_session_that_the_server_forgot_is_opened_anew_and_the_call_runs_once() -> None:
    async with served("handshake", "forget:request=2") as server, pooled() as pool:
        at = target(server)
        for _ in range(3):
            assert text(await pool.call(at, "write", '{"text": "x"}')) == "x"
        assert server.book.opened == 2
        assert server.book.runs["write"] == 3


async def test_calls_beside_each_other_open_a_forgotten_session_once() -> None:
    async with served("handshake") as server, pooled() as pool:
        at = target(server)
        await pool.open(at)
        server.book.forget()
        outcomes = await asyncio.gather(*(pool.call(at, "write", "{}") for _ in range(10)))
        assert all(isinstance(one, CallResult) for one in outcomes)
        assert (server.book.opened, server.book.runs["write"]) == (2, 10)


async def test_a_list_opens_a_forgotten_session_too() -> None:
    async with served("handshake") as server, pooled() as pool:
        at = target(server)
        await pool.open(at)
        server.book.forget()
        assert isinstance(await pool.list_tools(at), ToolList)
        assert server.book.opened == 2


async def test_a_broken_stream_of_the_handshake_era_is_asked_for_the_rest() -> None:
    async with served("handshake", "cut:times=1") as server, pooled() as pool:
        at = target(server)
        assert text(await pool.call(at, "slow", '{"seconds": 0.3, "steps": 3}')) == "3 steps"
        assert server.book.runs["slow"] == 1
        assert server.book.methods["tools/call"] == 1


async def test_a_broken_stream_of_the_modern_era_has_lost_the_call() -> None:
    async with served("modern", "cut") as server, pooled() as pool:
        failed = failure(await pool.call(target(server), "write", "{}"))
        assert (failed.code, failed.sent) == (502, True)
        assert "may have run" in failed.message


@ERAS
async def test_what_does_nothing_is_sent_again_where_no_answer_came(era: str) -> None:
    opener = "server/discover" if era == "modern" else "initialize"
    faults = [f"reset:method={method},times=1" for method in (opener, "tools/list", "tools/call")]
    async with served(era, *faults) as server, pooled() as pool:
        at = target(server)
        assert isinstance(await pool.list_tools(at), ToolList)
        assert failure(await pool.call(at, "write", "{}")).code == 502
        counted = server.book.methods
        assert [counted[one] for one in (opener, "tools/list", "tools/call")] == [2, 2, 1]


async def test_a_server_that_cannot_be_reached_has_run_nothing() -> None:
    async with served() as server:
        url = server.url
    async with pooled() as pool:
        failed = failure(
            await pool.call(Target(checked(ServerDefinition("s", url=url))), "echo", "{}")
        )
        assert (failed.code, failed.sent) == (502, False)
        assert "failed to connect" in failed.message


async def test_headers_that_a_call_lacks_are_learned_from_the_list() -> None:
    async with served("modern") as server, pooled() as pool:
        assert (
            text(await pool.call(target(server), "routed", '{"region": "eu", "text": "x"}')) == "x"
        )
        assert server.book.methods == {"server/discover": 1, "tools/call": 2, "tools/list": 1}
        assert server.book.runs["routed"] == 1


@pytest.mark.parametrize("region", ["", " eu ", "Zürich — 言葉", "=?base64?ZXU=?=", "a\nb"])
async def test_a_header_repeats_any_argument(region: str) -> None:
    async with served("modern") as server, pooled() as pool:
        arguments = json.dumps({"region": region, "text": "x"})
        assert text(await pool.call(target(server), "routed", arguments)) == "x"
        assert server.book.runs["routed"] == 1


async def test_what_the_server_asks_a_person_is_declined_or_handed_up() -> None:
    async with served("modern") as server, pooled() as pool:
        at = target(server)
        assert text(await pool.call(at, "asks", "{}")) == "the person said decline"
        assert server.book.runs["asks"] == 0
        yes = {"sure": {"action": "accept", "content": {}}}
        said = await pool.call(at, "asks", "{}", answerer=lambda asked: yes)
        assert text(said) == "the person said accept"
        assert declined({}) == {}


async def test_a_task_is_waited_for() -> None:
    async with served("modern") as server, pooled() as pool:
        assert text(await pool.call(target(server), "task", '{"text": "done"}')) == "done"
        assert server.book.methods["tasks/get"] == 2
        assert server.book.runs["task"] == 1


@pytest.mark.parametrize("fault", ["status:code=503", "reset"])
async def test_a_task_is_asked_for_again_after_its_server_was_away(fault: str) -> None:
    away = f"{fault}{',' if ':' in fault else ':'}method=tasks/get,times=2"
    async with served("modern", away) as server, pooled() as pool:
        assert text(await pool.call(target(server), "task", '{"text": "done"}')) == "done"
        assert server.book.methods["tools/call"] == 1
        assert server.book.methods["tasks/get"] > 2


async def test_a_task_that_nobody_waits_for_is_cancelled() -> None:
    async with served("modern") as server, pooled() as pool:
        at = target(server)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.call(at, "task", "{}"), 0.5)
        await until(lambda: server.book.cancelled == 1)


@ERAS
async def test_progress_extends_the_time_of_a_call_and_silence_ends_it(era: str) -> None:
    limits = McpLimits(call_idle_s=0.5)
    async with served(era, answers="sse") as server, pooled(limits) as pool:
        at = target(server)
        assert text(await pool.call(at, "slow", '{"seconds": 1.5, "steps": 15}')) == "15 steps"
        failed = failure(await pool.call(at, "slow", '{"seconds": 30}'))
        assert (failed.kind, failed.code, failed.sent) == (FailureKind.TIMEOUT, 504, True)
        assert "0.5 s" in failed.message
        await until(lambda: server.book.cancelled == 1)


async def test_no_progress_extends_the_time_in_all() -> None:
    limits = McpLimits(call_idle_s=0.3, call_total_s=0.6)
    async with served("modern", answers="sse") as server, pooled(limits) as pool:
        failed = failure(await pool.call(target(server), "slow", '{"seconds": 9, "steps": 90}'))
        assert "in all" in failed.message


@ERAS
async def test_a_call_that_nobody_waits_for_is_cancelled_at_the_server(era: str) -> None:
    async with served(era) as server, pooled() as pool:
        at = target(server)
        await pool.open(at)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.call(at, "slow", '{"seconds": 30}'), 0.3)
        await until(lambda: server.book.cancelled == 1)
        assert server.book.runs["slow"] == 0
        assert server.book.methods["notifications/cancelled"] == (1 if era == "handshake" else 0)


async def test_a_credential_is_shown_and_never_told() -> None:
    async with served("modern", token="right-token") as server, pooled() as pool:
        at = target(server)
        assert failure(await pool.call(at, "echo", "{}")).outcome == "auth"
        right = Target(at.definition, bearer("right-token"))
        assert text(await pool.call(right, "echo", '{"text": "in"}')) == "in"
        wrong = await pool.open(Target(at.definition, bearer("wrong-token")))
        assert isinstance(wrong, Failure)
        assert "token" not in wrong.message


async def test_arguments_that_are_no_object_are_not_sent() -> None:
    async with served("modern") as server, pooled() as pool:
        failed = failure(await pool.call(target(server), "echo", "[1]"))
        assert (failed.code, failed.sent) == (-32602, False)
        assert server.book.methods == {}


@ERAS
async def test_trace_headers_reach_the_server(era: str) -> None:
    async with served(era) as server, pooled() as pool:
        trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
        assert text(await pool.call(target(server), "echo", '{"text": "x"}', trace=trace)) == "x"


async def test_an_era_that_changed_is_found_out() -> None:
    async with served("both") as server, pooled() as pool:
        at = target(server)
        assert isinstance(await pool.open(at), Opened)
        server.become("handshake")
        # The modern request is refused by the older server; the verdict is dropped with the next opening.
        failure(await pool.call(at, "echo", "{}"))
        assert text(await pool.call(at, "echo", '{"text": "x"}')) == "x"
        assert server.book.opened == 1
