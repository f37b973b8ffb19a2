import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from smg_chaos.cli import app
from smg_chaos.simulate.batch import Task, run_all, seeds_of
from smg_chaos.simulate.command import Asked, run
from smg_chaos.simulate.faults import Crash, Pause
from smg_chaos.simulate.history_text import ending, story
from smg_chaos.simulate.outcome import Outcome, gathered, percentile
from smg_chaos.simulate.random_faults import random_plan
from smg_chaos.simulate.scenarios.catalogue import SCENARIOS, targets_of
from smg_chaos.simulate.scenarios.scenario import Target
from smg_chaos.simulate.table import acceptance_lines, cost_line, figures_table, number
from smg_chaos.simulate.trials.trial import live
from support.mesh.simulated_world import fake_core

OUTCOMES = [
    Outcome(seed=seed, figures={"took_s": [seed / 10]}, events=1_000, cpu_s=0.01)
    for seed in range(1, 101)
]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([3.0], 0.5, 3.0), ([1.0, 2.0], 0.5, 1.0), ([3.0, 1.0, 2.0], 0.99, 3.0), ([5.0], 0.0, 5.0)],
)
def test_a_percentile_is_one_of_the_values(
    values: list[float], share: float, expected: float
) -> None:
    assert percentile(values, share) == expected


def test_a_target_is_met_missed_or_never_measured() -> None:
    figures = gathered(OUTCOMES)
    assert Target("took_s", "p50", 5.0).met(figures)
    assert not Target("took_s", "p99", 9.8).met(figures)
    assert not Target("other_s", "max", 1.0).met(figures)
    assert not Target("took_s", "p50", 5.0).met({"took_s": []})


def test_tables_say_what_was_asked_reached_and_decided() -> None:
    targets = (Target("took_s", "p99", 9.9), Target("took_s", "max", 9.9))
    good, bad = acceptance_lines("crash", 10, OUTCOMES, targets)
    assert " ".join(good.split()) == "crash 10 100 took_s 5 9.9 10 p99 <= 9.9 ok"
    assert bad.split()[-1] == "MISSED"
    broken = [*OUTCOMES, Outcome(seed=7, broken=("it broke",))]
    assert acceptance_lines("crash", 10, broken, ())[-1].endswith("1 with broken promises")
    assert " ".join(figures_table(gathered(OUTCOMES))[1].split()) == "took_s 100 5 9 9.9 10"
    assert cost_line(OUTCOMES).startswith("cost: 100 k events/s, 1000 events and 0.010 s")


def test_targets_belong_to_a_size_and_a_profile() -> None:
    crash = SCENARIOS["crash"]
    assert targets_of(crash, nodes=7, profile="lan") == crash.targets
    (first, _) = targets_of(crash, nodes=1000, profile="lan")
    assert first == Target("first_s", "p99", 7.0)
    assert targets_of(crash, nodes=10, profile="wan") == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), "-"),
        (float("inf"), "never"),
        (3.0, "3"),
        (0.00046, "0.000"),
        (12.345, "12.3"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_a_story_tells_deeds_and_what_became_of_them() -> None:
    faults = (
        Crash(at_ms=9_000, who="n1"),
        Pause(at_ms=20_000, who="n2", for_ms=300),
    )
    world, _ = live(replace(random_plan(3, nodes=3), faults=faults), fake_core)
    lines = [line.split(maxsplit=1)[1] for line in story(world)]
    assert "* n1 crashes" in lines
    assert "* n2 stands still for 300 ms" in lines
    assert any(line.startswith("n1#0 is dead (silence) for n") for line in lines)
    assert lines.index("* n1 crashes") < next(
        place for place, line in enumerate(lines) if line.startswith("n1#0 is dead")
    )
    assert any("for 1 more" in line for line in lines)
    endings = list(ending(world))
    assert endings[1] == "n1: 1 life, not running"
    assert endings[2].startswith("n2: 1 life, runs at 10.0.0.3:7946, incarnation 0, knows 2")


def test_the_help_lists_every_scenario() -> None:
    shown = CliRunner().invoke(app, ["simulate", "--help"])
    assert shown.exit_code == 0
    for word in ("crash", "partition-26h", "acceptance", "--story"):
        assert word in shown.output


def test_an_unknown_scenario_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Asked(scenario="nonsense")) == 2
    assert "no scenario 'nonsense'" in capsys.readouterr().err


def test_one_seed_prints_how_it_ended_and_its_fingerprint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "one.json"
    assert run(Asked(seed=3, nodes=3, story=True, cost=True, json=file)) == 0
    shown = capsys.readouterr().out
    (outcome,) = json.loads(file.read_text())["outcomes"]
    assert f"fingerprint {outcome['fingerprint']}" in shown
    assert "n0: " in shown
    assert "is up for" in shown
    assert "k events/s" in shown


def test_a_batch_of_weather_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Asked(seeds=3, nodes=3, jobs=1)) == 0
    shown = capsys.readouterr().out
    assert "random weather: 3 seeds of 3 nodes, profile lan" in shown
    assert "broken promises: 0 of 3 seeds" in shown


def test_a_scenario_prints_its_targets_and_fails_when_one_is_missed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(Asked(scenario="leave", seeds=2, nodes=3, jobs=1)) == 0
    assert "left_s max: " in capsys.readouterr().out
    monkeypatch.setattr(Target, "met", lambda self, figures: False)
    assert run(Asked(scenario="leave", seeds=2, nodes=3, jobs=1)) == 1
    assert "MISSED" in capsys.readouterr().out


def test_outcomes_come_in_the_order_of_seeds_from_any_number_of_processes() -> None:
    tasks = seeds_of(Task(seed=0, nodes=3, profile="lan", traced=True), range(5, 9))
    alone = run_all(tasks, jobs=1)
    shown: list[int] = []
    together = run_all(tasks, jobs=2, progress=lambda outcome: shown.append(outcome.seed))
    assert shown == [5, 6, 7, 8]
    assert [one.fingerprint for one in alone] == [one.fingerprint for one in together]
    assert len({one.fingerprint for one in alone}) == 4


def test_a_failing_seed_is_printed_with_its_shortest_faults(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_chaos.simulate.command.real_core", lambda: fake_core)
    monkeypatch.setattr("smg_chaos.simulate.batch.real_core", lambda: fake_core)
    assert run(Asked(seeds=2, first=286, nodes=5, jobs=1)) == 1
    shown = capsys.readouterr().out
    assert "faults suffice" in shown
    assert "again: smg-chaos simulate --seed 286 --nodes 5" in shown
    assert "broken at" in shown
