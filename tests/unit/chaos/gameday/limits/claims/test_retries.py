"""Claims of when to come back: too short, too long, overtaken by others, or simply true."""

from itertools import permutations

import pytest

from smg_chaos.gameday.limits.claims.retries import check_retries
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer
from support.mesh.limit_records import LIMIT, admissions_of, admitted_at, answer

HALF = admitted_at([100] * 30)
"""Half of the limit, shortly after the border."""
ALL = admitted_at([100] * 60)


def refused(
    serial: int,
    sent_ms: int,
    retry_ms: int,
    *,
    rounded_ms: int = 0,
    follows: int = UNKNOWN,
    reason: str = "",
) -> Answer:
    return answer(
        serial,
        sent_ms,
        sent_ms + 10,
        status=429,
        retry_ms=retry_ms,
        rounded_ms=rounded_ms,
        follows=follows,
        reason=reason,
    )


@pytest.mark.parametrize(
    ("retry_ms", "rounded_ms", "wrong"),
    [
        (8_000, 0, 0),
        (10_000, 0, 0),
        (10_001, 0, 1),
        (11_000, 1_000, 0),
        (11_001, 1_000, 1),
        (2_000, 0, 0),
        (UNKNOWN, 0, 1),
    ],
)
def test_the_next_window_is_possible_and_two_seconds_later_is_not_too_late(
    retry_ms: int, rounded_ms: int, wrong: int
) -> None:
    said = refused(1, 2_000, retry_ms, rounded_ms=rounded_ms)
    found = check_retries([said], admissions_of(ALL), LIMIT)
    assert (found.refusals, found.wrong) == (1, wrong)
    assert (found.too_long, found.silent) == ((wrong, 0) if retry_ms > 0 else (0, wrong))


@pytest.mark.parametrize(
    ("admitted_ms", "node", "wrong"), [(4_000, 0, 1), (6_000, 0, 0), (4_000, 1, 0), (2_005, 0, 0)]
)
def test_an_admission_of_the_same_node_that_was_sent_later_shows_what_was_possible(
    admitted_ms: int, node: int, wrong: int
) -> None:
    # It is told to come at 8.0 s. What was sent before it heard so proves nothing, nor does another node.
    later = admitted_at([admitted_ms], node=node, first_serial=5000)
    found = check_retries([refused(1, 2_000, 6_000)], admissions_of(HALF, later), LIMIT)
    assert (found.too_long, found.wrong) == (wrong, wrong)
    if wrong:
        assert found.worst_late_s == pytest.approx(3.999)
        assert "4.0 s later than the next admission was possible" in found.shown[0]


def test_who_comes_back_when_told_and_is_refused_was_told_too_short() -> None:
    first = refused(1, 2_000, 3_000)
    again = refused(2, 5_012, 5_000, follows=1)
    found = check_retries([first, again], admissions_of(HALF), LIMIT)
    assert (found.returned, found.too_short, found.overtaken, found.wrong) == (1, 1, 0, 1)
    assert "came back after 3.0 s and was refused again" in found.shown[0]
    admitted = answer(2, 5_012, 5_020, follows=1)
    found = check_retries([first, admitted], admissions_of(HALF), LIMIT)
    assert (found.returned, found.wrong) == (1, 0)


def test_others_may_use_up_what_was_there_when_it_was_told() -> None:
    first = refused(1, 2_000, 3_000, reason="held_elsewhere")
    again = refused(2, 5_012, 5_000, follows=1, reason="used_up")
    others = admitted_at([4_000] * 30, node=1, first_serial=5000)
    found = check_retries([first, again], admissions_of(HALF, others), LIMIT)
    assert (found.too_short, found.overtaken, found.wrong) == (0, 1, 0)


def test_what_was_used_up_already_cannot_be_used_up_meanwhile() -> None:
    first, again = refused(1, 2_000, 3_000), refused(2, 5_012, 5_000, follows=1)
    found = check_retries([first, again], admissions_of(ALL), LIMIT)
    assert (found.too_short, found.overtaken) == (1, 0)


def test_the_next_window_may_be_used_up_by_others_too_but_not_by_nobody() -> None:
    first, again = refused(1, 2_000, 8_500), refused(2, 10_512, 9_500, follows=1)
    crowd = admitted_at([10_100] * 60, node=1, first_serial=5000)
    found = check_retries([first, again], admissions_of(ALL, crowd), LIMIT)
    assert (found.too_short, found.overtaken, found.wrong) == (0, 1, 0)
    few = admitted_at([10_100] * 59, node=1, first_serial=5000)
    found = check_retries([first, again], admissions_of(ALL, few), LIMIT)
    assert (found.too_short, found.overtaken, found.wrong) == (1, 0, 1)


def test_a_failure_on_coming_back_says_nothing_about_the_time() -> None:
    first = refused(1, 2_000, 3_000)
    lost = answer(2, 5_012, 5_020, status=503, follows=1)
    found = check_retries([first, lost], admissions_of(HALF), LIMIT)
    assert (found.returned, found.wrong) == (1, 0)


def test_one_refusal_is_wrong_once_and_shares_are_of_the_refusals() -> None:
    later = admitted_at([3_000], first_serial=5000)
    both = [refused(1, 2_000, 7_000), refused(2, 9_012, 900, follows=1), answer(3, 5_000, 5_010)]
    found = check_retries(both, admissions_of(HALF, later), LIMIT)
    assert (found.refusals, found.too_long, found.too_short, found.wrong) == (2, 1, 1, 1)
    assert found.wrong_percent == 50.0
    assert check_retries([], admissions_of(), LIMIT).wrong_percent == 0.0


def test_the_order_in_which_answers_are_read_makes_no_difference() -> None:
    answers = [
        refused(1, 2_000, 3_000),
        refused(2, 5_012, 3_000, follows=1),
        refused(3, 8_022, 30_000, follows=2),
        answer(4, 9_000, 9_010),
    ]
    admissions = admissions_of(HALF, admitted_at([9_000], first_serial=5000))
    told = {
        (found.too_short, found.too_long, found.wrong, tuple(found.shown))
        for order in permutations(answers)
        for found in [check_retries(order, admissions, LIMIT)]
    }
    assert [one[:3] for one in told] == [(2, 1, 3)]
