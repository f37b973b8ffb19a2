"""Tools that are too many for a prompt at a real node: left out by the model's own tokens, found by an embedding model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.mcp.counting_process import counting_server
from support.processes.mesh_nodes import MeshNode, flags_of, mesh_node
from support.processes.node_api import Answer, call, change_setting, ready_at
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration
SEARCH = '<tool_call>\n{"name": "tool_search", "arguments": {"query": "add numbers"}}\n</tool_call>'
FLAGS = ("--mcp.rounds-max", "2", "--mcp.search", "embeddings", "--mcp.search-model", "embed")
SEARCHES = "smg_node_mcp_tool_searches_total"


@dataclass
class World:
    """A node whose model searches for tools each time, and an embedding model behind HTTP."""

    node: MeshNode
    embedding: Simulated

    def searches(self, way: str, outcome: str) -> float:
        return self.node.node.metric(SEARCHES, search=way, outcome=outcome)

    def asked(self, path: str, body: Mapping[str, Any], **headers: str) -> Answer:
        answer = call(self.node, "POST", path, {"model": "qwen3", **body}, headers)
        assert answer.status == 200, answer
        return answer


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "engine"
    folder.mkdir()
    script = folder / "says.txt"
    script.write_text(SEARCH)
    told = ("--model", "qwen3", "--script", str(script), "--itl-ms", "0")
    with (
        counting_server(tmp_path / "tools") as tools,
        running_simulated(folder, *told) as engine,
        running_simulated(
            tmp_path / "embedding", "--contract", "openai", "--model", "embed"
        ) as embedding,
    ):
        urls = [f"grpc://{engine.address}", f"http://{embedding.address}"]
        given = [*flags_of("a", key=None), *FLAGS, "--mcp.defer-over-tokens", "100"]
        with mesh_node(
            tmp_path, [*given, *(word for url in urls for word in ("--worker", url))]
        ) as a:
            a.awaits("workers", lambda: ready_at(a, urls))
            made = call(a, "PUT", "/v1/mcp/servers/docs", {"url": tools}, {"if-match": "*"})
            assert made.status == 200, made
            yield World(a, embedding)


def items(answer: Answer, kind: str) -> Sequence[Mapping[str, Any]]:
    return [item for item in answer.body["output"] if item["type"] == kind]


def found(answer: Answer) -> Sequence[str]:
    """Return the tools that the first search found."""
    spaces = items(answer, "tool_search_output")[0]["tools"]
    return [tool["name"] for space in spaces for tool in space["tools"]]


def ask_responses(world: World, **more: Any) -> Answer:
    tools = [{"type": "mcp", "server_label": "docs", "require_approval": "never"}]
    return world.asked("/v1/responses", {"input": "add", "tools": tools, **more})


def test_tools_are_left_out_and_found_by_meaning_until_the_model_is_away(world: World) -> None:
    first = ask_responses(world)
    assert first.body["status"] == "incomplete"
    assert len(items(first, "tool_search_call")) == 2
    assert len(found(first)) == 5
    assert world.searches("embeddings", "ok") == 2
    # The next turn knows what was found before, although no tool of its own says that it searches.
    again = ask_responses(world, previous_response_id=first.body["id"])
    assert items(again, "tool_search_call")
    assert change_setting(world.node, "mcp.search", "hybrid").status == 200
    both = ask_responses(world)
    assert "add" in found(both)
    assert world.searches("hybrid", "ok") == 2
    world.embedding.process.stop()
    alone = ask_responses(world)
    assert found(alone)[0] == "add"
    assert world.searches("hybrid", "away") == 2
    assert "tools are found by their words: mcp.search_model embed" in world.node.process.said()


def test_each_api_goes_on_where_tools_were_left_out(world: World) -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "docs"}
    servers = [{"type": "url", "name": "docs", "url": "docs"}]
    chat = world.asked(
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": "add"}],
            "tools": [{"type": "mcp", "server_label": "docs"}],
        },
        **{"x-smg-mcp": "enabled", "x-smg-tool-runs": "show"},
    )
    runs = chat.body["smg"]["tool_runs"]
    assert [run["name"] for run in runs] == ["tool_search", "tool_search"]
    body = {
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "add"}],
        "tools": [toolset],
        "mcp_servers": servers,
    }
    del servers[0]["url"]
    beta = {"anthropic-beta": "mcp-client-2025-11-20", "anthropic-version": "2023-06-01"}
    told = world.asked("/v1/messages", body, **beta)
    kinds = [block["type"] for block in told.body["content"]]
    assert kinds[:2] == ["server_tool_use", "tool_search_tool_result"]
    assert told.body["stop_reason"] == "pause_turn"
    turns = [*body["messages"], {"role": "assistant", "content": told.body["content"]}]  # type: ignore[misc]  # a list
    later = world.asked("/v1/messages", {**body, "messages": turns}, **beta)
    assert "server_tool_use" in json.dumps(later.body)
    # Whoever counts is told of the prompt that the model would be shown.
    path, counting = "/v1/messages/count_tokens", {**body, "max_tokens": None}
    few = world.asked(path, counting, **beta).body["input_tokens"]
    assert change_setting(world.node, "mcp.defer_over_tokens", 0).status == 200
    assert world.asked(path, counting, **beta).body["input_tokens"] > few + 100
