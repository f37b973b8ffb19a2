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
        "left": 25,
        "pool": 15,
        "window": FIRST,
        "term": 3,
        "not_adopted": [],
    }
    return {**plain, **changes}


def sample(*uses: dict[str, Any], at_ms: int = 2_000, exact: bool = True, **more: Any) -> Sample:
    at_us = BEGIN_US + at_ms * 1000
    return Sample(at_us, at_us + 5_000, {"uses": list(uses), "exact": exact, **more})


@pytest.mark.parametrize(
    ("changes", "gap"),
    [
        ({}, 0),
        ({"left": 20}, 5),
        ({"left": 20, "lost": 5}, 0),
        ({"left": 20, "lost": 2, "unknown": 2}, 1),
        ({"left": 20, "lost": 9}, 0),  # as much as that may be lost
        ({"left": 26, "lost": 9}, -1),  # too much is not lost
        ({"left": 40, "pool": None}, 0),
        ({"left": 40, "pool": -1}, 0),
        ({"left": 25, "pool": 0}, 15),
        ({"lost": None}, 0),
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
    found = check_use([sample(use(left=0))], admissions_of(TWENTY))
    assert (found.sums, found.spent, found.wrong, found.worst) == (1, 0, 1, 25)
    assert found.shown == ["spent 20 + left 0 + pool 15 is not 60"]


def test_rights_may_be_on_their_way_while_requests_are_admitted() -> None:
    admissions = admissions_of(TWENTY, admitted_at([1_990], first_serial=5000))
    for left, sums in ((21, 0), (20, 1)):
        found = check_use([sample(use(spent=20, left=left))], admissions)
        assert (found.sums, found.wrong) == (sums, sums)
    quiet = check_use([sample(use(left=24), at_ms=3_000)], admissions_of(TWENTY))
    assert quiet.sums == 1


@pytest.mark.parametrize(("spent", "wrong"), [(20, 0), (17, 0), (16, 1), (23, 0), (24, 1)])
def test_spent_is_what_was_admitted_within_a_twentieth(spent: int, wrong: int) -> None:
    found = check_use([sample(use(spent=spent, left=45 - spent))], admissions_of(TWENTY))
    assert (found.sums, found.spent, found.wrong) == (0, wrong, wrong)


@pytest.mark.parametrize(
    ("uses", "content", "explained"),
    [
        ([use()], {"exact": True}, True),
        ([use()], {"exact": False}, False),
        ([use(term=0)], {"exact": False}, True),
        ([use(not_adopted=["n02"])], {"exact": False}, True),
        ([use()], {"exact": False, "silent": {"n02": "no answer"}}, True),
        ([use()], {"exact": False, "silent": {}, "cut": 0}, False),
        ([use()], {"exact": False, "cut": 1}, True),
        ([use()], {"exact": False, "notes": ["n02 lent 5"]}, True),
        ([use(notes=["n02 lent 5"])], {"exact": False}, True),
    ],
)
def test_what_is_not_exact_says_why(
    uses: list[dict[str, Any]], content: dict[str, Any], explained: bool
) -> None:
    assert is_explained({"uses": uses, **content}) is explained
    found = check_use([sample(*uses, **content)], admissions_of(TWENTY))
    assert found.unexplained == (not explained)


def test_the_order_in_which_reports_are_read_makes_no_difference() -> None:
    samples = [sample(use()), sample(use(left=0)), sample(use(), exact=False), sample()]
    for order in permutations(samples):
        found = check_use(order, admissions_of(TWENTY))
        assert (found.looked, found.empty, found.sums, found.unexplained, found.wrong) == (
            4,
            1,
            1,
            1,
            2,
        )
