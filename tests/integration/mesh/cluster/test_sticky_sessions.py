"""The same routing key goes to the same worker whichever node is asked, also after that worker, or a node, was killed."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.processes.mesh_nodes import MeshNode
from support.processes.mesh_trio import Trio, running_trio
from support.processes.node_api import ROUTED, change_setting, chat, ready_at, setting, workers
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

MODEL = "sim"
KEYS = [f"session-{number}" for number in range(30)]
POLICIES = ("consistent_hashing", "prefix_hash", "manual")
QUICK = ("--workers.probe-interval-s", "0.5")


@dataclass
class Scene:
    """Three nodes and four engines, each a process of its own."""

    trio: Trio
    engines: list[Simulated]

    @property
    def urls(self) -> list[str]:
        return [f"grpc://{engine.address}" for engine in self.engines]

    def kill_engine(self, worker: str) -> None:
        """End a worker's process; return when no node counts it as ready."""
        rows = workers(self.trio.living[0])
        (at,) = [number for number, url in enumerate(self.urls) if rows[url]["id"] == worker]
        self.engines[at].process.signal(signal.SIGKILL)
        url = self.urls[at]
        self.trio.on_all(lambda node: workers(node)[url]["status"] != "ready", "seen dead")


@pytest.fixture
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    flags: Sequence[str] = request.param
    with ExitStack() as stack:
        engines = [
            stack.enter_context(
                running_simulated(tmp_path / f"engine-{number}", "--model", MODEL, "--slots", "256")
            )
            for number in range(4)
        ]
        trio = stack.enter_context(running_trio(tmp_path, *QUICK, *flags))
        scene = Scene(trio, engines)
        for at, url in enumerate(scene.urls):
            assert trio.living[at % 3].admin("workers", "add", url).code == 0
        trio.on_all(lambda node: ready_at(node, scene.urls), "ready")
        yield scene


def choose_by(trio: Trio, policy: str) -> None:
    if setting(trio.living[0], "routing.policy")["effective"] != policy:
        assert change_setting(trio.living[0], "routing.policy", policy).status == 200
    trio.on_all(
        lambda node: setting(node, "routing.policy")["effective"] == policy, f"choosing by {policy}"
    )


def places(nodes: Sequence[MeshNode]) -> dict[str, str]:
    """Ask for every key at every node; return which worker each went to, the same from all of them."""
    found: dict[str, str] = {}
    for number, key in enumerate(KEYS):
        # Whoever is asked first decides, and that is another node each time.
        asked = [*nodes[number % len(nodes) :], *nodes[: number % len(nodes)]]
        answers = [chat(node, MODEL, key=key, text=f"{key} " * 40) for node in asked]
        assert [answer.status for answer in answers] == [200] * len(nodes)
        went = {answer.headers[ROUTED] for answer in answers}
        assert len(went) == 1, f"{key} went to {went}"
        found |= dict.fromkeys([key], went.pop())
    return found


@pytest.mark.parametrize(
    ("scene", "policies"),
    [((), POLICIES), (("--sticky-sessions",), ("power_of_two", "round_robin"))],
    indirect=["scene"],
    ids=["hashing", "sticky"],
)
def test_30_of_30_keys_agree_before_and_after_a_worker_and_a_node_were_killed(
    scene: Scene, policies: Sequence[str]
) -> None:
    trio = scene.trio
    before: dict[str, dict[str, str]] = {}
    for policy in policies:
        choose_by(trio, policy)
        before[policy] = places(trio.living)
        assert len(set(before[policy].values())) >= 3
    victim = before[policies[0]][KEYS[0]]
    scene.kill_engine(victim)
    moved: dict[str, dict[str, str]] = {}
    for policy in policies:
        choose_by(trio, policy)
        moved[policy] = places(trio.living)
        assert victim not in moved[policy].values()
        kept = {key for key, worker in before[policy].items() if worker != victim}
        assert kept
        assert all(moved[policy][key] == before[policy][key] for key in kept)
    trio.kill("b")
    for policy in policies:
        choose_by(trio, policy)
        assert places(trio.living) == moved[policy]
