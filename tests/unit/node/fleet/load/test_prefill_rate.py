"""How fast workers are taken for, by what was measured of them and of their like."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.fleet.load.prefill_rate import HALF_LIFE_S, Measured, UsualRates
from smg_node.fleet.load.worker_load import (
    PREFILL_RATE,
    PREFILL_RATE_MAX,
    PREFILL_RATE_MIN,
    WorkerLoad,
)
from support.fleet.worker_loads import load


def ticked(loads: list[WorkerLoad], rates: UsualRates, now_s: float) -> None:
    """Let a second pass as the fleet does."""
    rates.take([("tiny", one.measured) for one in loads], first=PREFILL_RATE)
    for one in loads:
        one.tick(now_s, rates.of("tiny", first=PREFILL_RATE))


def test_what_was_measured_counts_half_after_a_minute_whether_anything_came_since_or_not() -> None:
    one = Measured()
    one.add(10_000, 1.0, known=8000.0, now_s=0.0)
    assert one.rate(8000.0) == pytest.approx(18_000 / 2)
    one.age(HALF_LIFE_S)
    assert (one.tokens, one.seconds) == (5000, 0.5)
    assert one.rate(8000.0) == pytest.approx(13_000 / 1.5)
    one.age(100 * HALF_LIFE_S)
    assert one.rate(8000.0) == pytest.approx(8000)
    # A clock that goes back makes nothing more than it was.
    one.add(1000, 0.125, known=8000.0, now_s=50.0)
    assert one.seconds == pytest.approx(0.125)


def test_a_worker_that_nobody_measured_is_taken_for_what_its_sisters_are() -> None:
    loads, rates = [load(), load(), load()], UsualRates()
    for at in range(60):
        loads[0].rate(26_000, 1.0, now_s=float(at))
        loads[1].rate(26_000, 1.0, now_s=float(at))
        ticked(loads, rates, float(at))
    assert [one.prefill_rate for one in loads] == pytest.approx([26_000] * 3, rel=0.02)


def test_a_worker_that_was_slow_once_is_forgiven_while_nothing_is_measured_of_it() -> None:
    loads, rates = [load(), load()], UsualRates()
    loads[1].rate(8000, 4.0, now_s=0.0)
    seen = []
    for at in range(600):
        loads[0].rate(26_000, 1.0, now_s=float(at))
        ticked(loads, rates, float(at))
        seen.append(loads[1].prefill_rate / loads[0].prefill_rate)
    assert seen[10] < 0.5
    assert seen[300] > 0.85
    assert seen[599] > 0.97


def test_workers_that_differ_are_told_apart_while_they_work() -> None:
    loads, rates = [load(), load()], UsualRates()
    for at in range(120):
        loads[0].rate(30_000, 1.0, now_s=float(at))
        loads[1].rate(10_000, 1.0, now_s=float(at))
        ticked(loads, rates, float(at))
    assert loads[0].prefill_rate == pytest.approx(30_000, rel=0.02)
    assert loads[1].prefill_rate == pytest.approx(10_000, rel=0.02)


def test_what_is_usual_stays_while_nobody_measures_anything() -> None:
    loads, rates = [load(), load()], UsualRates()
    for at in range(60):
        loads[0].rate(26_000, 1.0, now_s=float(at))
        ticked(loads, rates, float(at))
    for at in range(60, 4000, 7):
        ticked(loads, rates, float(at))
    assert [one.prefill_rate for one in loads] == pytest.approx([26_000] * 2, rel=0.05)


def test_groups_are_kept_apart_and_those_without_workers_are_forgotten() -> None:
    rates = UsualRates()
    fast, slow = Measured(26_000.0, 1.0), Measured(2000.0, 1.0)
    rates.take([("fast", fast), ("slow", slow), ("new", Measured())], first=8000.0)
    assert rates.of("fast", first=8000.0) == pytest.approx(17_000)
    assert rates.of("slow", first=8000.0) == pytest.approx(5000)
    # The operator's number goes on counting where nothing was measured.
    assert rates.of("new", first=1234.0) == 1234.0
    rates.take([("slow", Measured())], first=8000.0)
    assert rates.of("slow", first=8000.0) == pytest.approx(5000)
    assert rates.of("fast", first=8000.0) == 8000.0
    rates.take([], first=8000.0)
    assert rates.of("slow", first=8000.0) == 8000.0


def test_a_worker_that_begins_anew_is_its_operators_number_until_it_is_told_what_is_usual() -> None:
    one = load(prefill_rate=1000)
    one.tick(1.0, 26_000.0)
    assert one.prefill_rate == pytest.approx(26_000)
    one.renewed(2.0)
    assert one.prefill_rate == 1000
    one.tick(3.0)
    assert one.prefill_rate == 1000


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 10**7), st.floats(1e-6, 1e4), st.floats(0, 1e4)
        ),
        max_size=40,
    )
)
def test_rates_stay_in_their_bounds_whatever_is_measured(
    measured: list[tuple[int, int, float, float]],
) -> None:
    loads, rates, now_s = [load(), load(), load()], UsualRates(), 0.0
    for at, tokens, seconds, later_s in measured:
        now_s += later_s
        loads[at].rate(tokens, seconds, now_s=now_s)
        ticked(loads, rates, now_s)
        for one in loads:
            assert PREFILL_RATE_MIN <= one.prefill_rate <= PREFILL_RATE_MAX
