from typing import Literal

from smg_node.admission.charge import Charge
from smg_node.admission.matching import EARLY_TOKENS, LEAST_TOKENS, STEP_TOKENS, Measure, Tariff
from smg_node.admission.tally import Tally
from support.fake_rights import FakeShare, limit, whole


def charge_of(
    left: int,
    reserved: int,
    *,
    on_exhausted: Literal["debt", "finish"] = "debt",
    answer: float = 1.0,
) -> tuple[Charge, FakeShare]:
    """A charge of which so much has just been reserved, and its share with what is left after that."""
    match = limit("tokens", on_exhausted=on_exhausted)
    share = FakeShare(match.key, left, left + reserved, spent=reserved)
    measure = Measure(match, share, Tally())
    tariff = Tariff(
        measure,
        1.0,
        0.5,
        answer,
        worst_case=False,
        finish=on_exhausted == "finish",
        step=int(STEP_TOKENS * answer),
        least=int(LEAST_TOKENS * answer),
        early=int(EARLY_TOKENS * answer),
    )
    return Charge(tariff, share, reserved), share


def test_the_worked_example_reserves_twice_more_and_gives_212_back() -> None:
    charge, share = charge_of(60_000 - 1_600, 1_600)
    for answered in range(1, 901):
        assert charge.covers(1_000 + answered)
    assert charge.held == 2_112
    assert whole(share) == (60_000 - 2_112, 2_112)
    charge.settle(1_900)
    assert whole(share) == (60_000 - 1_900, 1_900)
    assert not share.debt


def test_the_worst_case_gives_back_what_was_not_used() -> None:
    charge, share = charge_of(60_000 - 5_000, 5_000)
    assert all(charge.covers(1_000 + answered) for answered in range(1, 901))
    assert charge.held == 5_000
    charge.settle(1_900)
    assert whole(share) == (60_000 - 1_900, 1_900)


def test_more_is_reserved_a_little_before_it_is_needed() -> None:
    charge, share = charge_of(1_000, 100)
    assert charge.covers(100 - EARLY_TOKENS)
    assert share.left == 1_000
    assert charge.covers(101 - EARLY_TOKENS)
    assert share.left == 1_000 - STEP_TOKENS
    assert charge.held == 100 + STEP_TOKENS


def test_where_little_is_left_it_is_not_held_by_who_asks_first() -> None:
    first, share = charge_of(320, 100)
    others = [Charge(first.tariff, share, 100) for _ in range(19)]
    assert first.covers(100)
    assert (first.held, share.left) == (116, 304)
    assert all(charge.covers(100) for charge in others)
    assert share.left == 0
    for charge in others:
        charge.settle(90)
    # Those who came to their end before left it to those who go on.
    assert share.left == 19 * 26
    assert first.covers(116)
    assert first.held == 116 + STEP_TOKENS


def test_what_the_owner_has_counts_as_left() -> None:
    charge, share = charge_of(20, 100)
    share.pool = 1_000
    assert charge.covers(100)
    assert (charge.held, share.left, share.wants_more) == (120, 0, True)


def test_many_tokens_at_once_are_reserved_at_once() -> None:
    charge, _ = charge_of(10_000, 100)
    assert charge.covers(5_000)
    assert charge.held == 5_000 + EARLY_TOKENS


def test_what_is_left_is_used_up_before_anything_is_owed() -> None:
    charge, share = charge_of(30, 100)
    assert charge.covers(130)
    assert whole(share) == (0, 130)
    assert not charge.covers(131)
    charge.overdraw(131)
    assert (charge.owed, share.debt, share.left) == (1, 1, 0)
    assert share.offered == 31
    charge.overdraw(131)
    assert share.debt == 1


def test_what_is_owed_is_not_given_back() -> None:
    charge, share = charge_of(0, 100)
    charge.overdraw(150)
    charge.settle(150)
    assert (whole(share), share.debt) == ((0, 100), 50)
    assert charge.tariff.measure.tally.owed == 50
    assert charge.tariff.measure.tally.charged == 150


def test_what_was_cached_counts_less_in_the_end() -> None:
    charge, share = charge_of(0, 1_000)
    used = charge.tariff.weigh(800, 500, 100)
    assert used == 300 + 250 + 100
    charge.settle(used)
    assert whole(share) == (350, 650)


def test_each_part_goes_back_to_the_window_it_came_from() -> None:
    charge, share = charge_of(0, 100)
    share.window, share.left, share.spent = share.window + 1, 1_000, 0
    assert charge.covers(150)
    assert whole(share) == (1_000 - STEP_TOKENS, STEP_TOKENS)
    charge.settle(40)
    # All of the second window's part came back, and of the first one's nothing: it is over.
    assert whole(share) == (1_000, 0)


def test_a_share_that_sleeps_gets_nothing_back() -> None:
    charge, share = charge_of(0, 100)
    share.window = -1
    charge.settle(0)
    assert whole(share) == (0, 100)


def test_a_share_that_was_exchanged_is_charged_from_then_on() -> None:
    charge, old = charge_of(500, 100)
    new = FakeShare(old.key, 1_000, 2_000)
    old.window = -1
    charge.tariff.measure.share = new
    assert charge.covers(120)
    assert (old.left, new.left) == (500, 1_000 - STEP_TOKENS)
    charge.settle(120)
    assert whole(new) == (980, 20)


def test_an_excess_in_the_end_is_taken_from_what_is_left_then_owed() -> None:
    charge, share = charge_of(30, 100)
    charge.settle(150)
    assert (whole(share), share.debt) == ((0, 130), 20)


def test_limits_that_do_not_count_answers_never_ask_for_more() -> None:
    charge, share = charge_of(10, 100, answer=0.0)
    assert charge.covers(charge.tariff.weigh(100, 0, 1_000_000))
    assert whole(share) == (10, 100)
