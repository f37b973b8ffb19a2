"""A route to own engines and a vendor, defined on one of three real nodes and followed by all of them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node
from support.processes.node_api import ROUTED, call, chat
from support.processes.simulated_engines import SAYS, Simulated, running_simulated
from support.providers.stand_ins import KEY, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

ROUTE = "/v1/cluster/routes/qwen3"
MODEL = "qwen3"


@dataclass
class World:
    """Three nodes of one mesh, an engine that serves the model under the route's own name, and a vendor."""

    nodes: list[MeshNode]
    engine: Simulated
    vendor: StandIn

    def state_at(self, node: MeshNode) -> dict[str, str]:
        answer = call(node, "GET", ROUTE)
        found = answer.body["targets"] if answer.status == 200 else []
        return {target["to"]: target["state"] for target in found}

    def awaits(self, what: str, **states: str) -> None:
        """Return when all nodes see the engines' and the vendor's target so."""
        wanted = {"engines/qwen3": states["own"], "ant/claude-sonnet-5": states["vendor"]}
        for node in self.nodes:
            node.awaits(what, lambda node=node: self.state_at(node) == wanted)  # type: ignore[misc]  # bound now


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("routes")
    key = make_key(folder)
    for name in ("engine", "vendor"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        engine = stack.enter_context(
            running_simulated(folder / "engine", "--model", MODEL, "--itl-ms", "1")
        )
        flags = ("--kind", "anthropic", "--model", "*")
        (vendor,), _ = stack.enter_context(running_stand_ins(folder / "vendor", *flags))
        nodes: list[MeshNode] = []
        for name in ("a", "b", "c"):
            given = flags_of(name, key=key, join=[node.mesh for node in nodes])
            nodes.append(stack.enter_context(mesh_node(folder / name, given)))
        for node in nodes:
            node.awaits_states(a="alive", b="alive", c="alive")
        yield World(nodes, engine, vendor)


def test_a_route_of_one_node_is_followed_by_all_and_survives_its_engine(world: World) -> None:
    a, b, c = world.nodes
    provider = {"kind": "anthropic", "base": world.vendor.base, "keys": [KEY]}
    overflow = {"to": "ant/claude-sonnet-5", "on": ["full", "broken"]}
    route = {"targets": ["engines/qwen3", overflow]}
    # A route whose model has no worker yet is no error, and its vendor answers.
    for path, body in (("/v1/cluster/providers/ant", provider), (ROUTE, route)):
        assert call(a, "PUT", path, body, {"if-match": "*"}).status == 200
    world.awaits("a vendor alone", own="off", vendor="ready")
    for node in world.nodes:
        answer = chat(node, MODEL, text="words=4", tokens=64)
        assert answer.status == 200, answer
        assert answer.body["model"] == MODEL
        assert SAYS not in json.dumps(answer.body, ensure_ascii=False)
    # The engine is registered on another node; from then on it goes first everywhere.
    worker = {"url": f"grpc://{world.engine.address}?model={MODEL}"}
    assert call(b, "POST", "/workers", worker).status == 202
    world.awaits("engines too", own="ready", vendor="ready")
    for node in world.nodes:
        answer = chat(node, MODEL, text="words=4", tokens=100)
        assert answer.status == 200, answer
        assert answer.body["choices"][0]["message"]["content"] == SAYS
        assert answer.headers[ROUTED]
        listed = [model["id"] for model in node.get("/v1/models")["data"]]
        assert listed.count(MODEL) == 1
        shown = node.admin("routes", "show", MODEL)
        assert shown.code == 0, shown
        assert "engines/qwen3" in shown.out
    world.engine.process.stop()
    for node in world.nodes:
        answer = chat(node, MODEL, text="words=4", tokens=64)
        assert answer.status == 200, answer
        assert SAYS not in json.dumps(answer.body, ensure_ascii=False)
    world.awaits("the vendor alone again", own="off", vendor="ready")
    assert call(c, "DELETE", ROUTE, headers={"if-match": "*"}).status == 200
    for node in world.nodes:
        node.awaits("gone", lambda node=node: call(node, "GET", ROUTE).status == 404)  # type: ignore[misc]  # bound now
