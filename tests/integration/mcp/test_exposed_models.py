"""Models as tools at `/mcp` of real nodes: exposed on one, asked on another, limited as any request of that tenant."""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.mcp.client_calls import META, MODERN
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import Answer, call, change_setting, ready_at
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
EXPOSE = "models/sim/mcp.expose"
ENGINE = ("--model", "sim", "--script", "endless", "--itl-ms", "5")


def message(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request of a client of 2026-07-28, and its headers."""
    meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": dict[str, Any]()}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return body, {**headers, "content-type": "application/json", "accept": "application/json"}


def asked(node: MeshNode, method: str, **params: Any) -> Answer:
    body, headers = message(method, **params)
    return call(node, "POST", "/mcp", body, headers)


def said(node: MeshNode, tokens: int = 5) -> Mapping[str, Any]:
    """Return what the model says as a tool."""
    arguments = {"prompt": "Why?", "max_tokens": tokens}
    result: Mapping[str, Any] = asked(
        node, "tools/call", name="models__sim", arguments=arguments
    ).body["result"]
    return result


def names(node: MeshNode) -> list[str]:
    return [tool["name"] for tool in asked(node, "tools/list").body["result"]["tools"]]


def vanish_in_a_call(node: MeshNode) -> None:
    """Begin a call of many tokens, and lose its client once the engine works on it."""
    body, headers = message(
        "tools/call", name="models__sim", arguments={"prompt": "Why?", "max_tokens": 1_500}
    )
    connection = http.client.HTTPConnection(urlsplit(node.node.url).netloc, timeout=60)
    connection.request("POST", "/mcp", json.dumps(body), headers)
    node.awaits("a call at work", lambda: node.node.metric("smg_node_worker_inflight") >= 1)
    connection.close()


def test_a_model_is_exposed_on_one_node_and_asked_on_another(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    with (
        running_simulated(tmp_path / "engine", *ENGINE) as engines,
        mesh_node(tmp_path, flags_of("a", key=key)) as a,
        mesh_node(tmp_path, flags_of("b", key=key, join=[a.mesh])) as b,
    ):
        urls = [f"grpc://{engines.address}"]
        assert a.admin("workers", "add", *urls).code == 0
        b.awaits("the engine", lambda: ready_at(b, urls))
        assert names(b) == []
        unknown = asked(b, "tools/call", name="models__sim", arguments={"prompt": "x"})
        assert unknown.error["code"] == -32602
        assert change_setting(a, EXPOSE, True).status == 200
        b.awaits("exposed", lambda: names(b) == ["models__sim"])
        result = said(b)
        assert result["content"][0]["text"]
        assert result["_meta"]["smg-node/usage"]["completion_tokens"] == 5
        vanish_in_a_call(b)
        b.awaits("cancelled", lambda: b.node.metric("smg_node_worker_inflight") == 0)
        limited = b.admin("limits", "set", "--scope", "model=sim", "--requests", "1/hour")
        assert limited.code == 0, limited.err
        refused: list[Mapping[str, Any]] = []

        def limited_now() -> bool:
            # One refusal says nothing of the next call: without an owner a new limit first gives no rights at all.
            refused.append(said(b, 1))
            return refused[-1].get("isError") is True

        b.awaits("limited", limited_now)
        assert refused[-1]["content"][0]["text"].startswith("not run: ")
        assert change_setting(b, EXPOSE, None).status == 200
        a.awaits("taken away", lambda: names(a) == [])


def test_each_process_of_a_node_offers_the_models(tmp_path: Path) -> None:
    with running_simulated(tmp_path / "engine", *ENGINE) as engines:
        flags = [*flags_of("a", key=None), "--processes", "2", "--models.sim.mcp.expose"]
        with mesh_node(tmp_path, [*flags, "--worker", f"grpc://{engines.address}"]) as a:
            a.awaits_ready()
            # Each request has a connection of its own, which any of the processes takes.
            a.awaits("known", lambda: all(names(a) for _ in range(10)))
            for _ in range(10):
                assert said(a)["content"][0]["text"]
