"""A worker that says it is full is let be for a while, tried again gently, and never taken for broken."""

import pytest

from smg_node.fleet.health.circuit_breaker import State
from support.fleet.breakers import breaker, opened


def test_one_that_is_full_is_passed_over_and_never_opens() -> None:
    one = breaker()
    for _ in range(2048):
        one.pressure(0.0, None)
    assert one.state(0.0) is State.CLOSED
    assert not one.usable(0.0)
    assert one.busy(0.0)
    assert one.why(0.0) == "asked to be left alone"
    assert one.next_s(0.0) == 0.25, "calls that were turned away together count once"
    assert one.usable(0.25)
    assert one.opened == 0
    assert one.full.count == 2048


def test_the_pause_doubles_up_to_five_seconds_until_something_is_answered() -> None:
    one, now_s, pauses = breaker(), 0.0, []
    for _ in range(7):
        one.pressure(now_s, None, one.take_probe(now_s))
        pauses.append(one.next_s(now_s) - now_s)
        now_s = one.next_s(now_s)
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    one.spoke(now_s)
    one.pressure(now_s, None)
    assert one.next_s(now_s) - now_s == 0.25


@pytest.mark.parametrize(("asked_s", "until_s"), [(3.0, 3.0), (600.0, 60.0), (0.0, 0.0)])
def test_it_is_left_alone_for_as_long_as_it_asks_within_reason(
    asked_s: float, until_s: float
) -> None:
    one = breaker()
    one.pressure(0.0, asked_s)
    assert not one.usable(until_s - 0.001)
    assert one.usable(until_s)


def test_the_longest_of_several_pauses_counts() -> None:
    one = breaker()
    one.pressure(0.0, 10.0)
    one.pressure(1.0, 2.0)
    one.pressure(1.0, None)
    assert not one.usable(9.9)
    assert one.usable(10.0)


def test_after_pressure_it_is_tried_with_one_call_and_one_more_for_each_answer() -> None:
    one = breaker()
    one.pressure(0.0, 1.0)
    out = [one.take_probe(1.0)]
    assert out[0] > 0
    assert not one.usable(1.0)
    assert one.busy(1.0)
    assert one.why(1.0) == "tried after pressure"
    assert not one.probe_free(1.0), "it is not broken"
    sizes = []
    while one.take_probe(1.0) or out:
        sizes.append(len(out))
        for probe in out:
            one.spoke(1.0, probe)
        out = []
        while one.usable(1.0) and len(out) < 100:
            probe = one.take_probe(1.0)
            if not probe:
                break
            out.append(probe)
    assert sizes == [1, 2, 4, 8, 16][: len(sizes)]
    assert sum(sizes) >= 15
    assert one.usable(1.0)
    assert one.take_probe(1.0) == 0, "it is as before"


def test_pressure_on_one_of_those_begins_anew() -> None:
    one = breaker()
    one.pressure(0.0, 1.0)
    for _ in range(5):
        one.spoke(1.0, one.take_probe(1.0))
    assert one.take_probe(1.0)
    one.pressure(1.0, 1.0, one.take_probe(1.0))
    assert not one.usable(1.9)
    one.abandoned(2.0, one.take_probe(2.0))
    assert one.usable(2.0) is False, "the other call of before is still under way"


def test_half_a_minute_without_it_and_it_is_over() -> None:
    one = breaker()
    one.pressure(0.0, 10.0)
    assert one.take_probe(10.0) > 0
    assert not one.usable(39.9)
    assert one.next_s(39.9) == 40.0
    assert one.usable(40.0)
    assert one.take_probe(40.0) == 0


def test_a_failure_while_it_is_tried_after_pressure_is_a_sample() -> None:
    one = breaker()
    one.pressure(0.0, 0.0)
    for _ in range(9):
        one.failure(0.0, connect=False, probe=one.take_probe(0.0))
        assert one.usable(0.0)
    one.failure(0.0, connect=False, probe=one.take_probe(0.0))
    assert one.state(0.0) is State.OPEN


def test_a_probe_that_finds_it_full_says_neither_well_nor_broken() -> None:
    one = opened()
    one.pressure(5.0, 2.0, one.take_probe(5.0))
    assert one.state(5.0) is State.HALF_OPEN
    assert not one.probe_free(6.9)
    assert one.probe_free(7.0)
