"""A breaker opens by its rules only, lets one probe at a time through, and closes again."""

import random
from dataclasses import replace

import pytest

from smg_node.fleet.health.circuit_breaker import (
    EARLY_S,
    LOOK_PATIENCE_S,
    NEVER,
    PROBE_MAX_S,
    Breaker,
    State,
)
from support.fleet.breakers import OPTIONS, Even, breaker, fail, opened

# ── Opening ──────────────────────────────────────────────────────────────────


def test_a_new_one_lets_everything_through_without_probes() -> None:
    one = breaker()
    assert one.usable(0.0)
    assert one.take_probe(0.0) == 0
    assert not one.probe_free(0.0)
    assert (one.next_s(0.0), one.look_s(0.0), one.why(0.0)) == (NEVER, NEVER, "")


def test_it_opens_with_the_tenth_call_of_which_half_failed() -> None:
    one = breaker()
    for _ in range(5):
        one.success(0.0)
    fail(one, 0.0, 4)
    assert one.usable(0.0)
    fail(one, 0.0)
    assert one.state(0.0) is State.OPEN
    assert not one.usable(0.0)
    assert one.why(0.0) == "breaker open"


def test_nine_failures_are_too_few_to_say_anything() -> None:
    one = breaker()
    fail(one, 0.0, 9)
    assert one.usable(0.0)


def test_a_success_never_opens_it() -> None:
    one = breaker(replace(OPTIONS, samples_min=10))
    fail(one, 0.0, 9)
    one.success(0.0)
    assert one.usable(0.0)


def test_less_than_half_is_not_enough_however_many_fail() -> None:
    one = breaker()
    for _ in range(100):
        one.success(0.0)
        one.success(0.0)
        fail(one, 0.0)
    assert one.usable(0.0)


def test_what_is_older_than_the_window_does_not_count() -> None:
    one = breaker()
    fail(one, 0.0, 9)
    fail(one, 30.0, 9)
    assert one.usable(30.0)
    fail(one, 30.0)
    assert not one.usable(30.0)


def test_five_connections_that_fail_in_a_row_are_enough() -> None:
    one = breaker()
    fail(one, 0.0, 4, connect=True)
    assert one.usable(0.0)
    fail(one, 0.0, connect=True)
    assert not one.usable(0.0)


@pytest.mark.parametrize("word", ["success", "spoke"])
def test_any_word_from_there_ends_the_row(word: str) -> None:
    one = breaker()
    for _ in range(5):
        fail(one, 0.0, 4, connect=True)
        getattr(one, word)(0.0)
        for _ in range(20):
            one.success(0.0)
    assert one.usable(0.0)


def test_hearsay_opens_nothing_but_makes_one_failure_enough_for_ten_seconds() -> None:
    one = breaker()
    one.hint(0.0)
    assert one.usable(0.0)
    fail(one, 10.0)
    assert one.usable(10.0)
    one.hint(11.0)
    fail(one, 20.9)
    assert not one.usable(20.9)


def test_one_that_is_switched_off_never_opens_and_never_pauses() -> None:
    one = breaker(replace(OPTIONS, enabled=False))
    fail(one, 0.0, 100, connect=True)
    one.pressure(0.0, 30.0)
    assert one.usable(0.0)


# ── Open ─────────────────────────────────────────────────────────────────────


def test_it_is_open_for_five_seconds_and_then_half_open() -> None:
    one = opened()
    assert one.next_s(2.0) == 5.0
    assert one.look_s(2.0) == 5.0
    assert one.state(4.99) is State.OPEN
    assert one.state(5.0) is State.HALF_OPEN
    assert one.why(5.0) == "breaker half open"


def test_the_time_is_a_fifth_longer_or_shorter() -> None:
    ends = []
    for seed in range(200):
        one = Breaker(OPTIONS, random.Random(seed))
        fail(one, 0.0, 10)
        ends.append(one.look_s(0.0))
    assert 4.0 <= min(ends) < 4.2
    assert 5.8 < max(ends) <= 6.0


def test_what_calls_of_before_say_while_it_is_open_changes_nothing() -> None:
    one = opened()
    fail(one, 1.0, 100, connect=True)
    one.success(2.0)
    one.spoke(2.0)
    one.looked(2.0, good=False)
    assert one.look_s(2.0) == 5.0
    assert one.opened == 1


# ── Half open ────────────────────────────────────────────────────────────────


def test_one_probe_at_a_time() -> None:
    one = opened()
    assert one.probe_free(5.0)
    first = one.take_probe(5.0)
    assert first > 0
    assert not one.probe_free(5.0)
    assert one.take_probe(5.0) == 0
    one.abandoned(6.0, first)
    assert one.probe_free(6.0)
    second = one.take_probe(6.0)
    assert second > first
    one.abandoned(6.5, first)
    assert not one.probe_free(6.5), "that one was let go of before"


def test_two_answered_probes_close_it() -> None:
    one = opened()
    one.spoke(5.0, one.take_probe(5.0))
    assert one.state(5.5) is State.HALF_OPEN
    one.success(6.0, one.take_probe(6.0))
    assert one.state(6.0) is State.CLOSED
    assert one.take_probe(6.0) == 0
    fail(one, 6.0, 9)
    assert one.usable(6.0), "it begins with no samples"


def test_the_end_of_a_probe_that_spoke_does_not_count_again() -> None:
    one = opened()
    probe = one.take_probe(5.0)
    one.spoke(5.0, probe)
    one.success(6.0, probe)
    assert one.state(6.0) is State.HALF_OPEN


def test_only_probes_decide() -> None:
    one = opened()
    one.success(5.0)
    one.success(5.0)
    one.spoke(5.0)
    fail(one, 5.0, 20, connect=True)
    assert one.state(5.0) is State.HALF_OPEN
    assert one.opened == 1


def test_a_failed_probe_opens_it_for_twice_as_long_up_to_a_minute() -> None:
    one, now_s, spans = opened(), 0.0, []
    for _ in range(6):
        start_s, now_s = now_s, one.look_s(now_s)
        spans.append(now_s - start_s)
        one.failure(now_s, connect=False, probe=one.take_probe(now_s))
    assert spans == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


def test_it_stays_open_longer_too_if_it_fails_soon_after_it_closed() -> None:
    one = opened()
    for _ in range(2):
        one.success(5.0, one.take_probe(5.0))
    fail(one, 20.0, 10)
    assert one.look_s(20.0) == 30.0
    for _ in range(2):
        one.success(30.0, one.take_probe(30.0))
    fail(one, 60.0, 10)
    assert one.look_s(60.0) == 65.0, "it was well for half a minute"


def test_a_probe_that_spoke_and_broke_afterwards_opens_it_again() -> None:
    one = opened()
    probes = [one.take_probe(5.0)]
    one.spoke(5.0, probes[0])
    probes.append(one.take_probe(5.0))
    one.failure(5.5, connect=False, probe=probes[0])
    assert one.state(5.5) is State.OPEN
    assert one.look_s(5.5) == 15.5

    closed = opened()
    probes = []
    for _ in range(2):
        probes.append(closed.take_probe(5.0))
        closed.spoke(5.0, probes[-1])
    assert closed.state(5.0) is State.CLOSED
    closed.failure(6.0, connect=False, probe=probes[0])
    assert closed.state(6.0) is State.OPEN
    closed.failure(40.0, connect=False, probe=probes[1])
    assert closed.state(40.0) is State.HALF_OPEN, "that was a probe of the time before"


def test_a_long_answer_that_breaks_long_after_is_one_failure_like_any() -> None:
    one = opened()
    probes = []
    for _ in range(2):
        probes.append(one.take_probe(5.0))
        one.spoke(5.0, probes[-1])
    one.failure(35.0, connect=False, probe=probes[0])
    assert one.usable(35.0)


def test_a_good_look_lets_ordinary_requests_be_the_probe() -> None:
    one = opened()
    assert not one.usable(5.0)
    assert one.look_s(5.0) == 5.0
    one.looked(5.1, good=True)
    assert one.usable(5.1)
    assert one.look_s(5.1) == NEVER
    probe = one.take_probe(5.1)
    assert not one.usable(5.1)
    one.spoke(5.2, probe)
    assert one.usable(5.2)


def test_a_bad_look_is_a_relapse() -> None:
    one = opened()
    one.looked(5.0, good=False)
    assert one.state(5.0) is State.OPEN
    assert one.look_s(5.0) == 15.0


def test_without_any_look_requests_find_out_after_a_while() -> None:
    one = opened()
    assert one.state(5.0) is State.HALF_OPEN
    assert one.next_s(5.0) == 5.0 + LOOK_PATIENCE_S
    assert not one.usable(9.9)
    assert one.usable(10.0)


def test_a_probe_that_nobody_hears_of_is_given_up() -> None:
    one = opened()
    lost = one.take_probe(5.0)
    one.looked(5.0, good=True)
    assert not one.usable(64.9)
    assert one.next_s(64.9) == 5.0 + PROBE_MAX_S
    assert one.usable(65.0)
    assert one.take_probe(65.0) > 0
    one.spoke(66.0, lost)
    assert not one.probe_free(66.0)
    one.failure(66.0, connect=False, probe=lost)
    assert one.state(66.0) is State.OPEN, "it was a probe all the same, and it failed"


def test_where_all_are_open_one_is_probed_before_its_time_at_most_once_a_second() -> None:
    one = opened()
    assert not one.probe_free(0.9, alone=True)
    assert one.next_s(0.0) == EARLY_S
    assert one.probe_free(1.0, alone=True)
    assert not one.probe_free(1.0)
    probe = one.take_probe(1.0)
    assert one.state(1.0) is State.HALF_OPEN
    one.failure(1.1, connect=True, probe=probe)
    assert one.state(1.1) is State.OPEN
    assert one.look_s(1.1) == 6.1, "it had no chance to get well, so the time does not grow"
    assert not one.probe_free(2.0, alone=True)
    one.spoke(2.2, one.take_probe(2.2))
    assert one.usable(2.2), "an answer is better than a look"


# ── Around it ────────────────────────────────────────────────────────────────


def test_it_tells_when_something_turned_and_only_then() -> None:
    told: list[int] = []
    one = Breaker(OPTIONS, Even(), changed=lambda: told.append(1))

    def tells(act: object) -> int:
        told.clear()
        assert callable(act)
        act()
        return len(told)

    assert tells(lambda: one.success(0.0)) == 0
    assert tells(lambda: fail(one, 0.0, 8)) == 0
    assert tells(lambda: fail(one, 0.0)) == 1
    assert tells(lambda: fail(one, 0.0, 5)) == 0
    assert tells(lambda: one.looked(5.0, good=True)) == 1
    assert tells(lambda: one.looked(5.0, good=True)) == 0
    assert tells(lambda: one.take_probe(5.0)) == 1
    assert tells(lambda: one.take_probe(5.0)) == 0
    assert tells(lambda: one.abandoned(5.0, 1)) == 1
    assert tells(lambda: one.abandoned(5.0, 1)) == 0
    assert tells(lambda: one.pressure(5.0, 1.0)) == 1
    assert tells(lambda: one.pressure(5.0, None)) == 0
    assert tells(one.reset) == 1
    fresh = Breaker(OPTIONS, Even(), changed=lambda: told.append(1))
    assert tells(fresh.reset) == 0


def test_whoever_is_told_may_place_the_next_call_at_once() -> None:
    one = opened()
    taken: list[int] = []

    def place() -> None:
        if one.probe_free(5.0):
            taken.append(one.take_probe(5.0))

    first = one.take_probe(5.0)
    one._changed = place
    one.spoke(5.0, first)
    assert taken == [first + 1]
    one.abandoned(5.0, taken[0])
    assert taken == [first + 1, first + 2]


def test_another_engine_begins_anew() -> None:
    one = opened()
    one.reset()
    assert one.usable(0.0)
    assert one.view(0.0).samples == 0
    assert one.opened == 1, "what was counted stays counted"


def test_other_numbers_count_from_now_on() -> None:
    one = opened()
    one.retune(replace(OPTIONS, samples_min=1))
    assert not one.usable(0.0)
    one.reset()
    fail(one, 1.0)
    assert not one.usable(1.0)
    one.retune(replace(OPTIONS, enabled=False))
    assert one.usable(1.0)
    one.retune(replace(OPTIONS, window_s=5.0))
    fail(one, 2.0, 9)
    fail(one, 8.0)
    assert one.usable(8.0)


def test_an_operator_sees_what_it_counts() -> None:
    one = breaker()
    one.success(0.0)
    fail(one, 0.0, 2)
    view = one.view(0.0)
    assert (view.state, view.samples, view.failures, view.opened) == ("closed", 3, 2, 0)
    assert (view.why, view.pressure, view.again_s) == ("", 0, None)
    one = opened()
    view = one.view(2.0)
    assert (view.state, view.why, view.again_s) == ("open", "breaker open", 3.0)
    assert view.opened == 1
