from datetime import UTC, datetime

import pytest

from smg_chaos.bench.compare_page import Page, page
from smg_chaos.bench.figures.rows import Figure
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS
from smg_chaos.bench.goals import COMMON, GOALS, Goal, Verdict, judged
from smg_chaos.bench.load.workloads import WORKLOADS, chosen

SHORT = Goal("short", "short", 0.6, 0.35)
MEMORY = Goal("memory", "short", 1.1, 0.9, of="memory")
PEAK = Goal("peak", "short", 1.1, 0.9, of="peak")


def figure(gateway: str, median: float, *, ratio: float | None = None, **fields: float) -> Figure:
    return Figure(
        workload="short",
        gateway=gateway,
        unit="µs per request",
        values=[median, median],
        median=median,
        spread=fields.get("spread", 0.1),
        ratio=ratio,
        result=fields.get("spread", 0.1) <= 0.2,
        peak_mb=fields.get("peak_mb", 0.0),
        steady_mb=fields.get("steady_mb", 0.0),
        requests=int(fields.get("requests", 0)),
    )


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.35, "stretch"), (0.351, "pass"), (0.6, "pass"), (0.601, "short"), (9.0, "short")],
)
def test_a_ratio_is_held_against_both_marks(ratio: float, verdict: Verdict) -> None:
    figures = {"smg": [figure("ours", 100 * ratio, ratio=ratio), figure("smg", 100.0)]}
    [one] = judged([SHORT], figures, "ours")
    assert (one.verdict, one.ratio, one.theirs) == (verdict, ratio, 100.0)
    assert one.short is (verdict == "short")


@pytest.mark.parametrize(
    "figures",
    [
        [],
        [figure("ours", 10.0, ratio=0.1)],
        [figure("smg", 100.0)],
        [figure("ours", 10.0, ratio=0.1, spread=0.3), figure("smg", 100.0)],
        [figure("ours", 10.0, ratio=0.1), figure("smg", 100.0, spread=0.3)],
        [figure("ours", 10.0), figure("smg", 100.0)],
    ],
)
def test_what_was_not_measured_well_is_no_result_and_so_falls_short(figures: list[Figure]) -> None:
    [one] = judged([SHORT], {"smg": figures}, "ours")
    assert one.verdict == "no result"
    assert one.short


def test_a_gateway_is_compared_with_itself_in_the_run_with_the_reference() -> None:
    goal = Goal("messages", "messages", 1.05, 1.0, "ours", than="short")
    short, messages = figure("ours", 100.0), figure("ours", 104.0)
    messages.workload = "messages"
    [one] = judged([goal], {"smg": [short, messages, figure("smg", 1.0)]}, "ours")
    assert (one.verdict, one.ratio, one.ours, one.theirs) == ("pass", 1.04, 104.0, 100.0)
    [one] = judged([goal], {"smg": [messages]}, "ours")
    assert (one.verdict, one.why) == ("no result", "not measured")
    messages.result = False
    [one] = judged([goal], {"smg": [short, messages]}, "ours")
    assert (one.verdict, one.why) == ("no result", "too few rounds count")


def test_memory_is_compared_when_enough_prompts_were_seen() -> None:
    mine = figure("ours", 1.0, peak_mb=330.0, steady_mb=200.0, requests=5000)
    theirs = figure("smg", 1.0, peak_mb=300.0, steady_mb=250.0, requests=9000)
    [steady, peak] = judged([MEMORY, PEAK], {"smg": [mine, theirs]}, "ours")
    assert (steady.verdict, steady.ratio, steady.unit) == ("stretch", 0.8, "MB")
    assert (peak.verdict, peak.ratio) == ("pass", 1.1)
    mine.requests = 4999
    [few] = judged([MEMORY], {"smg": [mine, theirs]}, "ours")
    assert (few.verdict, few.why, few.ours) == ("no result", "only 4,999 prompts", 200.0)
    [none] = judged([MEMORY], {"smg": [figure("ours", 1.0), figure("smg", 1.0)]}, "ours")
    assert (none.verdict, none.why) == ("no result", "memory was not told")


def test_no_result_says_whose_rounds_spread() -> None:
    figures = [figure("ours", 10.0, ratio=0.1), figure("smg", 100.0, spread=0.34)]
    [one] = judged([SHORT], {"smg": figures}, "ours")
    assert (one.verdict, one.why) == ("no result", "smg spread by 34%")


def test_every_goal_is_about_a_workload_and_a_gateway_that_exist() -> None:
    for goal in GOALS:
        assert goal.base in KINDS
        assert goal.workload in WORKLOADS or chosen(["paced"], [int(goal.workload[6:])])
        assert goal.stretch < goal.must
    assert EQUIPPED in KINDS
    assert len({goal.axis for goal in GOALS}) == len(GOALS)


def test_the_page_shows_each_goal_and_each_step_of_growth() -> None:
    figures = {"smg": [figure("ours", 30.0, ratio=0.3), figure("smg", 100.0)]}
    common = Goal("litellm", "short", 0.02, 0.01, COMMON)
    facts = {
        "machine": {"cpu": "some", "cores": 2, "libraries": {"msgspec": "1.0", "uvloop": ""}},
        "weather": {
            "load_average": 1.5,
            "pressure": 7.2,
            "step_ns": [208.0, 350.4, 391.0],
            "stolen": 0.2,
        },
        "rounds": 3,
        "gateways": [{"label": "smg", "says": "SMG", "version": "9", "arguments": ""}],
    }
    noted = figure("ours", 12.0)
    noted.notes = ["a | b"]
    text = page(
        Page(
            datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
            facts,
            judged([SHORT, common], figures, "ours"),
            [("streams: µs per token", [(1, noted), (1000, None)])],
        )
    )
    assert (
        "| short | smg | 30.0 | 100 | µs per request | 0.300 | 0.6 | 0.35 | 10% | stretch |" in text
    )
    assert (
        "| litellm | litellm | - | - | - | - | 0.02 | 0.01 | - | no result: not measured |" in text
    )
    assert "| When | 2026-01-02 03:04 UTC |" in text
    assert "| Load and CPU pressure, worst of all rows | 1.50, 7 % |" in text
    assert "| A plain step before each row | 208 to 391 ns, median 350 |" in text
    assert "| CPU given to other machines, worst of all rows | 20% |" in text
    assert "| smg | SMG, 9, no flags |" in text
    assert "| msgspec | 1.0 |" in text
    assert "uvloop" not in text
    assert "## Growth: streams" in text
    assert "| 1 | 12.0 | 10% | 0.0 | - | 0 | a / b |" in text
    assert "| 1,000 | - | - | - | - | - | not measured |" in text
    assert text.endswith("|\n")
