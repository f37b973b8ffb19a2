"""Workers that three real nodes find as pods, while pods come and go and the node that writes them is killed.

The API server is scripted and real time passes; the engines are simulated, and all pods have this machine's address.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass
class Scene:
    """Nodes, engines and the API server."""

    trio: Trio
    api: ApiServer
    addresses: Sequence[str]

    def url(self, number: int) -> str:
        return f"grpc://{self.addresses[number]}"

    def await_ready(self, *numbers: int) -> None:
        urls = [self.url(number) for number in numbers]
        self.trio.on_all(lambda node: ready_at(node, urls), f"having the workers {numbers}")

    def source(self, node: MeshNode) -> dict[str, Any]:
        (source,) = node.get("/v1/cluster/discovery")["sources"]
        found: dict[str, Any] = source
        return found

    def writer(self) -> str:
        """Return the node that writes, when all that live agree on it and see that all is well."""

        def one() -> str:
            seen = [self.source(node) for node in self.trio.living]
            writers = {source["writer"] for source in seen}
            well = all(source["trouble"] == "" for source in seen)
            return writers.pop() if len(writers) == 1 and well else ""

        until(lambda: one() in self.trio.nodes, "agreeing on who writes")
        return one()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("pods")
    api = ApiServer()
    kubeconfig = api.kubeconfig(folder / "kube")
    (folder / "node.yaml").write_text(
        f"discovery:\n  kubeconfig: {kubeconfig}\n  empty_confirm_s: 4\n"
        f"  kubernetes:\n    chat: {{selector: app=vllm, namespace: {SPACE}, scheme: grpc}}\n"
    )
    flags = ("--workers.probe-interval-s", "0.3", "--config", str(folder / "node.yaml"))
    try:
        with (
            running_simulated(folder / "engines", *ENGINE, workers=ENGINES) as engines,
            running_trio(folder, *flags) as trio,
        ):
            for number, address in enumerate(engines.addresses):
                api.pod(f"vllm-{number}", address)
            yield Scene(trio, api, engines.addresses)
    finally:
        api.close()


@pytest.fixture
def found(scene: Scene) -> Scene:
    scene.await_ready(0, 1, 2)
    return scene


def test_pods_are_workers_of_all_nodes_and_two_nodes_watch(found: Scene) -> None:
    writer = found.writer()
    for node in found.trio.living:
        source = found.source(node)
        assert (source["kind"], source["name"], source["registered"]) == ("kubernetes", "chat", 3)
        assert source["writer"] == writer
        assert source["standby"] not in ("", writer)
        assert all(row["sources"] == ["kubernetes"] for row in workers(node).values())
    until(lambda: found.api.watches[0] == 2, "two watches")
    assert found.api.watches[1] == 2


def test_one_that_is_not_ready_gets_nothing_new_and_comes_back(found: Scene) -> None:
    found.api.ready("vllm-0", is_ready=False)
    url = found.url(0)

    def is_unready(node: MeshNode) -> bool:
        row = workers(node)[url]
        return row["status"] == "not_ready" and "unready" in row["reason"]

    found.trio.on_all(is_unready, "knowing that it is not ready")
    before = workers(found.trio["a"])[url]["id"]
    time.sleep(0.1)
    found.api.ready("vllm-0", is_ready=True)
    found.await_ready(0, 1, 2)
    assert workers(found.trio["a"])[url]["id"] == before


def test_one_that_is_deleted_goes_and_a_new_pod_at_its_address_comes(found: Scene) -> None:
    found.api.delete("vllm-0")
    found.await_ready(1, 2)
    found.api.pod("vllm-0", found.addresses[0])
    found.await_ready(0, 1, 2)


def test_what_an_operator_removes_stays_away_and_a_new_pod_comes(found: Scene) -> None:
    worker = workers(found.trio["b"])[found.url(1)]["id"]
    assert call(found.trio["b"], "DELETE", f"/workers/{worker}").status == 200
    found.await_ready(0, 2)
    found.api.ready("vllm-1", is_ready=False)
    found.api.ready("vllm-1", is_ready=True)
    time.sleep(1.5)
    found.await_ready(0, 2)
    source = found.source(found.trio["c"])
    assert (source["registered"], source["removed"]) == (2, 1)
    found.api.delete("vllm-1")
    found.api.pod("vllm-1", found.addresses[1])
    found.await_ready(0, 1, 2)


def test_a_selection_that_goes_as_a_whole_serves_on_until_it_is_confirmed(found: Scene) -> None:
    for number in range(ENGINES):
        found.api.label(f"vllm-{number}", app="typo")
    began_s = time.monotonic()
    writer = found.trio[found.writer()]
    until(lambda: "discovery_empty" in writer.process.said(), "saying so")
    until(
        lambda: "kept until" in str(found.source(found.trio["a"])["members"]),
        "telling what is held and why",
    )
    found.trio.on_all(lambda node: workers(node) == {}, "believing it")
    assert time.monotonic() - began_s > 3.0
    for number in range(ENGINES):
        found.api.label(f"vllm-{number}", app="vllm")
    found.await_ready(0, 1, 2)


def test_the_writer_is_killed_and_no_worker_flaps(found: Scene) -> None:
    writer = found.writer()
    others = [node for name, node in found.trio.nodes.items() if name != writer]
    with asked_all_the_time(
        others, MODEL, [found.url(number) for number in range(ENGINES)]
    ) as went:
        found.trio.kill(writer)
        assert found.writer() != writer
        time.sleep(1.0)
    for node, seen in went.items():
        assert (seen.failed, seen.missed) == ([], []), node
    found.api.delete("vllm-2")
    found.await_ready(0, 1)
    found.api.pod("vllm-2", found.addresses[2])
    found.await_ready(0, 1, 2)
    assert found.api.watches[1] <= 2
    found.trio.start(writer)
    found.await_ready(0, 1, 2)


def test_an_api_server_that_is_away_takes_nothing_away_and_is_told(found: Scene) -> None:
    found.api.do(found.api.server.close)
    until(
        lambda: "failing" in [one["standing"] for one in found.source(found.trio["a"])["members"]],
        "telling that it fails",
    )
    found.await_ready(0, 1, 2)
    found.api.do(lambda: found.api.server.listen("127.0.0.1", found.api.port))
    found.writer()
    found.api.delete("vllm-2")
    found.await_ready(0, 1)
    found.api.pod("vllm-2", found.addresses[2])
    found.await_ready(0, 1, 2)
