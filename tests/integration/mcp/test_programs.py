"""Servers of tools that are programs: each node runs those of its own file, and leaves none behind."""

import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, flags_of, mesh_node, until
from support.processes.node_api import Answer, call

pytestmark = pytest.mark.integration

CHAOS = Path(sys.executable).parent / "smg-chaos"
SERVERS = "/v1/mcp/servers"


def programs(mark: Path) -> list[int]:
    """Return the processes that have a path among their arguments."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
        except OSError:
            continue
        if str(mark).encode() in words and b"mcp-server" in words:
            found.append(int(entry.name))
    return found


def flags(folder: Path, counts: Path) -> list[str]:
    words = ["mcp-server", "--transport", "stdio", "--count-file", str(counts)]
    file = folder / "servers.yaml"
    program = {"command": str(CHAOS), "args": words, "env": {"MARK": "env:PATH"}}
    file.write_text(json.dumps({"servers": {"local": program}}))
    return [*flags_of("a", key=None), "--mcp", str(file)]


def called(node: MeshNode, tool: str, **arguments: Any) -> Answer:
    body = {"tool": tool, "arguments": arguments}
    return call(node, "POST", f"{SERVERS}/local/call", body)


def calling(node: MeshNode, answers: list[Answer]) -> threading.Thread:
    """Begin a call that takes long."""

    def ask() -> None:
        # One that is killed answers nothing.
        with suppress(OSError):
            answers.append(called(node, "slow", seconds=30))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_program_is_left_behind(tmp_path: Path, number: signal.Signals, processes: str) -> None:
    counts = tmp_path / "counts.json"
    answers: list[Answer] = []
    hurried = ("--drain.grace-s", "1", "--processes", processes)
    with mesh_node(tmp_path / "node", [*flags(tmp_path, counts), *hurried]) as node:
        assert not programs(counts), "a program runs from its first call on"
        added = called(node, "add", a=1, b=2)
        assert added.status == 200, added
        assert added.body["content"][0]["text"] == "3"
        view = node.get(f"{SERVERS}/local")
        assert (view["source"], view["secrets"]) == ("node", {"env.MARK": "env:PATH"})
        assert len(programs(counts)) == 1
        thread = calling(node, answers)
        os.kill(node.process.pid, number)
        until(lambda: not programs(counts), "ended")
        thread.join(60)
        assert not thread.is_alive()
    assert not programs(counts)


def test_a_program_is_no_definition_of_the_cluster(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    with mesh_node(tmp_path / "node", flags(tmp_path, counts)) as node:
        body = {"command": "sh", "args": ["-c", f"touch {tmp_path}/hurt"]}
        refused = call(node, "PUT", f"{SERVERS}/other", body, {"if-match": "*"})
        removed = call(node, "DELETE", f"{SERVERS}/local", headers={"if-match": "*"})
    assert (refused.status, refused.error["param"]) == (400, "command")
    assert (removed.status, "own file" in removed.error["message"]) == (404, True)
    assert not (tmp_path / "hurt").exists()


def test_runs_of_a_nodes_own_server_are_limited_and_counted(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    with mesh_node(tmp_path / "node", flags(tmp_path, counts)) as node:
        rule = {"amounts": [{"unit": "requests", "amount": 0, "window": "day"}], "mode": "strict"}
        path = "/v1/cluster/limits/tool=local%2Fadd"
        assert called(node, "echo", text="hi").status == 200
        made = call(node, "PUT", path, rule, {"if-match": "*"})
        assert made.status in (200, 201), made
        until(lambda: called(node, "add", a=1, b=2).status != 200, "limited")
        before = json.loads(counts.read_text())["runs"]
        refused = called(node, "add", a=1, b=2)
        usage = node.get("/v1/cluster/usage?by=tool")["rows"]
    assert "the limit of tool=local/add is used up" in refused.error["message"]
    assert json.loads(counts.read_text())["runs"] == before
    assert {one["tool"]: one["tool_runs"] for one in usage} == {
        f"local/{tool}": runs for tool, runs in before.items()
    }
