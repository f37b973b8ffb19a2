"""Would the simulator notice? Cores that are broken on purpose, in small ways."""

import pytest

from smg_chaos.simulate.batch import Task, run_task
from smg_mesh.swim.detection.name_conflict import Namesake
from smg_mesh.swim.detection.partition_healing import Healer
from smg_mesh.swim.detection.self_refutation import SelfRefutation
from smg_mesh.swim.dissemination.packet_sender import PacketSender


def _nothing(*_: object, **__: object) -> None:
    return None


def _false(*_: object, **__: object) -> bool:
    return False


def first_broken(nodes: int, seeds: int) -> str:
    """Return all that a batch of weather breaks first, seed by seed."""
    tasks = [Task(seed=seed, nodes=nodes, profile="lan") for seed in range(seeds)]
    outcomes = [run_task(task) for task in tasks]
    return "\n".join(outcome.broken[0] for outcome in outcomes if outcome.broken)


def test_a_core_that_never_refutes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SelfRefutation, "hear", _nothing)
    assert "not settled" in first_broken(4, 8)


def test_a_core_that_never_steps_down_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Namesake, "answered", _false)
    assert "not settled" in first_broken(4, 16)


def test_a_core_that_never_looks_at_the_dead_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(seed=1, nodes=6, profile="lan", scenario="partition-60s")
    with monkeypatch.context() as broken:
        broken.setattr(Healer, "tick", _nothing)
        late_s = run_task(task).figures["healed_s"][0]
    assert run_task(task).figures["healed_s"][0] < 5.0 < late_s


def test_a_core_that_never_spreads_claims_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(seed=1, nodes=6, profile="lan", scenario="crash")
    with monkeypatch.context() as broken:
        broken.setattr(PacketSender, "spread", _nothing)
        alone_s = run_task(task).figures["everywhere_s"][0]
    assert run_task(task).figures["everywhere_s"][0] < alone_s
