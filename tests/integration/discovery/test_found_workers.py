"""Workers that three real nodes find by name, while the name server is changed and killed, and while clients ask all the time.

The name server is knot, the engines are simulated, time is real: an answer of the zone holds for 5 seconds.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.discovery.knot_server import ZONE, Knot, running_knot
from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import asked_all_the_time, ready_at, workers
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
MODEL: Final = "sim"
NAME: Final = "_grpc._tcp.vllm"
ENGINE: Final = ("--model", MODEL, "--script", "endless", "--itl-ms", "2", "--slots", "1024")
ANSWER_S: Final = 5.0


@dataclass
class Scene:
    """Nodes, engines, and the zone that names the engines."""

    trio: Trio
    knot: Knot
    addresses: Sequence[str]

    @property
    def urls(self) -> list[str]:
        """What the engines are called as workers."""
        return [f"grpc://{address}" for address in self.addresses]

    def name(self, *addresses: str) -> None:
        """Let the zone name these engines, and no others."""
        self.knot.write(*records(addresses))


def records(addresses: Sequence[str]) -> list[str]:
    ports = [address.rpartition(":")[2] for address in addresses]
    return ["engine A 127.0.0.1", *(f"{NAME} SRV 0 0 {port} engine" for port in ports)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("found")
    configuration = folder / "node.yaml"
    with (
        running_simulated(folder / "engines", *ENGINE, workers=4) as engines,
        running_knot(folder / "knot", records(engines.addresses)) as knot,
    ):
        configuration.write_text(
            f"discovery:\n  dns:\n    metal: {{name: {NAME}.{ZONE}, servers: ['{knot.address}'], scheme: grpc}}\n"
        )
        quick = ("--workers.probe-interval-s", "0.3", "--config", str(configuration))
        with running_trio(folder, *quick) as trio:
            yield Scene(trio, knot, engines.addresses)


@pytest.fixture
def found(scene: Scene) -> Scene:
    scene.trio.on_all(lambda node: ready_at(node, scene.urls), "having all engines")
    return scene


def test_workers_come_with_their_records_and_go_with_them_when_they_are_down(
    found: Scene, tmp_path: Path
) -> None:
    with running_simulated(tmp_path / "spare", *ENGINE) as spare:
        url = f"grpc://{spare.address}"
        found.name(*found.addresses, spare.address)
        found.trio.on_all(lambda node: ready_at(node, [*found.urls, url]), "having one more")
        assert all(workers(node)[url]["sources"] == ["dns"] for node in found.trio.living)
        spare.process.kill()
        found.name(*found.addresses)
    found.trio.on_all(lambda node: ready_at(node, found.urls), "having one less")


def trouble(node: MeshNode) -> str:
    """Return what a node tells of those that ask for the name."""
    (source,) = node.get("/v1/cluster/discovery")["sources"]
    return "\n".join(member["trouble"] for member in source["members"])


def nothing_is_lost(found: Scene, *, away_s: float, gone_s: float, turns: int) -> None:
    with asked_all_the_time(found.trio.living, MODEL, found.urls) as went:
        found.knot.kill()
        time.sleep(away_s)
        found.trio.on_all(
            lambda node: "no answer within 5 s" in trouble(node), "told what is wrong"
        )
        found.knot.start()
        found.name()
        time.sleep(gone_s)
        for turn in range(turns):
            found.name(*found.addresses[turn % 2 :: 2])
            time.sleep(ANSWER_S)
        found.name(*found.addresses)
    for node, seen in went.items():
        assert not seen.failed, (node, seen.failed[:3])
        assert not seen.missed, (node, seen.missed[:3])
        assert seen.answers > 20, node


def test_nothing_is_lost_while_the_server_is_away_and_the_name_is_gone(found: Scene) -> None:
    nothing_is_lost(found, away_s=6, gone_s=6, turns=0)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_nothing_is_lost_in_five_minutes_and_while_names_are_shown_in_turn(found: Scene) -> None:
    nothing_is_lost(found, away_s=300, gone_s=10, turns=24)
