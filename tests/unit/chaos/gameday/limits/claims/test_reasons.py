"""Claims of why: counted by reason, and `used_up` only where nothing was admitted afterwards."""

from itertools import permutations

import pytest

from smg_chaos.gameday.limits.claims.reasons import check_reasons
from smg_chaos.gameday.limits.clients.trial_records import Answer
from support.mesh.limit_records import admissions_of, admitted_at, answer


def refused(serial: int, sent_ms: int, reason: str, *, node: int = 0) -> Answer:
    return answer(serial, sent_ms, sent_ms + 10, status=429, reason=reason, node=node)


def test_reasons_are_counted_and_none_or_a_strange_one_is_wrong() -> None:
    reasons = ["used_up", "held_elsewhere", "no_owner", "held_elsewhere", "", "because"]
    answers = [refused(number, 2_000, reason) for number, reason in enumerate(reasons)]
    found = check_reasons([*answers, answer(9, 0, 10)], admissions_of())
    assert found.counts == {
        "used_up": 1,
        "held_elsewhere": 2,
        "no_owner": 1,
        "none": 1,
        "because": 1,
    }
    assert (found.refusals, found.unknown, found.untrue, found.wrong) == (6, 2, 0, 2)


@pytest.mark.parametrize(
    ("admitted_ms", "node", "untrue"),
    [
        (1_990, 0, 0),  # before
        (2_005, 0, 0),  # while it was being refused: it may have been charged first
        (2_011, 0, 1),
        (2_011, 2, 1),  # the limit is the cluster's
        (9_000, 1, 1),
        (9_999, 0, 0),  # across the border: nobody knows of which window it was
        (10_100, 0, 0),  # the next window
    ],
)
def test_used_up_is_untrue_if_the_cluster_admitted_more_of_that_window_later(
    admitted_ms: int, node: int, untrue: int
) -> None:
    admissions = admissions_of(admitted_at([admitted_ms], node=node))
    found = check_reasons([refused(1, 2_000, "used_up")], admissions)
    assert (found.untrue, found.wrong, len(found.shown)) == (untrue, untrue, untrue)


@pytest.mark.parametrize("reason", ["held_elsewhere", "no_owner"])
def test_other_reasons_are_not_refuted_by_later_admissions(reason: str) -> None:
    admissions = admissions_of(admitted_at([3_000]))
    assert check_reasons([refused(1, 2_000, reason)], admissions).wrong == 0


def test_the_order_in_which_answers_are_read_makes_no_difference() -> None:
    answers = [refused(1, 2_000, "used_up"), refused(2, 4_000, "used_up"), refused(3, 4_000, "")]
    admissions = admissions_of(admitted_at([3_000]))
    for order in permutations(answers):
        found = check_reasons(order, admissions)
        assert (found.untrue, found.unknown) == (1, 1)
