"""Reports of use: spent and left make up the limit, what is missing has a name, and spent is true."""

from itertools import permutations
from typing import Any

import pytest

from smg_chaos.gameday.limits.claims.reported_use import Sample, check_use, is_explained, missing
from support.mesh.limit_records import BEGIN_US, FIRST, admissions_of, admitted_at

TWENTY = admitted_at([100] * 20)


def use(**changes: Any) -> dict[str, Any]:
    plain = {
        "amount": 60,
        "spent": 20,
        "remaining": 40,
        "over": 0,
        "unavailable": [],
        "window": FIRST,
    }
    return {**plain, **changes}


def sample(*uses: dict[str, Any], at_ms: int = 2_000, exact: bool = True, **more: Any) -> Sample:
    at_us = BEGIN_US + at_ms * 1000
    content = {"uses": list(uses), "exact": exact, "inexact_reasons": [], **more}
    return Sample(at_us, at_us + 5_000, content)


def gone(*amounts: int) -> list[dict[str, Any]]:
    return [{"amount": amount, "reason": "dead", "node": "n02", "text": ""} for amount in amounts]


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        ({}, 0),
        ({"remaining": 35}, 5),
        ({"remaining": 35, "unavailable": gone(5)}, 0),
        ({"remaining": 35, "unavailable": gone(2, 2)}, 1),
        ({"remaining": 41}, -1),
        ({"spent": 62, "remaining": 0, "over": 2}, 0),
    ],
)
def test_spent_and_left_and_what_is_named_make_up_the_limit(
    changes: dict[str, Any], gap: int
) -> None:
    assert missing(use(**changes)) == gap


def test_a_report_that_adds_up_and_is_true_is_right() -> None:
    found = check_use([sample(use()), sample()], admissions_of(TWENTY))
    assert (found.looked, found.empty, found.wrong, found.worst) == (2, 1, 0, 0)


def test_units_that_are_nowhere_are_found() -> None:
    found = check_use([sample(use(remaining=15))], admissions_of(TWENTY))
    assert (found.sums, found.spent, found.wrong, found.worst) == (1, 0, 1, 25)
    assert found.shown == ["spent 20 + 15 that remain + 0 parts that do not: not 60"]


def test_rights_may_be_on_their_way_while_requests_are_admitted() -> None:
    admissions = admissions_of(TWENTY, admitted_at([1_990], first_serial=5000))
    for left, sums in ((36, 0), (35, 1)):
        found = check_use([sample(use(spent=20, remaining=left))], admissions)
        assert (found.sums, found.wrong) == (sums, sums)
    quiet = check_use([sample(use(remaining=39), at_ms=3_000)], admissions_of(TWENTY))
    assert quiet.sums == 1


@pytest.mark.parametrize(("spent", "wrong"), [(20, 0), (17, 0), (16, 1), (23, 0), (24, 1)])
def test_spent_is_what_was_admitted_within_a_twentieth(spent: int, wrong: int) -> None:
    found = check_use([sample(use(spent=spent, remaining=60 - spent))], admissions_of(TWENTY))
    assert (found.sums, found.spent, found.wrong) == (0, wrong, wrong)


@pytest.mark.parametrize(
    ("uses", "content", "explained"),
    [
        ([use()], {"exact": True}, True),
        ([use()], {"exact": False, "inexact_reasons": []}, False),
        ([use()], {"exact": False, "inexact_reasons": ["n02 does not answer"]}, True),
    ],
)
def test_what_is_not_exact_says_why(
    uses: list[dict[str, Any]], content: dict[str, Any], explained: bool
) -> None:
    assert is_explained({"inexact_reasons": [], **content}) is explained
    found = check_use([sample(*uses, **content)], admissions_of(TWENTY))
    assert found.unexplained == (not explained)


def test_the_order_in_which_reports_are_read_makes_no_difference() -> None:
    samples = [sample(use()), sample(use(remaining=0)), sample(use(), exact=False), sample()]
    for order in permutations(samples):
        found = check_use(order, admissions_of(TWENTY))
        assert (found.looked, found.empty, found.sums, found.unexplained, found.wrong) == (
            4,
            1,
            1,
            1,
            2,
        )
