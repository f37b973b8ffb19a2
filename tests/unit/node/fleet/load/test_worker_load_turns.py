"""When a worker is called overloaded, full or stuck; and how fast it is found to be."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.engines.load import Load
from smg_node.fleet.load.worker_load import (
    NEVER,
    PREFILL_RATE,
    PREFILL_RATE_MAX,
    PREFILL_RATE_MIN,
    LoadOptions,
    WorkerLoad,
)
from support.fleet.worker_loads import IDLE, load


def flips(one: WorkerLoad) -> list[tuple[bool, bool, bool]]:
    """Return what will be (overloaded, full, stuck) at each call of `changed`."""
    seen: list[tuple[bool, bool, bool]] = []
    one.changed = lambda: seen.append((one.overloaded, one.full, one.stuck))
    return seen


# ── Flags ────────────────────────────────────────────────────────────────────


def test_it_is_overloaded_from_eight_waiting_on_and_until_half_of_them_are_gone() -> None:
    one = load()
    seen = flips(one)
    for waiting in (7, 8, 7, 5, 4, 7):
        one.sample(replace(IDLE, running=4, waiting=waiting), 1.0)
    assert seen == [(True, False, False), (False, False, False)]


def test_it_is_overloaded_with_four_fifths_of_its_memory_in_use() -> None:
    one = load()
    seen = flips(one)
    for usage in (0.79, 0.8, 0.75, 0.71, 0.7, 0.79):
        one.sample(replace(IDLE, running=1, kv_usage=usage), 1.0)
    assert seen == [(True, False, False), (False, False, False)]


def test_it_is_full_with_eight_more_than_it_runs_at_once_and_until_there_is_some_room() -> None:
    one = load()
    one.sized(4)
    seen = flips(one)
    for _ in range(11):
        one.begin(0)
    assert (one.full, seen) == (False, [])
    one.begin(0)
    assert (one.full, seen) == (True, [(True, True, False)])
    for _ in range(4):
        one.end(0)
    assert one.full
    one.end(0)
    assert (one.full, seen[-1]) == (False, (False, False, False))
    # Calls of other nodes fill it as well.
    one.hear(5, 0)
    assert one.full


def test_thresholds_are_the_operators_and_may_change() -> None:
    one = load(waiting_max=2, kv_max=0.5, backlog_max=1)
    one.sized(1)
    one.begin(0)
    one.begin(0)
    assert one.full
    one.retune(LoadOptions(backlog_max=4))
    assert not one.full
    one.sample(replace(IDLE, waiting=2), 1.0)
    assert not one.overloaded
    one.retune(LoadOptions(waiting_max=2))
    assert one.overloaded


STEPS = replace(IDLE, running=1, reports_steps=True)


@pytest.mark.parametrize(
    ("said", "stuck"),
    [
        (replace(STEPS, silence_ms=None), False),
        (replace(STEPS, silence_ms=2900), False),
        (replace(STEPS, silence_ms=3100), True),
        (replace(STEPS, silence_ms=3100, reports_steps=False), False),
        (replace(STEPS, silence_ms=3900, prefill_pending_tokens=8000), False),
        (replace(STEPS, silence_ms=4100, prefill_pending_tokens=8000), True),
    ],
)
def test_an_engine_is_stuck_that_is_silent_for_longer_than_its_work_takes(
    said: Load, stuck: bool
) -> None:
    one = load()
    seen = flips(one)
    one.sample(said, 1.0)
    assert one.stuck is stuck
    assert seen == ([(False, False, True)] if stuck else [])
    one.sample(STEPS, 2.0)
    assert not one.stuck


def test_a_quiet_stream_makes_it_stuck_until_it_speaks_again_whatever_samples_say() -> None:
    one = load()
    one.stick(stuck=True)
    one.sample(STEPS, 1.0)
    assert one.stuck
    one.stick(stuck=False)
    assert not one.stuck


def test_changed_is_told_once_for_each_turn() -> None:
    one = load()
    seen = flips(one)
    one.stick(stuck=True)
    one.stick(stuck=True)
    one.begin(1)
    one.end(1)
    assert len(seen) == 1


# ── What was measured ────────────────────────────────────────────────────────


def test_the_rate_becomes_what_is_measured() -> None:
    one = load()
    for at in range(60):
        one.rate(2000, 1.0, now_s=float(at))
    assert one.prefill_rate == pytest.approx(2000, rel=0.1)
    one.begin(2000)
    assert one.wait_s == pytest.approx(1.0, rel=0.1)


def test_what_was_measured_a_minute_ago_counts_half() -> None:
    one = load()
    for at in range(600):
        one.rate(4000, 1.0, now_s=at / 10)
    for at in range(600):
        one.rate(8000, 1.0, now_s=60 + at / 10)
    # Two thirds of the weight is what came in the last minute.
    assert one.prefill_rate == pytest.approx(8000 * 2 / 3 + 4000 / 3, rel=0.1)


def test_one_strange_measurement_does_not_decide() -> None:
    one = load()
    one.rate(1000, 100.0, now_s=1.0)
    assert one.prefill_rate > 4000
    one.rate(1_000_000, 0.0001, now_s=1.1)
    assert one.prefill_rate <= 4 * 8000


@pytest.mark.parametrize(("tokens", "seconds"), [(255, 1.0), (1000, 0.0), (0, 1.0), (1000, -1.0)])
def test_what_measures_nothing_is_no_measurement(tokens: int, seconds: float) -> None:
    one = load()
    one.rate(tokens, seconds, now_s=1.0)
    assert one.prefill_rate == PREFILL_RATE


@given(
    st.lists(st.tuples(st.integers(0, 10**7), st.floats(1e-6, 1e4), st.floats(0, 1e5)), max_size=40)
)
def test_the_rate_stays_in_its_bounds(measured: list[tuple[int, float, float]]) -> None:
    one = load()
    now_s = 0.0
    for tokens, seconds, later_s in measured:
        now_s += later_s
        one.rate(tokens, seconds, now_s=now_s)
        assert PREFILL_RATE_MIN <= one.prefill_rate <= PREFILL_RATE_MAX


def test_a_worker_that_begins_anew_knows_nothing_of_the_one_before_but_its_calls() -> None:
    one = load()
    one.begin(4000)
    one.sample(replace(IDLE, waiting=9, kv_usage=0.9, running=3), 10.0)
    one.stick(stuck=True)
    one.rate(1000, 1.0, now_s=10.0)
    one.renewed(20.0)
    assert (one.inflight, one.tokens) == (1, 4000)
    assert (one.overloaded, one.stuck, one.prefill_rate) == (False, False, PREFILL_RATE)
    assert one.wait_s == pytest.approx(0.5)
    assert one.fresh_until_s == 80.0
    one.settled()
    assert one.fresh_until_s == NEVER


def test_the_first_rate_is_the_operators_until_it_is_measured() -> None:
    one = load(prefill_rate=1000)
    one.begin(1000)
    assert one.wait_s == pytest.approx(1.0)
    one.rate(4000, 1.0, now_s=1.0)
    measured = one.prefill_rate
    one.retune(LoadOptions(prefill_rate=500))
    assert one.prefill_rate == measured


@given(
    st.lists(
        st.builds(
            replace,
            st.just(IDLE),
            rank=st.integers(0, 3),
            running=st.integers(0, 500),
            waiting=st.integers(0, 500),
            running_max=st.none() | st.integers(1, 1000),
            waiting_uncached_tokens=st.none() | st.integers(0, 10**9),
            kv_usage=st.none() | st.floats(0, 1),
            age_ms=st.integers(0, 30_000),
            silence_ms=st.none() | st.integers(0, 100_000),
            reports_steps=st.booleans(),
            prefill_pending_tokens=st.none() | st.integers(0, 10**9),
        ),
        max_size=20,
    )
)
def test_whatever_engines_say_the_numbers_are_numbers(said: list[Load]) -> None:
    one = load()
    for at, each in enumerate(said):
        one.sample(each, float(at))
        one.tick(at + 0.5)
        assert 0 <= one.wait_s < float("inf")
        assert 0 <= one.pressure_s < float("inf")
        assert one.capacity >= 1
        assert not one.full or one.overloaded
    one.tick(len(said) + 100.0)
    assert (one.wait_s, one.pressure_s, one.sampled_s) == (0.0, 0.0, NEVER)
