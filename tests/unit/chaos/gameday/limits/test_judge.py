"""Whether what arrived can have been admitted: for any log, the judge says what trying every way out says."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.limits.judge import (
    Allowance,
    Amount,
    Run,
    Span,
    crossing,
    fullest,
    most_open,
    use_by_window,
    used,
)

SECOND_US = 1_000_000


def three(_: int) -> int:
    return 3


def fits(spans: Sequence[Span], amounts: Sequence[int]) -> bool:
    """Charge what may wait least first, each to the first of its windows with room: that finds a way if there is one."""
    left = [*amounts]
    for window in range(len(left)):
        waiting = sorted(
            (span for span in spans if span.first <= window), key=lambda span: span.last
        )
        for span in waiting[: left[window]]:
            if span.last < window:
                return False
            spans = [one for one in spans if one is not span]
    return not spans


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Span], list[int]]:
    count = draw(st.integers(1, 6))
    amounts = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    spans = draw(st.lists(ends, max_size=12))
    return [Span(min(pair), max(pair)) for pair in spans], amounts


@given(logs())
def test_what_the_judge_lets_pass_is_what_can_be_charged_somehow(
    log: tuple[list[Span], list[int]],
) -> None:
    spans, amounts = log
    run = fullest(spans, amounts.__getitem__)
    if not spans:
        assert run is None
        return
    assert run is not None
    assert (run.excess == 0) == fits(spans, amounts)


@given(logs())
def test_the_run_that_is_named_holds_what_is_said_of_it(
    log: tuple[list[Span], list[int]],
) -> None:
    spans, amounts = log
    run = fullest(spans, amounts.__getitem__)
    if run is None:
        return
    inside = [span for span in spans if run.first <= span.first and span.last <= run.last]
    assert run.charged == sum(span.weight for span in inside) > 0
    assert run.allowed == sum(amounts[run.first : run.last + 1])
    for first in range(len(amounts)):
        for last in range(first, len(amounts)):
            charged = sum(first <= one.first and one.last <= last for one in spans)
            assert charged - sum(amounts[first : last + 1]) <= max(run.excess, 0)


def test_one_too_many_in_one_window_is_found_in_a_long_record() -> None:
    spans = [Span(window, window) for window in range(1000, 1200) for _ in range(3)]
    full = fullest(spans, three)
    assert full is not None
    assert (full.excess, full.share) == (0, 1.0)
    run = fullest([*spans, Span(1100, 1100)], three)
    assert run is not None
    assert (run.excess, run.first <= 1100 <= run.last) == (1, True)


def test_what_crossed_a_border_is_nobodys_excess() -> None:
    spans = [Span(7, 7)] * 3 + [Span(7, 8)] * 3
    run = fullest(spans, three)
    assert run is not None
    assert run.excess == 0
    assert crossing(spans) == 3
    worse = fullest([*spans, Span(7, 8)], three)
    assert worse is not None
    assert worse == Run(7, 8, 7, 6)
    assert (worse.excess, round(worse.share, 3)) == (1, 1.167)


def test_what_one_window_saved_is_of_no_use_in_the_next() -> None:
    run = fullest([Span(2, 2)] * 4, three)
    assert run == Run(2, 2, 4, 3)


def test_tokens_weigh_what_they_are() -> None:
    run = fullest([Span(1, 1, 70), Span(1, 2, 30), Span(2, 2, 101)], lambda _: 100)
    assert run is not None
    assert (run.excess, run.charged) == (1, 101)


def test_a_window_without_any_allowance_is_full_at_once() -> None:
    run = fullest([Span(4, 4)], lambda _: 0)
    assert run is not None
    assert (run.excess, run.share) == (1, 1.0)


# ── Allowances ──────────────────────────────────────────────────────────────


def test_the_larger_amount_holds_in_a_window_in_which_a_limit_is_changed() -> None:
    allowance = Allowance(
        SECOND_US,
        [
            Amount(40, 3_200_000, 7_000_000),
            Amount(20, 5_500_000),
            Amount(30, 9_100_000),
        ],
    )
    assert [allowance.of(window) for window in range(2, 11)] == [0, 40, 40, 40, 40, 20, 20, 30, 30]


@pytest.mark.parametrize(
    ("sent_us", "seen_us", "span"),
    [
        (5_200_000, 5_300_000, Span(5, 5)),
        (5_050_000, 5_060_000, Span(4, 5)),
        (5_900_000, 6_010_000, Span(5, 6)),
        (5_900_000, 8_500_000, Span(5, 8)),
        (5_900_000, 5_999_500, Span(5, 6)),
        (6_000_000, 5_999_000, Span(5, 6)),
    ],
)
def test_a_span_is_from_the_sending_to_the_arrival_and_a_little_more(
    sent_us: int, seen_us: int, span: Span
) -> None:
    assert Allowance(SECOND_US, []).span(sent_us, seen_us, smear_us=100_000) == span


# ── Use ─────────────────────────────────────────────────────────────────────


def test_use_counts_each_request_once_and_a_doubtful_window_generously() -> None:
    spans = [Span(1, 1)] * 3 + [Span(1, 2)] + [Span(2, 2)] + [Span(2, 3)]
    assert used(spans, three, 1, 2) == pytest.approx(5 / 6)
    assert used(spans, three, 5, 4) == 0.0
    assert use_by_window(spans, three, 1, 3) == pytest.approx([4 / 3, 1.0, 1 / 3])


def test_open_at_once_is_counted_at_every_moment() -> None:
    assert most_open([]) == 0
    assert most_open([(1, 5), (5, 9), (9, None)]) == 1
    assert most_open([(1, 5), (2, 3), (4, 6), (4, None), (7, 8)]) == 3
