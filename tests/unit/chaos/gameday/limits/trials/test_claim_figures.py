"""Figures of claims: their targets, and what their texts say of what was wrong."""

from smg_chaos.gameday.limits.claims.reasons import ReasonClaims
from smg_chaos.gameday.limits.claims.remaining import RemainingClaims
from smg_chaos.gameday.limits.claims.reported_use import UseClaims
from smg_chaos.gameday.limits.claims.retries import RetryClaims
from smg_chaos.gameday.limits.trials import goals
from smg_chaos.gameday.limits.trials.claim_figures import (
    reason_figure,
    remaining_figure,
    retry_figure,
    use_figure,
)


def test_nothing_wrong_meets_every_target() -> None:
    lines: list[str] = []
    figures = [
        remaining_figure("t", RemainingClaims(looked=5), lines.append),
        retry_figure("t", RetryClaims(refusals=4, returned=2, worst_late_s=1.5), lines.append),
        reason_figure("t", ReasonClaims({"used_up": 4}), lines.append),
        use_figure("t", UseClaims(looked=3, empty=1), lines.append),
    ]
    assert [figure.value for figure in figures] == [0, 0, 0, 0]
    assert all(figure.is_met for figure in figures)
    assert lines == []
    assert [figure.says for figure in figures] == [
        "of 5; worst by 0",
        "of 4, 2 came back; latest by 1.5 s",
        "of 4: 4 used_up; 0 untrue",
        "of 3, 1 of nothing yet; worst sum by 0",
    ]


def test_what_is_wrong_misses_its_target_and_is_shown_five_times_at_most() -> None:
    lines: list[str] = []
    shown = [f"answer {number}" for number in range(9)]
    remaining = RemainingClaims(10, 1, 0, 0, 2, 3, 1, 40, {1, 2, 3, 4}, shown)
    figure = remaining_figure("t", remaining, lines.append)
    assert (figure.value, figure.is_met) == (4, False)
    assert figure.says == ("of 10, 1 without, 2 rising, 3 off, 1 of them refusals; worst by 40")
    assert lines == [f"t: answer {number}" for number in range(5)]
    retries = RetryClaims(100, too_short=2, too_long=1, overtaken=4, wrong_serials={1, 2})
    figure = retry_figure("t", retries, lines.append)
    assert (figure.value, figure.unit, figure.is_met) == (2.0, "%", True)
    retries.wrong_serials.add(3)
    assert not retry_figure("t", retries, lines.append).is_met
    reasons = ReasonClaims({"used_up": 3, "none": 1}, unknown=1, untrue=2)
    figure = reason_figure("t", reasons, lines.append)
    assert (figure.value, figure.says) == (3, "of 4: 1 none, 3 used_up; 2 untrue")
    assert not figure.is_met
    use = UseClaims(5, 0, sums=2, spent=1, unexplained=1, wrong=3, worst=116)
    figure = use_figure("t", use, lines.append)
    assert (figure.value, figure.is_met) == (3, False)


def test_goals_say_what_was_must_be_and_would_be_better() -> None:
    figure = goals.AT_ONCE.figure("one client", 0.52, "31 of 60")
    assert (figure.metric, figure.before) == (
        "one client: admitted within 2 s of asking / limit",
        "0.52",
    )
    assert (figure.least, figure.stretch, figure.limit, figure.is_met) == (0.95, 1.0, None, False)
    assert goals.AT_ONCE.figure("one client", 0.95).is_met
    over = goals.FULLEST.figure("one client", 1.001)
    assert (over.limit, over.least, over.is_met) == (1.0, None, False)
