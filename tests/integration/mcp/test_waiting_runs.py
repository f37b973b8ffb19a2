"""Runs that wait for an operator's word, in a cluster of three real nodes: one of several processes streams, others answer."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.mcp.counting_process import counting_server, counts_of
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import Answer, call
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

APPROVALS = "/v1/mcp/approvals"
SECRET = "private-4711"
SCRIPT = (
    "Let me write.\n<tool_call>\n"
    f'{{"name": "write", "arguments": {{"text": "{SECRET}"}}}}\n</tool_call>'
)


@dataclass
class World:
    """Nodes a, b and c; b has two data processes, and the only engine, which calls `write` each time."""

    a: MeshNode
    b: MeshNode
    c: MeshNode
    tools: str

    def runs(self) -> int:
        """Return how often the tool ran."""
        return int(counts_of(self.tools)["runs"].get("write", 0))

    def waiting(self, at: MeshNode, count: int = 1) -> list[Mapping[str, Any]]:
        """Return the runs that wait, once there are so many, as this node sees them."""
        found: list[Mapping[str, Any]] = []

        def enough() -> bool:
            found[:] = at.get(APPROVALS)["approvals"]
            return len(found) == count

        at.awaits(f"{count} waiting", enough)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("approvals")
    key = make_key(folder)
    (folder / "engine").mkdir()
    script = folder / "engine" / "says.txt"
    script.write_text(SCRIPT)
    told = ("--model", "qwen3", "--script", str(script), "--itl-ms", "0")
    brief = ("--mcp.rounds-max", "3", "--stream.keepalive-s", "1")
    with (
        counting_server(folder / "tools") as tools,
        running_simulated(folder / "engine", *told) as engine,
        mesh_node(folder / "a", [*flags_of("a", key=key), *brief]) as a,
    ):
        joined = flags_of("b", key=key, join=[a.mesh])
        serving = ("--processes", "2", "--worker", f"grpc://{engine.address}")
        with (
            mesh_node(folder / "b", [*joined, *brief, *serving]) as b,
            mesh_node(folder / "c", [*flags_of("c", key=key, join=[a.mesh]), *brief]) as c,
        ):
            for node in (a, b, c):
                node.awaits_states(a="alive", b="alive", c="alive")
                node.awaits_ready()
            body = {"url": tools, "trust": "untrusted"}
            made = call(a, "PUT", "/v1/mcp/servers/docs", body, {"if-match": "*"})
            assert made.status == 200, made
            b.awaits("known", lambda: call(b, "GET", "/v1/mcp/servers/docs").status == 200)
            yield World(a, b, c, tools)
            for node in (a, b, c):
                assert SECRET not in node.process.said()


@dataclass
class Heard:
    """A client's answer, as it arrives."""

    node: MeshNode
    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    status: int = 0
    text: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Heard":
        url = urlsplit(self.node.node.url)
        assert url.hostname is not None
        self._wire = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hang_up()
        self._thread.join(60)

    def hang_up(self) -> None:
        """Leave."""
        if self._wire.sock is not None and not self.over.is_set():
            self._wire.sock.shutdown(2)

    def end(self) -> str:
        """Return all that was said."""
        assert self.over.wait(60)
        return self.text

    def _listen(self) -> None:
        try:
            headers = {"content-type": "application/json", **self.headers}
            self._wire.request("POST", self.path, json.dumps(self.body), headers)
            answer = self._wire.getresponse()
            self.status = answer.status
            while piece := answer.read1(65_536):
                self.text += piece.decode()
        except (OSError, http.client.HTTPException):
            self.text += "\n(cut)"
        finally:
            self.over.set()
            self._wire.close()


def chat(node: MeshNode, *, stream: bool = True) -> Heard:
    """Ask in Chat, with the runs shown at the end."""
    body = {
        "model": "qwen3",
        "stream": stream,
        "messages": [{"role": "user", "content": "write it"}],
        "tools": [{"type": "mcp", "server_label": "docs"}],
    }
    return Heard(
        node,
        "/v1/chat/completions",
        body,
        {"x-smg-mcp": "enabled", "x-smg-tool-runs": "show", "x-request-id": "req-waits"},
    )


def answered(node: MeshNode, run: Mapping[str, Any], *, approve: bool, reason: str = "") -> Answer:
    return call(node, "POST", f"{APPROVALS}/{run['id']}", {"approve": approve, "reason": reason})


def test_other_nodes_allow_and_deny_what_waits_in_a_process_of_this_one(world: World) -> None:
    before = world.runs()
    with chat(world.b) as heard:
        [run] = world.waiting(world.a)
        assert (run["node"], run["server"], run["tool"]) == ("b", "docs", "write")
        assert (json.loads(run["arguments"]), run["model"]) == ({"text": SECRET}, "qwen3")
        world.b.awaits("kept alive", lambda: heard.text.count("\n:") >= 2)
        assert world.runs() == before
        done = answered(world.c, run, approve=True)
        assert (done.status, done.body["node"]) == (200, "b"), done
        late = answered(world.a, run, approve=False)
        assert (late.status, late.error["code"]) == (409, "approval_already_answered")
        [second] = world.waiting(world.c)
        assert second["id"] != run["id"]
        listed = world.a.admin("mcp", "approvals", "list")
        assert second["id"] in listed.out
        denied = world.a.admin(
            "mcp", "approvals", "deny", second["id"], "--reason", "once is enough"
        )
        assert denied.code == 0, denied.err
        text = heard.end()
    assert world.runs() == before + 1
    assert "once is enough" in text
    assert "data: [DONE]" in text
    world.a.awaits("nothing waiting", lambda: world.a.get(APPROVALS)["approvals"] == [])
    gone = answered(world.a, {"id": "mcpa_1"}, approve=True)
    assert (gone.status, gone.error["code"]) == (404, "approval_not_found")
    rows = [
        row
        for row in world.b.get("/v1/cluster/audit?limit=100")["rows"]
        if row["action"] == "mcp.approval"
    ]
    assert {row["node"] for row in rows} == {"a", "c"}
    assert {row["after"]["reason"] for row in rows} == {"", "once is enough"}
    assert SECRET not in json.dumps(rows)
    metric = world.b.node.metric
    assert metric("smg_node_mcp_approvals_total", answer="approved") == 1
    assert metric("smg_node_mcp_approvals_total", answer="denied") == 1
    assert metric("smg_node_mcp_approvals_waiting") == 0


def test_a_client_that_leaves_takes_its_run_with_it(world: World) -> None:
    before = world.runs()
    with chat(world.b) as heard:
        [run] = world.waiting(world.c)
        heard.hang_up()
        world.waiting(world.c, 0)
        late = answered(world.c, run, approve=True)
    assert (late.status, late.error["code"]) == (404, "approval_not_found")
    assert world.runs() == before


def test_a_client_of_messages_that_reads_one_body_waits_as_well(world: World) -> None:
    before = world.runs()
    body = {
        "model": "qwen3",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "write it"}],
        "mcp_servers": [{"type": "url", "name": "docs"}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "docs"}],
    }
    asked = Heard(world.b, "/v1/messages", body, {"anthropic-beta": "mcp-client-2025-11-20"})
    with asked as heard:
        for _ in range(2):
            [run] = world.waiting(world.a)
            assert answered(world.a, run, approve=True).status == 200
        answer = json.loads(heard.end())
    assert heard.status == 200
    results = [block for block in answer["content"] if block["type"] == "mcp_tool_result"]
    assert [block["is_error"] for block in results] == [False, False, True]
    assert world.runs() == before + 2


def test_a_node_that_drains_waits_for_nobody(world: World) -> None:
    before = world.runs()
    with chat(world.b, stream=False) as heard:
        world.waiting(world.a)
        drained = call(world.a, "POST", "/v1/cluster/members/b/drain")
        assert drained.status == 200, drained
        try:
            text = heard.end()
            world.waiting(world.a, 0)
        finally:
            back = call(world.a, "POST", "/v1/cluster/members/b/undrain")
    assert back.status == 200, back
    assert "the node stops taking work" in text
    assert world.runs() == before
