"""What operators and clients of the gameday ask a node, and what they make of its answers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import Cluster
from smg_chaos.gameday.agents.engine_pool import Operator, agreed, nodes_of, until
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.scenes.worker_registry import Witness
from support.mesh.gameday_fakes import FakeAgent, FakeLab, Manners, VirtualClock, on_virtual_time

Said = tuple[int, Any]


class Node(SmgAgent):
    """A node that answers what it was told to, by method and path, and remembers what it was asked."""

    def __init__(self, lab: FakeLab, name: str, folder: Path) -> None:
        super().__init__(lab, name, folder, lab.clock, key=None)
        self.says: dict[str, Said | ConnectionError] = {}
        self.asked: list[tuple[str, Any, Mapping[str, str]]] = []

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        self.asked.append((f"{method} {path}", json.loads(body or b"null"), dict(headers or {})))
        said = self.says[f"{method} {path}"]
        if isinstance(said, ConnectionError):
            raise said
        return said[0], json.dumps(said[1]).encode()


@pytest.fixture
def lab() -> FakeLab:
    return FakeLab(("n0", "n1"), VirtualClock(), Manners())


@pytest.fixture
def node(lab: FakeLab, tmp_path: Path) -> Node:
    return Node(lab, "n0", tmp_path)


async def test_a_worker_is_added_and_removed_by_what_the_node_calls_it(node: Node) -> None:
    node.says = {
        "POST /workers": (202, {"worker_id": "w-1"}),
        "DELETE /workers/w-1": (200, {}),
        "DELETE /workers/w-2": (404, {"error": {"code": "worker_not_found"}}),
        "DELETE /workers/w-3": (404, {"error": {"code": "not_found"}}),
        "GET /workers": (200, {"workers": [{"id": "w-1", "status": "ready", "load": 3}]}),
    }
    operator = Operator(node)
    assert await operator.add("grpc://e:1") == "w-1"
    assert node.asked[-1] == ("POST /workers", {"url": "grpc://e:1"}, {})
    assert await operator.remove("w-1")
    assert not await operator.remove("w-2")
    with pytest.raises(AgentError, match=r"n0 answers DELETE /workers/w-3: 404"):
        await operator.remove("w-3")
    assert await operator.workers() == {"w-1": "ready"}
    assert await operator.loads() == {"w-1": 3}


async def test_a_setting_is_changed_over_the_version_that_was_seen(node: Node) -> None:
    path = "/v1/cluster/settings/routing.policy"
    node.says = {
        f"GET {path}": (200, {"value": "random", "version": "17"}),
        f"PUT {path}": (200, {}),
    }
    operator = Operator(node)
    assert await operator.setting("routing.policy") == "random"
    assert await operator.set("routing.policy", "manual") == 200
    assert node.asked[-1] == (f"PUT {path}", {"value": "manual"}, {"if-match": '"17"'})
    node.says[f"PUT {path}"] = (409, {})
    assert await operator.set("routing.policy", "manual") == 409
    node.says[f"PUT {path}"] = (400, {"error": "no such rule"})
    with pytest.raises(AgentError, match=r"does not set routing\.policy: 400 .*no such rule"):
        await operator.set("routing.policy", "mannual")


async def test_shared_state_is_told_by_digest_and_size(node: Node) -> None:
    spaces = [
        {"name": "workers", "digest": "aa", "bytes": 3 << 20, "entries": 5},
        {"name": "audit", "digest": "bb", "bytes": 1 << 20, "entries": 2},
    ]
    node.says = {"GET /v1/cluster/state": (200, {"digest": "cc", "namespaces": spaces})}
    assert await Operator(node).digests() == {"workers": "aa", "audit": "bb"}
    assert await Operator(node).digest() == "cc"
    assert await Operator(node).shared_mb() == (4.0, 7)


async def test_a_node_is_ready_when_it_says_so(node: Node) -> None:
    node.says = {"GET /readiness": (503, {})}
    assert not await Operator(node).ready()
    node.says = {"GET /readiness": (200, {})}
    assert await Operator(node).ready()
    node.says = {"GET /readiness": ConnectionError("refused")}
    assert not await Operator(node).ready()


def test_agreement_is_waited_for_and_not_for_ever(lab: FakeLab, node: Node, tmp_path: Path) -> None:
    other = Node(lab, "n1", tmp_path / "other")
    cluster = Cluster(lab, [node, other], lab.clock)

    def hold(one: str, another: str) -> None:
        for agent, digest in ((node, one), (other, another)):
            agent.says = {"GET /v1/cluster/state": (200, {"digest": digest, "namespaces": []})}

    hold("aa", "bb")
    assert on_virtual_time(lab.clock, lambda: agreed(cluster, [node, other], 3.0)) is None
    hold("aa", "aa")
    assert on_virtual_time(lab.clock, lambda: agreed(cluster, [node, other], 3.0)) == 0.0

    async def later() -> bool:
        return lab.clock.now_s >= begun_s + 1.5

    begun_s = lab.clock.now_s
    taken_s = on_virtual_time(lab.clock, lambda: until(cluster, later, 3.0))
    assert taken_s == pytest.approx(1.5, abs=0.02)


def test_only_our_own_nodes_have_workers(lab: FakeLab, tmp_path: Path) -> None:
    stranger = FakeAgent(lab, "n0", tmp_path)
    with pytest.raises(AgentError, match="only smg-node has workers"):
        nodes_of(Cluster(lab, [stranger], lab.clock))


def test_one_failed_request_or_one_missing_worker_misses_the_target() -> None:
    witness = Witness(answers=10, looks=5)
    assert all(figure.is_met for figure in witness.figures())
    witness.failed.append("n1: 503")
    witness.missing = 1
    assert [(figure.value, figure.is_met) for figure in witness.figures()] == [
        (1, False),
        (1, False),
    ]
