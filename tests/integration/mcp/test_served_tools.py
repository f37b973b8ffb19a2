"""The tools of a cluster at `/mcp` of real nodes: defined on one, used on another, approved on a third request of any."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from smg_node.mcp.serving.call_state import APPROVAL
from support.mcp.client_calls import META, MODERN
from support.mcp.counting_process import counting_server, counts_of
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import Answer, call

pytestmark = pytest.mark.integration
SERVERS = "/v1/mcp/servers"


def asked(node: MeshNode, method: str, path: str = "/mcp", **params: Any) -> Answer:
    """Ask a node as a client of 2026-07-28 that has a person."""
    can = {"elicitation": {"form": dict[str, Any]()}}
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": can}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return call(node, "POST", path, body, {**headers, "accept": "application/json"})


def define(node: MeshNode, **said: Any) -> None:
    made = call(node, "PUT", f"{SERVERS}/docs", said, {"if-match": "*"})
    assert made.status == 200, made


def has(node: MeshNode) -> bool:
    return call(node, "GET", f"{SERVERS}/docs").status == 200


def names(answer: Answer) -> list[str]:
    return [tool["name"] for tool in answer.body["result"]["tools"]]


def said(answer: Answer) -> Mapping[str, Any]:
    result: Mapping[str, Any] = answer.body["result"]
    return result


def test_one_node_asks_a_person_and_another_runs_the_call(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    with (
        counting_server(tmp_path / "tools") as url,
        mesh_node(tmp_path, flags_of("a", key=key)) as a,
        mesh_node(tmp_path, flags_of("b", key=key, join=[a.mesh])) as b,
    ):
        assert names(asked(b, "tools/list")) == []
        define(a, url=url, trust="untrusted")
        b.awaits("known", lambda: has(b))
        assert "docs__echo" in names(asked(b, "tools/list"))
        assert "echo" in names(asked(a, "tools/list", "/mcp/docs"))
        assert asked(b, "tools/list", "/mcp/other").status == 404
        params: dict[str, Any] = {"name": "docs__echo", "arguments": {"text": "x"}}
        first = said(asked(b, "tools/call", **params))
        assert first["resultType"] == "input_required"
        assert not counts_of(url)["runs"].get("echo")
        state, yes = first["requestState"], {APPROVAL: {"action": "accept"}}
        again = {**params, "requestState": state, "inputResponses": yes}
        other = asked(a, "tools/call", **{**again, "arguments": {"text": "y"}})
        assert (other.status, other.error["code"]) == (400, -32602)
        done = said(asked(a, "tools/call", **again))
        assert done["content"] == [{"type": "text", "text": "x"}]
        assert counts_of(url)["runs"]["echo"] == 1


def test_each_process_of_a_node_serves_the_tools(tmp_path: Path) -> None:
    flags = [*flags_of("a", key=None), "--processes", "2"]
    with (
        counting_server(tmp_path / "tools") as url,
        mesh_node(tmp_path, flags) as a,
    ):
        define(a, url=url)
        # Each request has a connection of its own, which any of the processes takes.
        a.awaits("known", lambda: all(names(asked(a, "tools/list")) for _ in range(20)))
        for number in range(20):
            sum_ = asked(a, "tools/call", name="docs__add", arguments={"a": number, "b": 1})
            assert said(sum_)["structuredContent"] == {"sum": number + 1}
        assert counts_of(url)["runs"]["add"] == 20
