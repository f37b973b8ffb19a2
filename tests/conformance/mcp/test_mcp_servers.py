"""Servers of three SDKs: one tool gives the same result by every transport and in both eras, whatever its size."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from smg_node.mcp.failures import Failure
from smg_node.mcp.pool import Target
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.tools.content import text_of, unescaped
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled
from support.mcp.real_servers import (
    PROGRAMS,
    at,
    everything_server,
    node,
    package,
    process,
    python,
    python_server,
    typescript_server,
)

pytestmark = pytest.mark.conformance
MIB = 1 << 20


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


async def opened_as(target: Target, tool: str, arguments: str) -> tuple[str, str, CallResult]:
    """Return transport and revision a server was opened with, and what a tool of it answers."""
    async with pooled() as pool:
        opened = await pool.open(target)
        assert isinstance(opened, Opened), opened
        listed = await pool.list_tools(target)
        assert isinstance(listed, ToolList), listed
        assert tool in listed.tools
        result = await pool.call(target, tool, arguments)
        assert isinstance(result, CallResult), result
        return opened.verdict.transport.value, opened.verdict.revision.name, result


async def test_the_python_sdk_by_every_transport_and_in_both_eras(
    stack: ExitStack, tmp_path: Path
) -> None:
    http = stack.enter_context(python_server("http", tmp_path / "http"))
    sse = stack.enter_context(python_server("sse", tmp_path / "sse"))
    targets = {
        ("stdio", "2026-07-28"): process(python(), PROGRAMS / "python_server.py", "stdio"),
        ("sse", "2025-11-25"): at(sse),
        ("http", "2025-11-25"): at(http, "2025-11-25"),
        ("http", "2026-07-28"): at(http),
    }
    results = []
    for ways, target in targets.items():
        *opened, result = await opened_as(target, "echo", '{"text": "ein Wort — 言葉"}')
        assert tuple(opened) == ways
        results.append(result)
    # One era spells what is not ASCII as escapes, the other does not.
    assert [unescaped(one.structured.decode()) for one in results] == [
        '{"result":"ein Wort — 言葉"}'
    ] * 4
    assert [text_of(one, bytes_max=100) for one in results] == ["ein Wort — 言葉"] * 4
    assert [one.content for one in results] == [results[0].content] * 4


async def test_server_everything_by_every_transport(stack: ExitStack, tmp_path: Path) -> None:
    http = stack.enter_context(everything_server("streamableHttp", tmp_path / "http"))
    sse = stack.enter_context(everything_server("sse", tmp_path / "sse"))
    targets = {
        "http": at(http),
        "sse": at(sse),
        "stdio": process(node(), package("server-everything"), "stdio"),
    }
    results = []
    for transport, target in targets.items():
        *opened, result = await opened_as(target, "get-tiny-image", "{}")
        assert opened == [transport, "2025-11-25"]
        results.append(result)
    assert results == [results[0]] * 3
    assert "[image/png, " in text_of(results[0], bytes_max=1000)


async def test_the_typescript_sdk_in_both_eras(tmp_path: Path) -> None:
    with typescript_server(tmp_path) as url:
        newer = await opened_as(at(url), "echo", '{"text": "x"}')
        older = await opened_as(at(url, "2025-06-18"), "echo", '{"text": "x"}')
        async with pooled() as pool:
            unknown = await pool.call(at(url), "nothing", "{}")
    assert [newer[:2], older[:2]] == [("http", "2026-07-28"), ("http", "2025-06-18")]
    assert newer[2] == older[2]
    assert isinstance(unknown, Failure)
    assert unknown.code == -32602


async def test_servers_that_only_run_as_processes(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    files = process(node(), package("server-filesystem"), tmp_path)
    *opened, result = await opened_as(files, "list_directory", f'{{"path": "{tmp_path}"}}')
    assert opened == ["stdio", "2025-11-25"]
    assert "note.txt" in text_of(result, bytes_max=1000)
    graph = process(node(), package("server-memory"))
    *opened, result = await opened_as(graph, "read_graph", "")
    assert opened == ["stdio", "2025-11-25"]
    assert '"entities": []' in text_of(result, bytes_max=1000)


Server = Callable[[Path], AbstractContextManager[str]]


@pytest.mark.parametrize(
    "server",
    [lambda folder: python_server("http", folder), typescript_server],
    ids=["python", "ts"],
)
async def test_sizes_have_the_same_outcome_in_both_eras(server: Server, tmp_path: Path) -> None:
    with server(tmp_path) as url:
        async with pooled() as pool:
            for protocol in ("2025-11-25", "2026-07-28"):
                target = at(url, protocol)
                for size in (600_000, 2 * MIB):
                    result = await pool.call(target, "big", f'{{"n": {size}}}')
                    assert isinstance(result, CallResult), (protocol, size, result)
                    assert len(result.content[0]["text"]) == size
                failed = await pool.call(target, "big", f'{{"n": {17 * MIB}}}')
                assert isinstance(failed, Failure)
                assert "mcp.answer_bytes_max" in failed.message
                again = await pool.call(target, "echo", '{"text": "still there"}')
                assert isinstance(again, CallResult)


async def test_progress_of_a_real_server_is_heard(tmp_path: Path) -> None:
    with python_server("http", tmp_path) as url:
        for protocol in ("2025-11-25", "2026-07-28"):
            *_, result = await opened_as(at(url, protocol), "slow", '{"n": 3}')
            assert text_of(result, bytes_max=10) == "done"
