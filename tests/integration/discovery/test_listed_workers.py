"""Workers that files of two nodes list: each node has its own file, and all nodes have the workers of both."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.processes.mesh_nodes import MeshNode, make_key, until
from support.processes.mesh_trio import Trio
from support.processes.node_api import call, ready_at, workers
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
NAMES = ("a", "b")


@dataclass
class Scene:
    trio: Trio
    folder: Path
    urls: Sequence[str]

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def await_workers(self, *numbers: int) -> None:
        urls = [self.urls[number] for number in numbers]
        self.trio.on_all(lambda node: ready_at(node, urls), f"having the workers {numbers}")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    trio = Trio(tmp_path, make_key(tmp_path))
    with running_simulated(tmp_path / "engines", "--model", "sim", workers=3) as engines:
        scene = Scene(trio, tmp_path, [f"grpc://{address}" for address in engines.addresses])
        try:
            for name in NAMES:
                trio.start(name, "--discovery-file", str(scene.file(name)))
            yield scene
        finally:
            trio.close()


def sources(node: MeshNode) -> dict[str, list[str]]:
    return {url: sorted(row["sources"]) for url, row in workers(node).items()}


def troubles(node: MeshNode) -> dict[str, str]:
    """Return what is wrong with the file of each node, as a node tells it."""
    (source,) = node.get("/v1/cluster/discovery")["sources"]
    return {member["node"]: member["trouble"] for member in source["members"]}


def words(trouble: str) -> str:
    """Return what is wrong without the path."""
    return trouble.partition(".json: ")[2].partition(" (column")[0]


def test_each_node_lists_its_own_and_a_bad_file_takes_nothing_away(scene: Scene) -> None:
    first, second, third = scene.urls
    manifest = {"version": 1, "workers": [{"id": "x", "url": second}]}
    scene.file("a").write_text(json.dumps([first, second]))
    scene.file("b").write_text(json.dumps(manifest))
    scene.await_workers(0, 1)
    both = {first: ["file@a"], second: ["file@a", "file@b"]}
    scene.trio.on_all(lambda node: sources(node) == both, "told which file lists what")
    # Half of a file, and then none: what it listed last stays.
    scene.file("b").write_text(json.dumps({**manifest, "workers": [{"url": third}]})[:-1])
    scene.file("a").unlink()
    scene.trio.on_all(
        lambda node: (
            {name: words(said) for name, said in troubles(node).items()}
            == {"a": "no such file or directory", "b": "line 1: it ends too early"}
        ),
        "told what is wrong with each file",
    )
    assert sources(scene.trio["a"]) == both
    # An empty list is meant: what no file lists any more is gone, on all nodes.
    scene.file("a").write_text("[]")
    scene.await_workers(1)
    scene.file("b").write_text(json.dumps({**manifest, "workers": [{"url": third}]}))
    scene.await_workers(2)


def test_what_an_operator_removes_stays_away_until_it_is_added(scene: Scene) -> None:
    first, second, _ = scene.urls
    scene.file("a").write_text(json.dumps([first, second]))
    scene.await_workers(0, 1)
    worker = workers(scene.trio["b"])[first]["id"]
    assert call(scene.trio["b"], "DELETE", f"/workers/{worker}").status == 200
    scene.await_workers(1)
    scene.file("a").write_text(json.dumps([second, first]))
    scene.file("b").write_text(json.dumps([second]))
    until(lambda: len(workers(scene.trio["a"])[second]["sources"]) == 2, "listed twice")
    scene.await_workers(1)
    assert call(scene.trio["b"], "POST", "/workers", {"url": first}).status == 202
    scene.await_workers(0, 1)
