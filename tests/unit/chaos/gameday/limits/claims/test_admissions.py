"""Admissions: what was surely charged by a moment, what may have been, and what nobody can know."""

from itertools import permutations

import pytest

from smg_chaos.gameday.limits.claims.admissions import Admissions, tolerance
from smg_chaos.gameday.limits.story import Record
from support.mesh.limit_records import (
    BEGIN_US,
    FIRST,
    WINDOW_US,
    admissions_of,
    admitted_at,
    answer,
    recorded,
)


def us(milliseconds: int) -> int:
    return BEGIN_US + milliseconds * 1000


@pytest.mark.parametrize(
    ("amount", "units"), [(1, 2), (40, 2), (59, 2), (60, 3), (600, 30), (0, 2)]
)
def test_a_claim_may_be_off_by_a_twentieth_and_by_two_at_least(amount: int, units: int) -> None:
    assert tolerance(amount) == units


def test_what_is_on_its_way_may_be_charged_and_what_arrived_is() -> None:
    found = admissions_of(recorded([answer(1, 100, 300)], [(1, 200)]))
    bounds = [(found.least(FIRST, us(at)), found.most(FIRST, us(at))) for at in (99, 100, 199, 200)]
    assert bounds == [(0, 0), (0, 1), (0, 1), (1, 1)]


def test_a_request_that_crossed_a_border_is_surely_in_neither_window() -> None:
    found = admissions_of(recorded([answer(1, 9_990, 10_200)], [(1, 10_100)]))
    late_us = us(19_000)
    assert [found.least(window, late_us) for window in (FIRST, FIRST + 1)] == [0, 0]
    assert [found.most(window, late_us) for window in (FIRST, FIRST + 1)] == [1, 1]
    assert found.sent_later(FIRST, us(0)) == 0


def test_refused_requests_and_those_before_the_limit_are_not_charged() -> None:
    record = recorded(
        [answer(1, 100, 102), answer(2, 200, 202), answer(3, 300, 302)], [(1, 101), (3, 301)]
    )
    found = Admissions(record, WINDOW_US, since_us=us(200))
    assert (found.most(FIRST, us(9_000)), found.nodes) == (1, [0])


def test_nodes_are_counted_apart_and_together() -> None:
    found = admissions_of(
        admitted_at([100, 200], node=0), admitted_at([150], node=2, first_serial=2000)
    )
    assert found.nodes == [0, 2]
    assert [found.least(FIRST, us(9_000), nodes) for nodes in ([0], [1], [2], None)] == [2, 0, 1, 3]


def test_the_next_admission_is_of_what_was_sent_later_and_at_this_node() -> None:
    slow = recorded([answer(1, 100, 700)], [(1, 600)])
    found = admissions_of(slow, admitted_at([400], node=1, first_serial=7), admitted_at([450]))
    assert found.next_us(0, us(50)) == us(451)
    assert found.next_us(0, us(100)) == us(451)
    assert found.next_us(0, us(450)) is None
    assert found.next_us(5, us(0)) is None
    assert found.sent_later(FIRST, us(399)) == 2


def test_the_order_in_which_records_are_read_makes_no_difference() -> None:
    whole = admitted_at([100, 9_995, 150, 12_000])
    told = set()
    for answers in permutations(whole.answers):
        found = Admissions(Record(answers, whole.arrivals), WINDOW_US)
        told.add(
            tuple(
                (found.least(window, us(at)), found.most(window, us(at)), found.next_us(0, us(at)))
                for window in (FIRST, FIRST + 1)
                for at in (99, 100, 101, 9_996, 11_000, 12_001)
            )
        )
    assert len(told) == 1
