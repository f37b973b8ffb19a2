import io
import json

import pytest
from rich.console import Console

from smg_chaos.gameday.options import Options
from smg_chaos.gameday.outcomes import Outcome, as_json, table, verdict
from smg_chaos.gameday.scenarios import SCENARIOS, Size
from smg_chaos.gameday.session import run, size_of
from smg_chaos.statistics import Figure, percentile, times


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 21)]
    assert percentile(values, 0.5) == 10
    assert percentile(values, 0.99) == 20
    assert percentile([3.0], 0.5) == 3.0
    assert percentile([5.0, 1.0, 3.0], 0.5) == 3.0


def test_a_figure_is_met_up_to_its_limit_and_never_when_it_never_happened() -> None:
    assert Figure("m", 3.0, "s", 3.0).is_met
    assert not Figure("m", 3.01, "s", 3.0).is_met
    assert not Figure("m", None, "s", 3.0).is_met
    assert Figure("m", 99.0, "s").is_met
    assert Figure("m", None, "s").is_met


def test_a_figure_may_have_a_least_instead_of_a_most() -> None:
    assert Figure("m", 0.98, least=0.98).is_met
    assert not Figure("m", 0.97, least=0.98).is_met
    assert not Figure("m", None, least=0.98).is_met
    assert Figure("m", 0.5, least=0.4, limit=0.6).is_met
    assert not Figure("m", 0.7, least=0.4, limit=0.6).is_met
    assert [Figure("m", 1.0, least=0.0).has_target, Figure("m", 1.0, stretch=1.0).has_target] == [
        True,
        False,
    ]


def test_a_time_that_never_came_is_the_worst_of_all() -> None:
    p50, p99 = times("m", [1.0, None, 2.0], p50_max=2.0, p99_max=100.0)
    assert (p50.value, p50.is_met, p50.says) == (2.0, True, "1 of 3 never")
    assert (p99.value, p99.is_met) == (None, False)
    assert [figure.value for figure in times("m", [None])] == [None, None]


OURS = Outcome(
    "crash", "smg-node", True, (Figure("all know", 2.5, "s", 3.0), Figure("only ours", 7.0))
)
THEIRS = Outcome("crash", "serf", False, (Figure("all know", None, "s", 3.0, "gave up"),))
BROKEN = Outcome("join", "smg-node", True, (), "they do not find each other\nmore")


def shown(*outcomes: Outcome) -> list[list[str]]:
    console = Console(file=io.StringIO(), width=160)
    console.print(table(outcomes))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return [[cell.strip() for cell in line[1:-1].split("│")] for line in lines if "│" in line]


def test_the_table_has_a_row_per_metric_with_target_systems_and_verdict() -> None:
    assert shown(OURS, THEIRS) == [
        ["crash", "all know", "≤ 3 s", "2.50 s", "never (gave up)", "met"],
        ["", "only ours", "", "7", "-", ""],
    ]


def test_stretch_targets_have_a_column_and_so_has_what_was_before() -> None:
    far = Figure("used", 0.985, "", least=0.98, stretch=1.0, before="0.58")
    off = Figure("wrong", 3.0, "%", 2.0, stretch=0.0, before="most")
    mine = Outcome("limits", "smg-node", True, (far, off, Figure("failed", 0.0, "", 0)))
    assert shown(mine, BROKEN) == [
        ["limits", "used", "0.58", "≥ 0.98", "≥ 1", "0.98", "met"],
        ["", "wrong", "most", "≤ 2 %", "≤ 0 %", "3 %", "MISSED"],
        ["", "failed", "", "≤ 0", "", "0", "met"],
        ["join", "did not end", "", "", "", "they do not find each other", "MISSED"],
    ]


def test_a_missed_target_and_a_scenario_without_an_end_are_said_loudly() -> None:
    late = Outcome("crash", "smg-node", True, (Figure("all know", 3.5, "s", 3.0),))
    rows = shown(late, BROKEN)
    assert rows[0][-1] == "MISSED"
    assert rows[1] == ["join", "did not end", "", "they do not find each other", "MISSED"]


def test_only_our_own_targets_decide() -> None:
    assert verdict([OURS, THEIRS])
    assert not verdict([OURS, BROKEN])
    assert not verdict([Outcome("crash", "smg-node", True, (Figure("m", None, "s", 1.0),))])


def test_outcomes_are_written_for_machines() -> None:
    told = json.loads(json.dumps(as_json([OURS, BROKEN])))
    assert told[0]["figures"][0] == {
        "metric": "all know",
        "value": 2.5,
        "unit": "s",
        "limit": 3.0,
        "says": "",
        "least": None,
        "stretch": None,
        "before": "",
        "is_met": True,
    }
    assert told[1]["failed"] == "they do not find each other\nmore"


def test_a_scenario_has_its_own_size_unless_told_otherwise() -> None:
    crash = SCENARIOS["crash"]
    assert size_of(Options(("crash",), ()), crash) == Size(10, rounds=20)
    assert size_of(Options(("crash",), (), quick=True), crash) == crash.quick
    asked = Options(("crash",), (), nodes=3, seconds=5.0, rounds=2, quick=True)
    assert size_of(asked, crash) == Size(3, 5.0, 2)


def test_every_scenario_has_a_size_its_targets_are_meant_for() -> None:
    for scenario in SCENARIOS.values():
        for size in (scenario.full, scenario.quick):
            assert size.nodes >= 3
            assert size.nodes <= scenario.full.nodes
            assert (size.seconds > 0) == (scenario.full.seconds > 0)
            assert (size.rounds > 0) == (scenario.full.rounds > 0)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (Options(("crush",), ("smg-node",)), "no scenario is called 'crush'; there are crash, "),
        (Options(("crash",), ("surf",)), "no system is called 'surf'; there are smg-node, "),
        (
            Options(("limits",), (), trials=("big",)),
            "no trial of limits is called 'big'; there are ",
        ),
        (Options(("limits",), (), window_s=9), "windows of trials last 10 s or more, not 9"),
    ],
)
def test_what_does_not_exist_is_named_with_what_does(options: Options, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        run(options)
