"""The parts of rights, each by itself: footing, accrual, visited windows, permits."""

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.owning.window_pool import Pool
from smg_mesh.escrow.permits.concurrency_permits import permits_of
from smg_mesh.escrow.spending.lived_time import LivedTime
from smg_mesh.escrow.spending.node_footing import NOTHING, Footing
from smg_mesh.escrow.spending.spending_ledger import Ledger
from smg_mesh.escrow.spending.standing_rights import (
    Accrual,
    borrowed_right,
    slices_of,
)
from smg_mesh.escrow.spending.visited_windows import Visited
from support.rights.rights_world import Defined

SHORT = Limit("#requests/1000", "requests", 1_000, 1_000, mode="strict")
LONG = Limit("#requests/60000", "requests", 1_000, 60_000, mode="strict")
OPEN = Limit("#concurrent/0", "concurrent", 8, 0, mode="strict")


def roster(names: str) -> Roster:
    return Roster(bytes(16), 1, tuple(names), (len(names),) * len(names))


def pool(made: int = 500, limit: Limit = SHORT) -> Pool:
    one = Pool(limit, 5, 1)
    one.made = one.minted = one.ceiling = made
    return one


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 40)), max_size=30))
def test_what_accrues_never_exceeds_the_least_right_there_was_since(
    steps: list[tuple[int, int]],
) -> None:
    accrual, left = Accrual(60), 60
    for right, slices in steps:
        slices = min(slices, left)
        if not slices:
            break
        left -= slices
        before = accrual.total
        accrual.add(right, slices=slices)
        assert accrual.total - before <= right * slices // 60 + 1
        assert accrual.total <= steps[0][0]


def test_a_whole_window_accrues_the_whole_right() -> None:
    for right in (0, 1, 7, 100, 1_001):
        accrual = Accrual(6)
        assert sum(accrual.add(right) for _ in range(6)) == right
    assert (slices_of(60_000), slices_of(10_000), slices_of(10_001), slices_of(0)) == (6, 1, 2, 1)


def test_a_share_that_was_raised_leaves_room_for_owners_who_have_not_heard() -> None:
    before_ms = 60_000
    raised = Limit(
        "k", "requests", 1_000, 1_000, standing=0.9, minted_before=((1_000, 0.1, before_ms),)
    )
    assert raised.standing_right(5, began_ms=59_999) == 20
    assert raised.standing_right(5, began_ms=before_ms) == 180
    assert raised.standing_right(5) == 180
    lowered = Limit("k", "requests", 100, 1_000, minted_before=((1_000, 0.5, before_ms),))
    assert lowered.standing_right(5, began_ms=0) == 10
    more = Limit("k", "requests", 2_000, 1_000, minted_before=((1_000, 0.5, before_ms),))
    assert more.standing_right(5, began_ms=0) == 200
    assert more.standing_right(0, began_ms=0) == 0


def test_what_may_not_stand_yet_is_minted_instead() -> None:
    raised = Limit(
        "k", "requests", 1_000, 1_000, standing=0.9, minted_before=((1_000, 0.1, 60_000),)
    )
    five = roster("abcde")
    assert raised.mintable(five, five.names, began_ms=59_000) == 900
    assert raised.mintable(five, five.names, began_ms=60_000) == 100


def test_a_node_borrows_up_to_its_fair_part_where_the_mode_allows_it() -> None:
    assert borrowed_right(Limit("k", "requests", 1_000, 1_000), 5) == 100
    assert borrowed_right(Limit("k", "requests", 8, 1_000), 5) == 1
    assert borrowed_right(SHORT, 5) == 0
    assert borrowed_right(Limit("k", "requests", 1_000, 1_000), 0) == 0


def test_nothing_stands_with_a_life_in_windows_that_began_before_it() -> None:
    footing = Footing(now_ms=0, wall_ms=10_500)
    footing.divide(roster("abcde"), 5, wall_ms=10_500)
    assert footing.right(SHORT, began_ms=10_000, turn_ms=10_000) == NOTHING
    assert footing.right(SHORT, began_ms=11_000, turn_ms=11_000) == 95
    assert footing.right(SHORT, began_ms=12_000, turn_ms=12_000) == 100


def test_a_right_that_grows_counts_from_the_second_window_on_and_one_that_shrinks_at_once() -> None:
    footing = Footing(now_ms=0, wall_ms=0)
    footing.divide(roster("abcde"), 5, wall_ms=0)
    footing.divide(roster("abcd"), 4, wall_ms=10_500)
    assert footing.right(SHORT, began_ms=11_000, turn_ms=11_000) == 100
    assert footing.right(SHORT, began_ms=12_000, turn_ms=12_000) == 125
    footing.divide(roster("abcde"), 5, wall_ms=12_500)
    assert footing.right(SHORT, began_ms=13_000, turn_ms=13_000) == 100


def test_who_began_in_a_window_has_nothing_in_it_whatever_rosters_follow() -> None:
    footing = Footing(now_ms=0, wall_ms=0)
    footing.divide(roster("abcd"), 4, wall_ms=10_200)
    footing.divide(roster("abcde"), 5, wall_ms=10_700)
    assert footing.right(SHORT, began_ms=10_000, turn_ms=10_000) == NOTHING
    assert footing.right(SHORT, began_ms=11_000, turn_ms=11_000) == 95
    footing.divide(roster("abcde"), 0, wall_ms=13_100)
    assert footing.right(SHORT, began_ms=14_000, turn_ms=14_000) == NOTHING
    footing.divide(roster("abcde"), 5, wall_ms=14_100)
    footing.divide(roster("abcd"), 4, wall_ms=14_200)
    assert footing.right(SHORT, began_ms=14_000, turn_ms=14_000) == NOTHING
    assert footing.right(SHORT, began_ms=15_000, turn_ms=15_000) == 96
    assert footing.right(SHORT, began_ms=16_000, turn_ms=16_000) == 125


def test_the_largest_divisor_of_the_time_before_counts_not_only_the_last_one() -> None:
    footing = Footing(now_ms=0, wall_ms=0)
    footing.divide(roster("abcdefgh"), 8, wall_ms=0)
    footing.divide(roster("abcde"), 5, wall_ms=10_500)
    footing.divide(roster("abcd"), 4, wall_ms=10_600)
    footing.divide(roster("abcde"), 5, wall_ms=10_700)
    footing.divide(roster("ab"), 2, wall_ms=11_600)
    assert footing.right(SHORT, began_ms=11_000, turn_ms=11_000) == 62
    assert footing.right(SHORT, began_ms=12_000, turn_ms=12_000) == 100
    assert footing.right(SHORT, began_ms=13_000, turn_ms=13_000) == 250


def test_a_newcomer_has_a_right_from_the_next_slice_on() -> None:
    footing = Footing(now_ms=0, wall_ms=0)
    assert footing.right(LONG, began_ms=60_000, turn_ms=60_000) == NOTHING
    footing.divide(roster("abcde"), 5, wall_ms=65_000)
    assert footing.right(LONG, began_ms=60_000, turn_ms=60_000) == NOTHING
    assert footing.right(LONG, began_ms=60_000, turn_ms=70_000) == 95
    assert footing.right(LONG, began_ms=120_000, turn_ms=120_000) == 95
    assert footing.right(LONG, began_ms=180_000, turn_ms=180_000) == 100


def test_a_newcomer_rounds_so_that_an_owner_who_has_not_heard_may_mint_ahead() -> None:
    for amount in range(1, 400):
        limit = Limit("k", "requests", amount, 1_000, mode="strict")
        for names in range(1, 9):
            minted = amount - names * limit.standing_right(names)
            old = limit.standing_right(names + 1)
            footing = Footing(now_ms=0, wall_ms=0)
            footing.divide(roster("abcdefghi"[: names + 1]), names + 1, wall_ms=9_500)
            new = footing.right(limit, began_ms=10_000, turn_ms=10_000)
            assert minted + names * old + new <= amount


def test_borrowing_begins_after_a_lease_time_without_a_majority() -> None:
    footing = Footing(now_ms=0, wall_ms=0)
    footing.divide(roster("abcde"), 5, wall_ms=0)
    limit = Limit("k", "requests", 1_000, 1_000)
    footing.see(majority=False, now_ms=5_000)
    footing.see(majority=False, now_ms=5_999)
    assert footing.loan(limit, began_ms=6_000, turn_ms=6_000) == 0
    footing.see(majority=False, now_ms=6_000)
    assert footing.loan(limit, began_ms=6_000, turn_ms=6_000) == 100
    footing.see(majority=True, now_ms=6_100)
    assert footing.loan(limit, began_ms=7_000, turn_ms=7_000) == 0


def clock_set_back(footing_of: Callable[[LivedTime], Footing]) -> Footing:
    """A footing whose clock went on to 60 s, and jumped back to 20 s."""
    lived = LivedTime(None, now_ms=0, wall_ms=0)
    lived.written(lived.unwritten(spends=True))
    footing = footing_of(lived)
    footing.clocks(now_ms=60_000, wall_ms=60_000)
    footing.clocks(now_ms=60_010, wall_ms=20_000)
    return footing


def footed(lived: LivedTime) -> Footing:
    footing = Footing(now_ms=0, wall_ms=0, lived=lived)
    footing.divide(roster("abcde"), 5, wall_ms=0)
    return footing


def test_in_windows_that_were_over_before_the_clock_jumped_back_the_least_right_of_any_version_stands() -> (
    None
):
    footing = clock_set_back(footed)
    raised = Limit("k", "requests", 2_000, 1_000, older=((1_000, 0.5), (3_000, 0.5)))
    rights = [footing.right(raised, began_ms=at, turn_ms=at) for at in (30_000, 58_000, 61_000)]
    assert rights == [100, 100, 200]
    assert footing.right(SHORT, began_ms=30_000, turn_ms=30_000) == 100


def test_a_right_that_grows_counts_in_no_window_that_was_over_before_the_clock_jumped_back() -> (
    None
):
    for jumps, expected in ((True, 100), (False, 125)):
        lived = LivedTime(None, now_ms=0, wall_ms=0)
        lived.written(lived.unwritten(spends=True))
        ledger = Ledger(Life("a", 1), Defined(SHORT), now_ms=0, wall_ms=0, lived=lived)
        ledger.follow(roster("abcde"), 5, wall_ms=0)
        lived.see(now_ms=60_000, wall_ms=60_000 if jumps else 20_000)
        lived.see(now_ms=60_010, wall_ms=20_000)
        ledger.follow(roster("abcd"), 4, wall_ms=20_000)
        assert ledger._footing.right(SHORT, began_ms=30_000, turn_ms=30_000) == expected


def test_nothing_is_borrowed_of_a_changed_limit_in_windows_that_were_over() -> None:
    footing = clock_set_back(footed)
    raised = Limit("k", "requests", 2_000, 1_000, older=((1_000, 0.5),))
    footing.see(majority=False, now_ms=60_020)
    footing.see(majority=False, now_ms=62_000)
    assert footing.loan(raised, began_ms=30_000, turn_ms=30_000) == 0
    assert footing.loan(raised, began_ms=61_000, turn_ms=61_000) == 200


@given(st.lists(st.integers(0, 10_000), max_size=60))
def test_a_visited_window_stays_visited(windows: list[int]) -> None:
    visited = Visited()
    for index, window in enumerate(windows):
        visited.add(window)
        assert all(before in visited for before in windows[: index + 1])


def test_windows_never_visited_are_not() -> None:
    visited = Visited()
    for window in (5, 6, 7, 1_000, 20):
        visited.add(window)
    assert [window in visited for window in (4, 8, 12, 19, 21, 999, 1_001)] == [False] * 7


@given(st.integers(0, 200), st.integers(1, 12))
def test_permits_are_all_somebodys_and_nobodys_twice(amount: int, names: int) -> None:
    many = roster("abcdefghijkl"[:names])
    parts = [permits_of(amount, many, names, name) for name in many.names]
    assert sum(parts) == amount
    assert max(parts) - min(parts) <= 1


@given(st.integers(0, 60), st.integers(1, 7), st.integers(0, 7))
def test_permits_of_two_rosters_that_differ_by_a_name_never_overlap(
    amount: int, names: int, place: int
) -> None:
    old = list("bdfhjln"[:names])
    new = sorted([*old, "acegikmo"[place]])
    small, large = roster("".join(old)), roster("".join(new))
    for who in itertools.product((small, large), repeat=len(old)):
        parts = [permits_of(amount, r, len(r.names), n) for r, n in zip(who, old, strict=True)]
        assert sum(parts) <= amount
    for name in old:
        assert permits_of(amount, large, len(new), name) <= permits_of(
            amount, small, len(old), name
        )


def test_permits_are_taken_given_back_and_follow_the_limit() -> None:
    limits = Defined(OPEN)
    ledger = Ledger(Life("a", 1), limits, now_ms=0, wall_ms=0)
    share = ledger.share(OPEN, now_ms=0, wall_ms=0)
    assert share.left == 0
    ledger.follow(roster("abc"), 3, wall_ms=0)
    assert (share.left, share.window, share.pool) == (3, 0, 0)
    share.left -= 3
    share.spent += 3
    assert ledger.share(OPEN, now_ms=5, wall_ms=5) is share
    limits.limits[OPEN.key] = Limit(OPEN.key, "concurrent", 2, 0)
    ledger.changed()
    assert share.left == -2
    share.left += 3
    share.spent -= 3
    assert share.left == 1
    (row,) = ledger.rows()
    assert (row.standing, row.spent, row.left) == (1, 0, 1)
    del limits.limits[OPEN.key]
    ledger.changed()
    assert (share.left, share.window) == (0, -1)
    assert ledger.peek(OPEN.key) is None
    assert ledger.due_ms(0) is None
