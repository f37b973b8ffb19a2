"""What a decision costs is measured on a fleet that lives, with all that belongs to a decision."""

import json
from collections import Counter

import pytest
from typer.testing import CliRunner

from smg_chaos.bench.micro.decision import Case, Prompt, Scene, app, measure, table
from smg_chaos.cli import app as chaos
from smg_node.core.journey import Chosen, Journey
from smg_node.pipeline.placement.decider import PlacementRequest


class Heard(Scene):
    """A scene that keeps the journeys."""

    journeys: list[Journey]

    def _wish(self) -> PlacementRequest:
        wish = super()._wish()
        assert wish.journey is not None
        self.__dict__.setdefault("journeys", []).append(wish.journey)
        return wish

    def chosen(self) -> list[Chosen]:
        return [step for one in self.journeys for step in one.steps if isinstance(step, Chosen)]


@pytest.mark.parametrize(("prompt", "overlap"), [("short", 0), ("new", 0), ("cached", 53 * 64)])
def test_a_decision_is_told_and_knows_what_is_cached(prompt: Prompt, overlap: int) -> None:
    scene = Heard(Case("cache_aware", 8, prompt))
    for _ in range(3):
        assert 0 < scene.burst() < 1
    steps = scene.chosen()
    assert len(steps) == len(scene.journeys) == 3 * 16
    for step in steps:
        assert step.of == 8
        ours = next(one for one in step.rated if one.worker == step.worker)
        assert ours.overlap in (0, overlap)
    assert any(one.overlap == overlap for step in steps for one in step.rated)


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_fleet_is_about_half_busy_and_nobody_is_left_out(nodes: int) -> None:
    scene = Heard(Case("least_load", 8, "short", nodes))
    for _ in range(40):
        scene.burst()
    assert set(Counter(step.worker for step in scene.chosen())) == {one.id for one in scene.workers}
    total = sum(one.load.inflight for one in scene.workers)
    assert 0.3 < total / (8 * 64) < 0.7
    own = sum(one.load.own_inflight for one in scene.workers)
    assert total / own == pytest.approx(nodes, rel=0.25)


def test_rows_are_measured_in_turn_and_told() -> None:
    cases = [Case(policy, 8, "new") for policy in ("cache_aware", "round_robin")]
    rows = measure(cases, rounds=3, bursts=2)
    assert [row["policy"] for row in rows] == ["cache_aware", "round_robin"]
    for row in rows:
        assert 0 < row["best_us"] <= row["median_us"] <= row["worst_us"]
    assert "8 workers, new" in table(rows)


def test_the_command_prints_figures_for_programs_and_for_people() -> None:
    given = ["--policy", "round_robin", "--rounds", "1", "--bursts", "1"]
    ran = CliRunner().invoke(app, [*given, "--json"])
    assert ran.exit_code == 0
    rows = json.loads(ran.stdout)
    assert [(row["workers"], row["prompt"]) for row in rows] == [
        (workers, prompt) for workers in (8, 64) for prompt in ("short", "new", "cached")
    ]
    assert "round_robin" in CliRunner().invoke(app, given).stdout
    assert "decision" in CliRunner().invoke(chaos, ["--help"]).stdout
