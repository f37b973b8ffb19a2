from copy import copy

from hypothesis import given
from hypothesis import strategies as st

from smg_node.admission.charging import admit, admit_warily, give_back, take
from support.rights.fake_rights import FakeShare, whole


def shares(*left: int) -> list[FakeShare]:
    return [FakeShare(f"#{at}", amount, amount) for at, amount in enumerate(left)]


def test_all_shares_are_charged() -> None:
    one, two = shares(3, 5)
    assert admit([one, two], 2) is None
    assert (whole(one), whole(two)) == ((1, 2), (3, 2))
    assert one.offered == two.offered == 2


def test_no_share_is_charged_where_one_is_too_small_and_that_one_is_named() -> None:
    one, two, three = shares(3, 1, 0)
    assert admit([one, two, three], 2) is two
    assert [whole(share) for share in (one, two, three)] == [(3, 0), (1, 0), (0, 0)]
    assert not one.offered
    assert not two.wants_more


@given(
    st.lists(st.tuples(st.integers(-3, 12), st.integers(0, 9), st.booleans()), max_size=4),
    st.integers(1, 4),
)
def test_shares_are_charged_as_if_all_had_been_looked_at_first(
    made: list[tuple[int, int, bool]], cost: int
) -> None:
    quick = shares(*[left for left, _, _ in made])
    for share, (_, low, wants_more) in zip(quick, made, strict=True):
        share.low, share.wants_more = low, wants_more
    wary = [copy(share) for share in quick]
    for _ in range(5):
        small, other = admit(quick, cost), admit_warily(wary, cost)
        assert [vars(share) for share in quick] == [vars(share) for share in wary]
        assert (small is None) == (other is None)
        if small is not None:
            assert [share is small for share in quick] == [share is other for share in wary]


def test_nobody_meets_no_limits_in_vain() -> None:
    assert admit([], 1) is None


def test_a_share_can_be_spent_to_its_end_and_no_further() -> None:
    (share,) = shares(2)
    assert [admit([share], 1) is None for _ in range(4)] == [True, True, False, False]
    assert whole(share) == (0, 2)


def test_more_is_wanted_below_the_mark() -> None:
    (share,) = shares(10)
    share.low = 8
    admit([share], 2)
    assert not share.wants_more
    admit([share], 1)
    assert share.wants_more


def test_what_there_is_can_be_taken_where_it_is_less_than_wanted() -> None:
    (share,) = shares(5)
    assert take(share, 3) == 3
    assert not share.wants_more
    assert take(share, 3) == 2
    assert share.wants_more
    assert take(share, 3) == 0
    share.left = -2
    assert take(share, 3) == 0
    assert (share.left, share.spent, share.offered) == (-2, 5, 5)


def test_what_was_not_used_goes_back_to_its_window_or_to_none() -> None:
    (share,) = shares(5)
    take(share, 5)
    give_back(share, share.window, 2)
    assert whole(share) == (2, 3)
    give_back(share, share.window - 1, 2)
    assert whole(share) == (2, 3)
    window, share.window = share.window, -1
    give_back(share, window, 2)
    assert whole(share) == (2, 3)
