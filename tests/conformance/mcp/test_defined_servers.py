"""Real servers as an operator defines them: listed, called with a run's key and with progress, in both eras."""

from pathlib import Path
from typing import Any

import pytest

from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.content import text_of
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.real_servers import PROGRAMS, python, python_server, typescript_server
from support.mcp.server_steps import define, on, resolved, world
from support.mcp.tool_desks import context

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("way", ["meta", "header:Idempotency-Key"])
async def test_the_python_sdk_takes_a_runs_key_and_tells_progress(
    tmp_path: Path, protocol: str, way: str
) -> None:
    notes: list[tuple[str, float | None, float | None]] = []
    begun: list[str] = []
    state = world()
    with python_server("http", tmp_path) as url:
        define(state, "real", url, protocol=protocol, idempotency=way)
        async with on(state) as servers:
            found = await resolved(servers, "real", "acme")
            options = CallOptions(
                key="resp_1/call_1",
                sending=lambda: begun.append("sent"),
                noted=lambda *note: notes.append(note),
            )
            done = await servers.call(found, "slow", '{"n": 2}', context("acme"), options)
    assert isinstance(done, CallResult), done
    assert begun == ["sent"]
    assert notes, "it tells how far it is"
    assert all(total is not None for _, _, total in notes)


async def test_the_typescript_sdk_is_listed_and_called(tmp_path: Path) -> None:
    state = world()
    with typescript_server(tmp_path) as url:
        define(state, "real", url, session="call")
        async with on(state) as servers:
            found = await resolved(servers, "real")
            listed = await servers.list_tools(found)
            options = CallOptions(key="r/c")
            done = await servers.call(found, "echo", '{"text": "x"}', context(), options)
    assert isinstance(listed, ToolList)
    assert isinstance(done, CallResult), done
    assert text_of(done, bytes_max=100) == "x"


async def test_a_program_of_a_nodes_own_file_gets_the_variables_of_its_definition() -> None:
    import json

    program: dict[str, Any] = {
        "command": str(python()),
        "args": [str(PROGRAMS / "python_server.py"), "stdio"],
        "env": {"SOME": "value"},
    }
    own = json.dumps({"servers": {"local": program}})
    async with on(world(), own=own) as servers:
        found = await resolved(servers, "local")
        assert dict(found.target.definition.env) == {"SOME": "value"}
        assert dict(found.spec.definition.env) == {}
        done = await servers.call(found, "echo", '{"text": "x"}', context())
    assert isinstance(done, CallResult), done
