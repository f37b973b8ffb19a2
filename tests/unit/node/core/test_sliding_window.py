"""A window holds the last seconds, to a bucket's width."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.sliding_window import Window


def test_what_happened_falls_out_when_the_window_has_passed_over_it() -> None:
    window = Window(30.0)
    window.add(0.0)
    window.add(14.9, 2)
    assert window.total(29.9) == 3
    assert window.total(30.0) == 2
    assert window.total(44.9) == 0


def test_a_long_silence_empties_it_whatever_its_length() -> None:
    window = Window(10.0)
    window.add(5.0, 7)
    assert window.total(1e9) == 0
    window.add(1e9)
    assert window.total(1e9) == 1


def test_a_clock_that_steps_back_counts_as_standing_still() -> None:
    window = Window(10.0)
    window.add(100.0)
    window.add(50.0)
    assert window.total(50.0) == window.total(100.0) == 2


def test_it_can_be_forgotten_at_any_time() -> None:
    window = Window(10.0)
    window.add(1.0, 5)
    window.clear()
    assert window.total(1.0) == 0
    window.add(2.0)
    assert window.total(2.0) == 1


@given(
    steps=st.lists(st.tuples(st.floats(0, 20), st.integers(0, 5)), max_size=60),
    span_s=st.sampled_from([0.5, 10.0, 30.0]),
)
def test_it_says_what_a_list_of_all_events_says(
    steps: Sequence[tuple[float, int]], span_s: float
) -> None:
    window, events, now_s = Window(span_s), [], 0.0
    for pause_s, count in steps:
        now_s += pause_s
        window.add(now_s, count)
        events.append((now_s, count))
        total = window.total(now_s)
        width_s = span_s / 10
        surely = sum(n for at_s, n in events if at_s > now_s - span_s + width_s)
        perhaps = sum(n for at_s, n in events if at_s > now_s - span_s)
        assert surely <= total <= perhaps


@pytest.mark.parametrize(("span_s", "buckets"), [(0.0, 10), (1.0, 0)])
def test_a_window_without_width_is_a_mistake(span_s: float, buckets: int) -> None:
    with pytest.raises(AssertionError):
        Window(span_s, buckets)


@given(
    pauses_s=st.lists(st.floats(0, 20), max_size=60),
    span_s=st.sampled_from([0.5, 10.0, 30.0]),
    backwards=st.booleans(),
)
def test_what_is_added_together_counts_as_one_after_the_other(
    pauses_s: Sequence[float], span_s: float, backwards: bool
) -> None:
    together, apart, times_s = Window(span_s), Window(span_s), [3.0]
    for pause_s in pauses_s:
        times_s.append(times_s[-1] + pause_s)
    if backwards:
        times_s.reverse()
    together.add_all(times_s)
    for now_s in times_s:
        apart.add(now_s)
    for later_s in (0.0, span_s / 3, span_s / 2, span_s):
        now_s = max(times_s) + later_s
        assert together.total(now_s) == apart.total(now_s)
