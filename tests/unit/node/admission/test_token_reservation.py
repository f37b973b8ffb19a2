from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.admission.limit_counters import Tally
from smg_node.admission.matched_limit import MatchedLimit
from smg_node.admission.token_reservation import Short, TokenReservation, reserve, reserve_warily
from smg_node.admission.token_weights import (
    EARLY_TOKENS,
    LEAST_TOKENS,
    STEP_TOKENS,
    TokenWeights,
)
from support.rights.fake_rights import FakeShare, limit, whole
from support.tools.example_counts import example_count


def charge_of(
    left: int,
    reserved: int,
    *,
    on_exhausted: Literal["debt", "finish"] = "debt",
    answer: float = 1.0,
) -> tuple[TokenReservation, FakeShare]:
    """A charge of which so much has just been reserved, and its share with what is left after that."""
    tariff, share = tariff_of(left + reserved, on_exhausted=on_exhausted, answer=answer)
    return reserved_of(tariff, reserved), share


def tariff_of(
    left: int,
    *,
    on_exhausted: Literal["debt", "finish"] = "debt",
    prompt: float = 1.0,
    answer: float = 1.0,
    worst_case: bool = False,
) -> tuple[TokenWeights, FakeShare]:
    """What tokens count for a limit, and its share with so much left."""
    match = limit("tokens", on_exhausted=on_exhausted)
    share = FakeShare(match.key, left, left)
    tariff = TokenWeights(
        MatchedLimit(match, share, Tally()),
        prompt,
        0.5,
        answer,
        worst_case=worst_case,
        finish=on_exhausted == "finish",
        step=int(STEP_TOKENS * answer),
        least=int(LEAST_TOKENS * answer),
        early=int(EARLY_TOKENS * answer),
    )
    return tariff, share


def reserved_of(tariff: TokenWeights, units: int) -> TokenReservation:
    """A charge of so many units of a limit where a token of a prompt counts one."""
    charges = reserve([tariff], units, expected=0, most=0)
    assert not isinstance(charges, Short)
    (charge,) = charges
    return charge


# ── What is reserved ─────────────────────────────────────────────────────────


@given(
    prompt=st.integers(0, 300),
    expected=st.integers(0, 400),
    more=st.integers(0, 400),
    left=st.integers(0, 2_000),
    batch=st.integers(0, 90),
    weights=st.tuples(st.sampled_from([0.0, 0.1, 1.0, 2.5]), st.sampled_from([0.0, 0.3, 1.0, 3.7])),
    on_exhausted=st.sampled_from(["debt", "finish"]),
)
def test_within_its_room_a_charge_covers_everything_and_takes_nothing(
    prompt: int,
    expected: int,
    more: int,
    left: int,
    batch: int,
    weights: tuple[float, float],
    on_exhausted: Literal["debt", "finish"],
) -> None:
    most = expected + more
    tariff, share = tariff_of(
        left + 3_000, on_exhausted=on_exhausted, prompt=weights[0], answer=weights[1]
    )
    charges = reserve([tariff], prompt, expected=expected, most=most)
    assert not isinstance(charges, Short)
    (charge,) = charges
    before = whole(share)
    room = charge.room(prompt, batch=batch, most=most)
    assert room <= most
    for tokens in {one for one in (0, room // 2, room) if 0 <= one <= room}:
        coming = max(tokens, min(tokens + batch, most)) if tariff.finish else tokens
        used = tariff.weigh(prompt, 0, coming)
        assert used <= charge.held
        if room < most:
            assert charge.covers(used)
            assert whole(share) == before
    if room < most and not tariff.finish and tariff.answer:
        # It is not less than it could be.
        assert charge.held - tariff.weigh(prompt, 0, room + 2) < tariff.early or room < 0


def test_a_prompt_and_what_is_expected_of_its_answers_is_charged_or_what_they_may_have_at_most() -> (
    None
):
    estimate, one = tariff_of(10_000)
    worst, two = tariff_of(10_000, worst_case=True)
    charges = reserve([estimate, worst], 1_000, expected=600, most=4_000)
    assert not isinstance(charges, Short)
    assert [charge.held for charge in charges] == [1_600, 5_000]
    assert (whole(one), whole(two)) == ((8_400, 1_600), (5_000, 5_000))
    assert (one.offered, two.offered) == (1_600, 5_000)
    assert estimate.measure.open == worst.measure.open == 1


def test_no_limit_is_charged_where_one_has_too_little_and_that_one_is_named() -> None:
    first, one = tariff_of(10_000)
    second, two = tariff_of(99)
    third, three = tariff_of(0)
    for share in (one, two, three):
        share.low = 20_000
    short = reserve([first, second, third], 60, expected=40, most=40)
    assert short == Short(second.measure, 100)
    assert [whole(share) for share in (one, two, three)] == [(10_000, 0), (99, 0), (0, 0)]
    assert not any(share.offered or share.wants_more for share in (one, two, three))
    assert not any(tariff.measure.open for tariff in (first, second, third))


def test_more_is_wanted_where_a_reservation_leaves_little() -> None:
    tariff, share = tariff_of(1_000)
    share.low = 500
    reserved_of(tariff, 500)
    assert not share.wants_more
    reserved_of(tariff, 1)
    assert share.wants_more


def test_parts_of_a_unit_are_rounded_up() -> None:
    tariff, share = tariff_of(100, prompt=0.25, answer=1.5)
    charges = reserve([tariff], 10, expected=3, most=9)
    assert not isinstance(charges, Short)
    assert charges[0].held == tariff.weigh(10, 0, 3) == 7
    assert whole(share) == (93, 7)


def test_a_share_that_was_exchanged_is_what_is_reserved_of() -> None:
    tariff, old = tariff_of(1_000)
    new = tariff.measure.share = FakeShare(old.key, 500, 1_000, window=9)
    charge = reserved_of(tariff, 80)
    assert (whole(old), whole(new)) == ((1_000, 0), (420, 80))
    new.window, new.left, new.spent = 10, 500, 0
    charge.settle(0)
    assert whole(new) == (500, 0), "that window is over"


LIMITS = st.lists(
    st.tuples(
        st.integers(0, 3_000),
        st.sampled_from([0.0, 0.3, 1.0, 2.5]),
        st.sampled_from([0.0, 0.7, 1.0, 10.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=example_count(100))
@given(LIMITS, st.integers(0, 900), st.integers(0, 300), st.integers(0, 300))
def test_all_limits_are_charged_what_the_tokens_weigh_or_none_anything(
    limits: list[tuple[int, float, float, bool]], prompt: int, expected: int, more: int
) -> None:
    most = expected + more
    made = [
        tariff_of(left, prompt=each, answer=answer, worst_case=worst)
        for left, each, answer, worst in limits
    ]
    wanted = [
        tariff.weigh(prompt, 0, most if tariff.worst_case else expected) for tariff, _ in made
    ]
    charges = reserve([tariff for tariff, _ in made], prompt, expected=expected, most=most)
    fits = [left >= cost for (left, *_), cost in zip(limits, wanted, strict=True)]
    if isinstance(charges, Short):
        at = fits.index(False)
        assert charges == Short(made[at][0].measure, wanted[at])
        assert [whole(share) for _, share in made] == [(left, 0) for left, *_ in limits]
        return
    assert all(fits)
    assert [share.spent for _, share in made] == [charge.held for charge in charges] == wanted
    for charge in charges:
        charge.settle(0)
    assert [whole(share) for _, share in made] == [(left, 0) for left, *_ in limits]
    assert not any(tariff.measure.open for tariff, _ in made)


@settings(deadline=None, max_examples=example_count(150))
@given(
    LIMITS,
    st.lists(st.integers(0, 1_500), min_size=4, max_size=4),
    st.integers(0, 900),
    st.integers(0, 300),
    st.integers(0, 300),
)
def test_limits_are_charged_as_if_all_had_been_looked_at_first(
    limits: list[tuple[int, float, float, bool]],
    lows: list[int],
    prompt: int,
    expected: int,
    more: int,
) -> None:
    quick, wary = (
        [
            tariff_of(left, prompt=each, answer=answer, worst_case=worst)
            for left, each, answer, worst in limits
        ]
        for _ in range(2)
    )
    for made in (quick, wary):
        for (_, share), low in zip(made, lows, strict=False):
            share.low = low
    for _ in range(3):
        charged, other = (
            how([tariff for tariff, _ in made], prompt, expected=expected, most=expected + more)
            for how, made in ((reserve, quick), (reserve_warily, wary))
        )
        assert [vars(share) for _, share in quick] == [vars(share) for _, share in wary]
        assert [one.measure.open for one, _ in quick] == [one.measure.open for one, _ in wary]
        if isinstance(charged, Short) or isinstance(other, Short):
            assert isinstance(charged, Short)
            assert isinstance(other, Short)
            assert charged.cost == other.cost
            assert [one.measure is charged.measure for one, _ in quick] == [
                one.measure is other.measure for one, _ in wary
            ]
        else:
            assert [(one.held, one.window) for one in charged] == [
                (one.held, one.window) for one in other
            ]


# ── What becomes of it ───────────────────────────────────────────────────────


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
    share.left += 1_900
    others = [reserved_of(first.tariff, 100) for _ in range(19)]
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
    assert share.offered == 131
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
