"""The node's own MCP server, as real clients and the official conformance suite find it."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.http.http_node import Node, node
from support.mcp.faulty_server import served
from support.mcp.judged_node import judge, judged_server
from support.mcp.pooled_tools import spec, tools_of
from support.mcp.real_servers import FOLDER, PROGRAMS, python, python_server
from support.mcp.real_servers import node as node_js

pytestmark = pytest.mark.conformance
SESSIONS = {"server-initialize", "server-session-lifecycle", "server-sse-multiple-streams"}
"""Scenarios with checks about session ids where a server gives some."""
OFFERED = {
    "2026-07-28": {
        "server-stateless",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
        "dns-rebinding-protection",
        "http-header-validation",
        "http-custom-header-server-validation",
        "json-schema-2020-12",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-request-state",
        "input-required-result-multiple-input-requests",
        "input-required-result-multi-round",
        "input-required-result-missing-input-response",
        "input-required-result-tampered-state",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
    },
    "2025-11-25": {
        "server-initialize",
        "ping",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
        "dns-rebinding-protection",
        "json-schema-2020-12",
    },
}


@asynccontextmanager
async def in_front_of(url: str, **said: Any) -> AsyncIterator[Node]:
    """Yield a node whose only server of tools, s, is there."""
    async with tools_of(spec("s", url, **said)) as tools, node() as at:
        at.parts.offered_tools = lambda: tools
        yield at


async def told_by(command: Sequence[str | Path]) -> Mapping[str, Any]:
    """Return what a client printed."""
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    told: Mapping[str, Any] = json.loads(done.stdout)
    return told


async def python_told(url: str, mode: str, tool: str, **arguments: Any) -> Mapping[str, Any]:
    """Return what the client of the Python SDK is told."""
    program = PROGRAMS / "python_client.py"
    return await told_by([python(), program, url, mode, tool, json.dumps(arguments)])


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_no_scenario_passes_on_a_server_and_fails_through_a_node(
    revision: str, tmp_path: Path
) -> None:
    with judged_server(tmp_path / "server") as url:
        async with in_front_of(url) as at:
            through = f"http://127.0.0.1:{at.port}/mcp/s"
            ours = await asyncio.to_thread(judge, through, revision, tmp_path / "ours")
            theirs = await asyncio.to_thread(judge, url, revision, tmp_path / "theirs")
    for name, direct in theirs.items():
        assert ours[name].failed <= direct.failed, name
        assert ours[name].passed >= direct.passed or name in SESSIONS, name
    assert {name for name in OFFERED[revision] if ours[name].failed} == set()


@pytest.mark.parametrize(("mode", "revision"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_a_python_client_of_each_era_uses_a_server_of_each(
    mode: str, revision: str, protocol: str, tmp_path: Path
) -> None:
    with python_server("http", tmp_path) as url:
        async with in_front_of(url, protocol=protocol) as at:
            where = f"http://127.0.0.1:{at.port}/mcp"
            told = await python_told(where, mode, "s__slow", n=3)
            plain = await python_told(f"{where}/s", mode, "echo", text="ein Wort — 言葉")
    assert told["revision"] == revision
    assert told["tools"] == ["s__big", "s__echo", "s__slow"]
    assert (told["text"], told["is_error"]) == ("done", False)
    assert told["steps"] == [[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]]
    assert plain["tools"] == ["big", "echo", "slow"]
    assert plain["text"] == "ein Wort — 言葉"


async def test_a_python_client_asks_its_person_and_goes_on() -> None:
    async with served() as server, in_front_of(server.url, trust="untrusted") as at:
        url = f"http://127.0.0.1:{at.port}/mcp/s"
        told = await python_told(url, "auto", "asks", text="x")
        older = await python_told(url, "legacy", "echo", text="x")
        unknown = await python_told(url, "auto", "nothing")
        runs = dict(server.book.runs)
    assert told["asked"] == ['Allow s to run asks with {"text":"x"}?', "Shall I?"]
    assert told["text"] == "the person said accept"
    assert older["is_error"] is True
    assert older["text"].startswith("not run: ")
    assert unknown["code"] == -32602
    assert runs == {"asks": 1}


async def test_a_typescript_client_of_the_older_era() -> None:
    async with served(answers="sse") as server, in_front_of(server.url) as at:
        program, url = PROGRAMS / "typescript_client.mjs", f"http://127.0.0.1:{at.port}/mcp"
        arguments = json.dumps({"seconds": 0.3, "steps": 3})
        told = await told_by([node_js(), program, FOLDER / "node", url, "s__slow", arguments])
        unknown = await told_by([node_js(), program, FOLDER / "node", url, "s__nothing", "{}"])
    assert (told["revision"], told["session"]) == ("2025-11-25", None)
    assert "s__echo" in told["tools"]
    assert (told["text"], told["is_error"]) == ("3 steps", False)
    assert told["steps"] == [[1, 3], [2, 3], [3, 3]]
    assert unknown["code"] == -32602
