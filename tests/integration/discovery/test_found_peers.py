"""Real nodes that find each other as pods of a label, with no node to join: the API server is scripted."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from support.kubernetes.server_thread import SPACE, ApiServer
from support.processes.mesh_nodes import MeshNode, flags_of, make_key, mesh_node

pytestmark = pytest.mark.integration
OURS: Final = ("--mesh.kubernetes-selector", "app=smg-node", "--mesh.kubernetes-namespace", SPACE)
THEIRS: Final = (
    *("--service-discovery", "--router-selector", "app=smg-node"),
    *(
        "--service-discovery-namespace",
        SPACE,
        "--router-mesh-port-annotation",
        "sglang.ai/mesh-port",
    ),
)


@dataclass
class Scene:
    """An API server, and nodes that are started one after the other, each a pod from then on."""

    folder: Path
    api: ApiServer
    key: Path
    stack: ExitStack

    def start(self, name: str, *flags: str) -> MeshNode:
        given = [
            *flags_of(name, key=self.key),
            *("--discovery.kubeconfig", str(self.folder / "kube")),
            *("--mesh.join-grace-s", "3600"),
            *flags,
        ]
        return self.stack.enter_context(mesh_node(self.folder / name, given))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        api = ApiServer()
        stack.callback(api.close)
        api.kubeconfig(tmp_path / "kube")
        yield Scene(tmp_path, api, make_key(tmp_path), stack)


def seeds(node: MeshNode) -> list[Any]:
    found: list[Any] = node.get("/v1/cluster")["seeds"]
    return found


def test_nodes_find_each_other_by_the_labels_of_their_pods(scene: Scene) -> None:
    first = scene.start("a", *OURS)
    first.awaits("naming why", lambda: "it selects no pod" in seeds(first)[0].get("error", ""))
    assert first.node.status("/readiness") == 503
    # Its own pod is nobody to wait for.
    scene.api.peer("a", first.mesh)
    first.awaits_ready()
    assert seeds(first) == [{"peer": "pods of app=smg-node"}]

    second = scene.start("b", *OURS)
    scene.api.peer("b", second.mesh)
    second.awaits_ready()
    second.awaits_states(a="alive", b="alive")

    third = scene.start("c", *THEIRS)
    third.awaits_ready()
    for node in (first, second, third):
        node.awaits_states(a="alive", b="alive", c="alive")
    assert scene.api.watches[1] == 0


def test_labels_work_beside_nodes_to_join_and_without_the_api_server(scene: Scene) -> None:
    first = scene.start("a")
    first.awaits_ready()
    scene.api.do(scene.api.server.close)
    second = scene.start("b", *OURS, "--join", first.mesh)
    second.awaits_ready()
    second.awaits_states(a="alive", b="alive")
    (joined, pods) = seeds(second)
    assert joined == {"peer": first.mesh}
    assert pods["peer"] == "pods of app=smg-node"
