"""The node's own MCP server with a key, and models as its tools, as four official and common clients find them."""

import asyncio
import json
import subprocess
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from smg_node.core.generation.events import Delta, Event
from support.history.fake_runs import FakeRun, Script
from support.http.http_node import Node, ending, for_ever, hello, node, opening
from support.http.raw_http import until
from support.mcp.faulty_server import served
from support.mcp.pooled_tools import spec, tools_of
from support.mcp.real_servers import FOLDER, PROGRAMS, inspector, python
from support.mcp.real_servers import node as node_js
from support.mcp.serving_node import keys_of

pytestmark = pytest.mark.conformance
ASKED: Final = {"prompt": "ein Wort — 言葉", "max_tokens": 9}
MODELS: Final = {"m": "Knows plants.", "org/big-model": ""}
NAMES: Final = ["models__m", "models__org_big-model"]
ERAS: Final = [("legacy", "2025-11-25"), ("auto", "2026-07-28")]


async def slowly(_run: FakeRun) -> AsyncIterator[Sequence[Event]]:
    """Say "Hello" in three wake-ups, far enough from each other for a word about each."""
    yield opening()
    for piece in ("He", "ll", "o"):
        yield [Delta(0, 0, piece, 1)]
        await asyncio.sleep(0.3)
    yield ending("Hello")


@asynccontextmanager
async def exposing(script: Script = slowly) -> AsyncIterator[tuple[Node, str]]:
    """Yield a node that has models as tools, and the address of its MCP server."""
    async with node(script) as at:
        at.parts.exposed_models = lambda: MODELS
        yield at, f"http://127.0.0.1:{at.port}/mcp"


async def told_by(command: Sequence[str | Path], folder: Path) -> Mapping[str, Any]:
    """Return what a client printed; `folder` is its home."""
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told: Mapping[str, Any] = json.loads(done.stdout)
    return told


def python_client(url: str, mode: str, tool: str, arguments: Any) -> Sequence[str | Path]:
    return [python(), PROGRAMS / "python_client.py", url, mode, tool, json.dumps(arguments)]


def typescript_client(url: str, mode: str, tool: str, arguments: Any) -> Sequence[str | Path]:
    program = PROGRAMS / "typescript_client_2.mjs"
    return [node_js(), program, FOLDER / "node", url, mode, tool, json.dumps(arguments)]


def fastmcp_client(url: str, key: str, tool: str, arguments: Any) -> Sequence[str | Path]:
    return [python(), PROGRAMS / "fastmcp_client.py", url, key, tool, json.dumps(arguments)]


@pytest.mark.parametrize("client", [python_client, typescript_client], ids=["python", "typescript"])
@pytest.mark.parametrize(("mode", "revision"), ERAS, ids=["old", "new"])
async def test_an_sdk_of_each_era_asks_a_model_and_hears_of_its_progress(
    client: Any, mode: str, revision: str, tmp_path: Path
) -> None:
    async with exposing() as (at, url):
        told = await told_by(client(url, mode, "models__m", ASKED), tmp_path)
        unknown = await told_by(client(url, mode, "models__x", ASKED), tmp_path)
        plain = await told_by(client(f"{url}/models", mode, "m", ASKED), tmp_path)
        wrong = await told_by(client(url, mode, "models__m", {"prompt": "x", "n": 2}), tmp_path)
        assert [run.request.model for run in at.generations.runs] == ["m", "m"]
    assert (told["revision"], told["tools"]) == (revision, NAMES)
    assert (told["text"], told["is_error"]) == ("Hello", False)
    assert told["steps"] == [[1, 9], [2, 9], [3, 9]]
    assert unknown["code"] == -32602
    assert plain["tools"] == ["m", "org_big-model"]
    assert (wrong["is_error"], wrong["text"][:12]) == (True, "not run: 'n'")


async def test_a_client_that_ends_ends_its_generation(tmp_path: Path) -> None:
    async with exposing(for_ever) as (at, url):
        command = typescript_client(url, "auto", "models__m", ASKED)
        client = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=DEVNULL)
        await until(at.generations.started.is_set)
        client.kill()
        await client.wait()
        (run,) = at.generations.runs
        await until(run.closed.is_set)
        assert not run.finished


@pytest.mark.parametrize(("era", "_revision"), ERAS, ids=["old", "new"])
async def test_the_inspector_lists_and_calls_with_a_key(
    era: str, _revision: str, tmp_path: Path
) -> None:
    async with (
        served() as server,
        tools_of(spec("s", server.url)) as tools,
        exposing(hello) as (at, url),
    ):
        at.parts.offered_tools = lambda: tools
        (key,) = await keys_of(at, "acme")
        header = f"Authorization: {key['authorization']}"

        async def inspected(method: str, *words: str) -> Mapping[str, Any]:
            command = [*inspector(), url, "--transport", "http", "--protocol-era", era]
            command += ["--header", header, "--method", method, *words]
            told = await told_by([*command, "--format", "json", "--quiet"], tmp_path)
            result: Mapping[str, Any] = told["result"]
            return result

        listed = await inspected("tools/list")
        sum_ = ("--tool-args-json", '{"a": 2, "b": 3}')
        added = await inspected("tools/call", "--tool-name", "s__add", *sum_)
        question = ("--tool-args-json", json.dumps(ASKED))
        asked = await inspected("tools/call", "--tool-name", NAMES[1], *question)
        assert server.book.runs == {"add": 1}
        assert [run.context.tenant for run in at.generations.runs] == ["acme"]
    names = [tool["name"] for tool in listed["tools"]]
    assert names[:2] == NAMES
    assert "s__add" in names
    assert added["structuredContent"] == {"sum": 5}
    assert asked["content"] == [{"type": "text", "text": "Hello world"}]


async def test_the_inspector_has_no_objection_to_the_schema_of_a_model(tmp_path: Path) -> None:
    async with exposing(hello) as (_, url):
        command = [*inspector(), url, "--transport", "http", "--method", "tools/list"]
        # It ends with another code than 0 for what clients may not be able to use.
        told = await told_by([*command, "--strict", "--format", "json"], tmp_path)
    assert [tool["name"] for tool in told["result"]["tools"]] == NAMES


async def test_a_client_of_fastmcp_lists_and_calls_with_a_key(tmp_path: Path) -> None:
    async with (
        served(answers="sse") as server,
        tools_of(spec("s", server.url)) as tools,
        exposing() as (at, url),
    ):
        at.parts.offered_tools = lambda: tools
        (key,) = await keys_of(at, "acme")
        secret = key["authorization"].removeprefix("Bearer ")
        steps = {"seconds": 0.3, "steps": 3}
        slow = await told_by(fastmcp_client(url, secret, "s__slow", steps), tmp_path)
        one = await told_by(fastmcp_client(f"{url}/s", secret, "fail", {}), tmp_path)
        model = await told_by(fastmcp_client(url, secret, "models__m", ASKED), tmp_path)
        unknown = await told_by(fastmcp_client(url, secret, "models__x", ASKED), tmp_path)
    assert {"s__echo", *NAMES} <= set(slow["tools"])
    assert (slow["text"], slow["steps"]) == ("3 steps", [[1, 3], [2, 3], [3, 3]])
    assert "echo" in one["tools"]
    assert one["tool_error"] == "the tool says that it failed"
    assert (model["text"], model["steps"]) == ("Hello", [[1, 9], [2, 9], [3, 9]])
    assert unknown["code"] == -32602


async def test_a_client_without_a_key_is_not_let_in(tmp_path: Path) -> None:
    async with exposing() as (at, url):
        await keys_of(at, "acme")
        command = [*inspector(), url, "--transport", "http", "--method", "tools/list"]
        done = await asyncio.to_thread(
            subprocess.run,
            [*command, "--format", "json", "--stored-auth-only"],
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode != 0
    assert "auth_required" in done.stdout + done.stderr
