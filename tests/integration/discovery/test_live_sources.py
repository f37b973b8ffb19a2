"""Sources that operators define while three real nodes run: taken up, changed, handed over, kept through restarts, removed.

The API server is scripted and real time passes; the engines are simulated, and all pods have this machine's address.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from support.kubernetes.server_thread import SPACE, ApiServer
from support.processes.mesh_nodes import MeshNode, until
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import asked_all_the_time, call, ready_at, workers
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
MODEL: Final = "sim"
ENGINES: Final = 3
ENGINE: Final = ("--model", MODEL, "--script", "endless", "--itl-ms", "2", "--slots", "1024")
GONE_S: Final = 180.0
"""A minute, what looks come apart, and a machine that has other things to do."""
SOURCES: Final = "/v1/cluster/discovery"
WHOLE: Final = {"namespace": SPACE, "scheme": "grpc"}


@dataclass
class Scene:
    """Nodes, engines, and the API server that has a pod for each engine."""

    trio: Trio
    api: ApiServer
    folder: Path
    addresses: Sequence[str]

    def url(self, number: int) -> str:
        return f"grpc://{self.addresses[number]}"

    def await_ready(self, *numbers: int) -> None:
        urls = [self.url(number) for number in numbers]
        self.trio.on_all(lambda node: ready_at(node, urls), f"having the workers {numbers}")

    def define(self, node: str, name: str, **fields: object) -> None:
        """Define a source at a node, by the command, whatever is there."""
        file = self.folder / f"{name}.yaml"
        told = {**WHOLE, **fields}
        file.write_text("".join(f"{key}: {value}\n" for key, value in told.items()))
        words = ("discovery", "define", f"kubernetes/{name}", "--file", file)
        done = self.trio[node].admin(*words, "--if-version", "*")
        assert done.code == 0, done.err

    def remove(self, node: str, name: str) -> None:
        done = self.trio[node].admin("discovery", "remove", f"kubernetes/{name}")
        assert done.code == 0, done.err

    def sources(self, node: MeshNode) -> Mapping[str, Mapping[str, Any]]:
        """Return the sources as a node tells of them, by name."""
        return {source["name"]: source for source in node.get(SOURCES)["sources"]}

    def registered(self, **counts: int) -> None:
        """Wait until every node tells that so many workers are there by each source."""

        def told(node: MeshNode) -> bool:
            sources = self.sources(node)
            return {name: sources[name]["registered"] for name in sources} == counts

        self.trio.on_all(told, f"registering {counts}")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("live")
    api = ApiServer()
    api.kubeconfig(folder / "kube")
    flags = (
        "--workers.probe-interval-s", "0.3",
        "--discovery.kubeconfig", str(folder / "kube"),
        "--discovery.empty-confirm-s", "4",
    )  # fmt: skip
    try:
        with (
            running_simulated(folder / "engines", *ENGINE, workers=ENGINES) as engines,
            running_trio(folder, *flags) as trio,
        ):
            for number, address in enumerate(engines.addresses):
                api.pod(f"vllm-{number}", address, pool="blue" if number else "both")
            yield Scene(trio, api, folder, engines.addresses)
    finally:
        api.close()


def test_a_source_is_taken_up_by_all_nodes_changed_and_checked_before_it_is_kept(
    scene: Scene,
) -> None:
    assert scene.trio["a"].get(SOURCES)["sources"] == []
    scene.define("a", "blue", selector="app=vllm")
    scene.await_ready(0, 1, 2)
    for node in scene.trio.living:
        blue = scene.sources(node)["blue"]
        assert blue["defined"] == "cluster"
        assert blue["definition"]["spec"] == {**WHOLE, "selector": "app=vllm"}
    until(lambda: scene.api.watches[0] == 2, "two watches")

    said, path = {"selector": "app=vllm", "port": "x y"}, f"{SOURCES}/kubernetes/blue"
    wrong = call(scene.trio["b"], "PUT", path, said, {"if-match": "*"})
    assert (wrong.status, wrong.error["param"]) == (400, "port")
    scene.define("b", "blue", selector="pool=blue")
    scene.await_ready(1, 2)
    scene.define("c", "blue", selector="app=vllm")
    scene.await_ready(0, 1, 2)
    until(lambda: scene.api.watches[0] == 2, "two watches again")


def test_what_one_source_lets_go_of_another_takes_and_no_client_notices(scene: Scene) -> None:
    scene.define("a", "blue", selector="app=vllm")
    scene.await_ready(0, 1, 2)
    ids = {row["id"] for row in workers(scene.trio["a"]).values()}
    scene.define("b", "green", selector="pool=both")
    scene.registered(blue=3, green=0)
    scene.trio.on_all(
        lambda node: any(
            one["writing"] and one["refused"] for one in scene.sources(node)["green"]["members"]
        ),
        "telling that green may not have it",
    )
    urls = [scene.url(number) for number in range(ENGINES)]
    with asked_all_the_time(scene.trio.living, MODEL, urls) as went:
        scene.define("c", "blue", selector="pool=blue")
        scene.registered(blue=2, green=1)
        scene.define("c", "blue", selector="app=vllm")
        scene.registered(blue=3, green=0)
    for node, seen in went.items():
        assert (seen.failed, seen.missed) == ([], []), node
    assert {row["id"] for row in workers(scene.trio["c"]).values()} == ids
    scene.remove("a", "green")
    scene.registered(blue=3)


def test_sources_are_there_after_all_nodes_were_away(scene: Scene) -> None:
    scene.define("a", "blue", selector="app=vllm")
    scene.await_ready(0, 1, 2)
    for name in ("a", "b", "c"):
        scene.trio.stop(name)
    scene.api.delete("vllm-2")
    for name in ("a", "b", "c"):
        scene.trio.start(name)
    scene.await_ready(0, 1)
    scene.api.pod("vllm-2", scene.addresses[2], pool="blue")
    scene.await_ready(0, 1, 2)
    assert scene.sources(scene.trio["c"])["blue"]["defined"] == "cluster"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_what_is_removed_goes_after_a_minute_or_stays_as_if_added_by_hand(scene: Scene) -> None:
    scene.define("a", "blue", selector="pool=blue")
    scene.define("b", "stays", selector="pool=both", keep="true")
    scene.registered(blue=2, stays=1)
    writers = {source["writer"] for source in scene.sources(scene.trio["a"]).values()}
    scene.remove("c", "blue")
    scene.remove("c", "stays")
    # The node that wrote them may be away for good.
    away = min(writers)
    scene.trio.stop(away)
    scene.await_ready(0, 1, 2)

    def left(node: MeshNode) -> bool:
        rows = workers(node)
        return {url: rows[url]["sources"] for url in rows} == {scene.url(0): ["api"]}

    for node in scene.trio.living:
        node.process.wait_until(
            lambda node=node: left(node),  # type: ignore[misc]  # bound now
            "giving up what was found",
            GONE_S,
        )
    scene.trio.start(away)
