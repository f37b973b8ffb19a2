"""Counted runs: a server that counts says what really ran, by every connection that breaks."""

import asyncio

import pytest

from smg_node.core.generation.events import Listed, RunEnd
from smg_node.mcp.run_record import MAY_HAVE_RUN_TWICE, NOT_REPEATED
from support.mcp.faulty_server import pooled, served, until
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)
from support.mcp.pooled_tools import PooledTools, spec


def texts(words: int, tool: str = "echo") -> Model:
    blocks = [calls(tool, f'{{"text":"{n}"}}', block=n) for n in range(words)]
    return Model(speech(*blocks), speech(said("done")))


@pytest.mark.parametrize("era", ["modern", "handshake"])
@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_each_call_runs_once(era: str, answers: str) -> None:
    async with served(era, answers=answers) as server, pooled() as pool:
        servers = PooledTools(pool, [spec("s", server.url)])
        model = texts(20)
        listener = await heard(model, servers, request(serving("s")))
        assert server.book.runs["echo"] == 20
        assert model.results(1) == [str(n) for n in range(20)]
        assert len(listener.of(Listed)[0].tools) > 5
        assert listener.reason() == "stop"


@pytest.mark.parametrize("era", ["modern", "handshake"])
async def test_of_twenty_calls_one_loses_its_connection_and_is_not_repeated(era: str) -> None:
    async with served(era, "reset:request=7,tool=write") as server, pooled() as pool:
        servers = PooledTools(pool, [spec("s", server.url)])
        listener = await heard(texts(20, "write"), servers, request(serving("s")))
        # What was cut off had run: that is why it is said, and not done again.
        assert server.book.runs["write"] == 20
        (lost,) = [one.error for one in listener.results() if one.error is not None]
        assert (lost.type, lost.code) == ("http_error", 502)
        assert lost.message.endswith(f"may have run; {NOT_REPEATED}")


@pytest.mark.parametrize(
    ("faults", "runs", "note"),
    [("reset:times=1", 2, ""), ("reset", 2, MAY_HAVE_RUN_TWICE)],
)
async def test_what_may_always_be_repeated_is_repeated_once(
    faults: str, runs: int, note: str
) -> None:
    async with served("modern", faults) as server, pooled() as pool:
        servers = PooledTools(pool, [spec("s", server.url, replay="always")])
        listener = await heard(texts(1, "write"), servers, request(serving("s")))
        assert server.book.runs["write"] == runs
        error = listener.results()[0].error
        assert (error is None) == (not note)
        assert error is None or note in error.message


async def test_a_hint_of_a_trusted_server_lets_its_call_be_repeated() -> None:
    async with (
        served("modern", "reset:times=1", "reset:times=1,tool=write") as server,
        pooled() as pool,
    ):
        servers = PooledTools(pool, [spec("s", server.url, trust="trusted")])
        listener = await heard(texts(1, "echo"), servers, request(serving("s")))
        assert listener.results()[0].error is None
        assert server.book.runs["echo"] == 2
        listener = await heard(texts(1, "write"), servers, request(serving("s")))
        assert listener.results()[0].error is not None
        assert server.book.runs["write"] == 1


@pytest.mark.parametrize(
    ("fault", "type_", "code"),
    [
        ("401", "http_error", 401),
        ("status:code=403", "http_error", 403),
        ("status:code=429", "http_error", 429),
        ("error:code=-32000", "mcp_protocol_error", -32000),
        ("error:code=-32602,status=404", "mcp_protocol_error", -32602),
    ],
)
async def test_failures_are_those_of_the_table(fault: str, type_: str, code: int) -> None:
    async with served("modern", fault) as server, pooled() as pool:
        servers = PooledTools(pool, [spec("s", server.url)])
        listener = await heard(texts(1), servers, request(serving("s")))
        error = listener.results()[0].error
        assert error is not None
        assert (error.type, error.code) == (type_, code)
        assert server.book.runs["echo"] == 0
        assert listener.reason() == "stop"


async def test_a_tools_own_failure_is_for_the_model() -> None:
    async with served("modern") as server, pooled() as pool:
        model = texts(1, "fail")
        listener = await heard(
            model, PooledTools(pool, [spec("s", server.url)]), request(serving("s"))
        )
        error = listener.results()[0].error
        assert error is not None
        assert error.type == "mcp_tool_execution_error"
        assert model.results(1) == ["the tool says that it failed"]


@pytest.mark.parametrize("era", ["modern", "handshake"])
async def test_a_client_that_leaves_cancels_the_call_at_its_server(era: str) -> None:
    async with served(era) as server, pooled() as pool:
        model = Model(speech(calls("slow", '{"seconds":30}')))
        listener = Listener()
        run = loop(model, PooledTools(pool, [spec("s", server.url)])).start(
            "chat", request(serving("s")), CONTEXT
        )
        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(run.tell(listener.receive))
            await until(lambda: server.book.methods["tools/call"] == 1)
            task.cancel()
        assert len(listener.of(RunEnd)) == 1
        await until(lambda: server.book.cancelled == 1)
        assert server.book.runs["slow"] == 0


async def test_a_server_that_cannot_be_reached_is_told_and_the_run_goes_on() -> None:
    async with served("modern") as server, pooled() as pool:
        gone = spec("s", server.url)
        await server.close()
        listener = await heard(
            Model(speech(said("alone"))), PooledTools(pool, [gone]), request(serving("s"))
        )
        assert listener.of(Listed)[0].error
        assert listener.text() == "alone"
