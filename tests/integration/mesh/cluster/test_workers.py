"""Workers of three real nodes: registered on one, used by all, sticky to the same one, whoever is killed."""

import json
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node, until
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

KEYS = [f"session-{at}" for at in range(30)]


@dataclass
class Trio:
    """Three members, and engines that only the first of them was told of."""

    nodes: dict[str, MeshNode]
    engines: Simulated

    def living(self) -> list[MeshNode]:
        return list(self.nodes.values())

    def kill(self, name: str) -> None:
        self.nodes.pop(name).process.signal(signal.SIGKILL)
        self.buried(name)

    def buried(self, name: str) -> None:
        """Return when all others know that it is dead."""
        for other in self.living():
            other.awaits_states(**{name: "dead"})


@pytest.fixture
def trio(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Trio]:
    key = make_key(tmp_path)
    flags = getattr(request, "param", ())
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, workers=6))
        nodes: dict[str, MeshNode] = {}
        for name in "abc":
            join = [nodes["a"].mesh] if nodes else []
            given = [*flags_of(name, key=key, join=join), *flags]
            nodes[name] = stack.enter_context(mesh_node(tmp_path / name, given))
        for node in nodes.values():
            node.awaits_states(a="alive", b="alive", c="alive")
        yield Trio(nodes, engines)


def ask(node: MeshNode, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    """POST and return (status, headers, body)."""
    call = urllib.request.Request(
        node.node.url + path,
        json.dumps(body).encode(),
        {"content-type": "application/json", **(headers or {})},
    )
    with urllib.request.urlopen(call, timeout=20) as answer:
        return answer.status, answer.headers, json.load(answer)


def chat(node: MeshNode, model: str, key: str = "", text: str = "hi") -> str:
    """Return which worker answered."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 1,
    }
    headers = {"x-smg-routing-key": key} if key else {}
    status, said, _ = ask(node, "/v1/chat/completions", body, headers)
    assert status == 200
    worker: str = said["x-smg-routed-worker-id"]
    return worker


def workers(node: MeshNode) -> dict[str, Any]:
    return {row["url"]: row for row in node.get("/workers")["workers"]}


def ready(node: MeshNode, count: int) -> bool:
    rows = workers(node).values()
    return len(rows) == count and all(row["status"] == "ready" for row in rows)


def model_of(node: MeshNode) -> str:
    name: str = node.get("/v1/models")["data"][0]["id"]
    return name


def rows(nodes: list[MeshNode], model: str) -> list[list[str]]:
    return [[chat(node, model, key, key * 40) for node in nodes] for key in KEYS]


def agreed(found: list[list[str]]) -> int:
    return sum(len(set(row)) == 1 for row in found)


def register(trio: Trio, node: MeshNode) -> str:
    """Register all engines at a node; return their model once every node can use them."""
    for address in trio.engines.addresses:
        status, _, _ = ask(node, "/workers", {"url": f"grpc://{address}"})
        assert status == 202
    count = len(trio.engines.addresses)
    for one in trio.living():
        until(lambda one=one: ready(one, count), f"ready at {one.name}")  # type: ignore[misc]  # bound now
    return model_of(node)


def test_a_worker_is_seen_everywhere_at_once_and_outlives_who_registered_it(trio: Trio) -> None:
    address = trio.engines.address
    ask(trio.nodes["a"], "/workers", {"url": f"grpc://{address}", "labels": {"zone": "x"}})
    for node in trio.living():
        until(lambda node=node: f"grpc://{address}" in workers(node), "seen")  # type: ignore[misc]  # bound now
    model = register(trio, trio.nodes["a"])
    trio.nodes.pop("a").process.signal(signal.SIGKILL)
    # Before anybody knows, and afterwards: not one request fails, and no worker is missed.
    for _ in range(30):
        for node in trio.living():
            chat(node, model)
            assert ready(node, 6)
        time.sleep(0.05)
    trio.buried("a")
    for node in trio.living():
        assert ready(node, 6)
        chat(node, model)
    (row,) = [
        row
        for row in trio.nodes["b"].get("/v1/cluster/workers")["workers"]
        if row["url"] == f"grpc://{address}"
    ]
    assert row["registered_by"] == "a"
    assert sorted(row["probers"]) == ["b", "c"]


def switch(trio: Trio, policy: str) -> None:
    """Have all nodes choose by that policy from now on."""
    some = trio.living()[0]
    if some.get("/v1/cluster/settings/routing.policy")["effective"] == policy:
        return
    assert some.admin("config", "set", "routing.policy", policy).code == 0
    for node in trio.living():
        until(
            lambda node=node: (  # type: ignore[misc]  # bound now
                node.get("/v1/cluster/settings/routing.policy")["effective"] == policy
            ),
            f"choosing by {policy}",
        )


@pytest.mark.parametrize(
    ("trio", "policies"),
    [
        ((), ("consistent_hashing", "prefix_hash", "manual")),
        (("--sticky-sessions",), ("power_of_two",)),
    ],
    indirect=["trio"],
    ids=["hashing", "sticky"],
)
def test_30_of_30_keys_go_to_one_worker_whichever_node_is_asked(
    trio: Trio, policies: tuple[str, ...]
) -> None:
    model = register(trio, trio.nodes["b"])
    before: dict[str, list[list[str]]] = {}
    for policy in policies:
        switch(trio, policy)
        before[policy] = rows(trio.living(), model)
        assert agreed(before[policy]) == 30
        assert len({row[0] for row in before[policy]}) >= 3
    trio.kill("b")
    for policy in policies:
        switch(trio, policy)
        after = rows(trio.living(), model)
        assert agreed(after) == 30
        assert [row[0] for row in after] == [row[0] for row in before[policy]]
    # A worker that is drained at one node hands its keys on at all of them, and only it does.
    drained = before[policies[0]][0][0]
    ask(trio.nodes["a"], f"/workers/{drained}/drain", {})
    for node in trio.living():
        until(lambda node=node: node.get(f"/workers/{drained}")["status"] == "draining", "drained")  # type: ignore[misc]  # bound now
    for policy in policies:
        switch(trio, policy)
        moved = rows(trio.living(), model)
        assert agreed(moved) == 30
        assert drained not in {row[0] for row in moved}
        pairs = list(zip(before[policy], moved, strict=True))
        assert all(was[0] == now[0] for was, now in pairs if was[0] != drained)
