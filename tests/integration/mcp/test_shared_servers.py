"""Servers of tools in a cluster of three real nodes: defined on one, called on another, taken away, and on no disk in plain."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.mcp.counting_process import counting_server, counts_of
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node, until
from support.processes.node_api import Answer, call

pytestmark = pytest.mark.integration

SERVERS = "/v1/mcp/servers"
TOKEN = "tok-8c1f5e0a7b2d4963"


@dataclass
class World:
    """Nodes a, b and c of one mesh with a key, and a server that wants a token."""

    folder: Path
    a: MeshNode
    b: MeshNode
    c: MeshNode
    url: str

    @property
    def nodes(self) -> tuple[MeshNode, ...]:
        return (self.a, self.b, self.c)

    def define(self) -> Answer:
        auth = {"kind": "bearer", "token": TOKEN}
        body = {"url": self.url, "auth": auth}
        return call(self.a, "PUT", f"{SERVERS}/docs", body, {"if-match": "*"})

    def remove(self) -> None:
        removed = call(self.b, "DELETE", f"{SERVERS}/docs", headers={"if-match": "*"})
        assert removed.status == 200, removed
        for node in self.nodes:
            node.awaits("gone", lambda node=node: not has(node))  # type: ignore[misc]  # bound now


def has(node: MeshNode) -> bool:
    return call(node, "GET", f"{SERVERS}/docs").status == 200


def called(node: MeshNode, tool: str, **arguments: Any) -> Answer:
    body = {"tool": tool, "arguments": arguments}
    return call(node, "POST", f"{SERVERS}/docs/call", body)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("servers")
    key = make_key(folder)
    with (
        counting_server(folder / "tools", "--token", TOKEN) as url,
        mesh_node(folder / "a", flags_of("a", key=key)) as a,
        mesh_node(folder / "b", flags_of("b", key=key, join=[a.mesh])) as b,
        mesh_node(folder / "c", flags_of("c", key=key, join=[a.mesh])) as c,
    ):
        for node in (a, b, c):
            node.awaits_states(a="alive", b="alive", c="alive")
            node.awaits_ready()
        yield World(folder, a, b, c, url)
        for node in (a, b, c):
            assert TOKEN not in node.process.said()


def test_what_is_defined_on_one_node_is_called_on_another(world: World) -> None:
    made = world.define()
    assert made.status == 200, made
    world.c.awaits("known", lambda: has(world.c))
    shown = world.c.get(f"{SERVERS}/docs")
    assert (shown["owner"], shown["version"]) == ("a", made.body["version"])
    assert shown["secrets"] == {"token": "(set)"}
    added = called(world.c, "add", a=1, b=2)
    assert added.status == 200, added
    assert (added.body["content"][0]["text"], added.body["error"]) == ("3", None)
    failed = called(world.b, "fail").body
    assert failed["error"]["type"] == "mcp_tool_execution_error"
    assert called(world.b, "nope").body["error"] is not None
    listed = call(world.b, "GET", f"{SERVERS}/docs/tools")
    assert {"add", "echo"} <= {tool["name"] for tool in listed.body["tools"]}
    world.remove()


def test_what_is_taken_away_while_a_call_runs_ends_with_it(world: World) -> None:
    world.define()
    world.c.awaits("known", lambda: has(world.c))
    before = counts_of(world.url)["runs"].get("slow", 0)
    asked = counts_of(world.url)["methods"].get("tools/call", 0)
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(called(world.c, "slow", seconds=2)))
    thread.start()
    until(lambda: counts_of(world.url)["methods"].get("tools/call", 0) > asked, "calling")
    world.remove()
    refused = called(world.c, "echo", text="x")
    thread.join(60)
    assert (refused.status, refused.error["code"]) == (404, "mcp_server_not_found")
    assert answers
    assert (answers[0].status, answers[0].body["error"]) == (200, None)
    assert counts_of(world.url)["runs"]["slow"] == before + 1


def written_in(path: Path) -> bytes:
    """Return what is in a file; nothing of one that was replaced meanwhile, whose successor is there as well."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def test_a_secret_is_on_no_disk_and_in_no_log_or_view_in_plain(world: World) -> None:
    world.define()
    for node in world.nodes:
        node.awaits("known", lambda node=node: has(node))  # type: ignore[misc]  # bound now
    assert called(world.b, "echo", text="x").status == 200

    def saved() -> list[Path]:
        return list(world.folder.glob("*/data/**/providers-*"))

    world.a.awaits("saved", lambda: len(saved()) >= 3)
    files = [path for path in world.folder.glob("*/data/**/*") if path.is_file()]
    assert not [path for path in files if TOKEN.encode() in written_in(path)]
    rows = world.c.get("/v1/cluster/audit?limit=100")["rows"]
    assert {"mcp.set", "mcp.call"} <= {row["action"] for row in rows}
    said = json.dumps(rows) + json.dumps(world.c.get(SERVERS))
    state = json.dumps(world.c.get("/v1/cluster/state/providers"))
    assert TOKEN not in said + state
    assert world.b.node.metric("smg_node_mcp_calls_total", server="docs", outcome="ok") >= 1
    world.remove()


def test_operators_do_it_all_by_command(world: World, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    made = world.a.admin("mcp", "servers", "set", "docs", world.url, "--bearer-file", token)
    assert made.code == 0, made.err
    world.b.awaits("known", lambda: has(world.b))
    changed = world.b.admin("mcp", "servers", "set", "docs", "--trust", "trusted", "--json")
    assert changed.code == 0, changed.err
    assert json.loads(changed.out)["spec"]["trust"] == "trusted"
    world.c.awaits(
        "changed", lambda: world.c.get(f"{SERVERS}/docs")["spec"].get("trust") == "trusted"
    )
    assert "docs" in world.c.admin("mcp", "servers", "list").out
    shown = world.c.admin("mcp", "servers", "show", "docs").out
    assert "secret token" in shown
    assert "(set)" in shown
    tools = world.c.admin("mcp", "tools")
    assert (tools.code, "docs" in tools.out, "add" in tools.out) == (0, True, True)
    done = world.c.admin("mcp", "call", "docs", "add", "--arguments", '{"a": 1, "b": 2}')
    assert (done.code, done.out.strip()) == (0, "3")
    failed = world.c.admin("mcp", "call", "docs", "fail")
    assert failed.code == 1
    assert "mcp_tool_execution_error" in failed.err
    elsewhere = world.a.admin("mcp", "servers", "set", "docs", "https://other.example/mcp")
    assert elsewhere.code == 1
    assert "auth.token" in elsewhere.err
    removed = world.a.admin("mcp", "servers", "remove", "docs")
    assert removed.code == 0, removed.err
    for one in (made, changed, shown, tools, done, failed, elsewhere, removed):
        assert TOKEN not in str(one)
