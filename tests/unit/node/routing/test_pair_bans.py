"""Numbers of rooms, and pairs that are kept apart."""

import random

from hypothesis import given
from hypothesis import strategies as st

from smg_node.routing.pair_bans import (
    BANNED_S,
    FAILURES_MAX,
    PAIRS_MAX,
    WITHIN_S,
    PairBans,
    room_number,
)


@given(
    st.integers(0, 2**32),
    st.sampled_from((31, 63)),
    st.integers(1, 64),
    st.integers(1, 64),
    st.data(),
)
def test_a_room_leads_to_both_ranks_where_there_is_such_a_room(
    seed: int, bits: int, ranks: int, others: int, data: st.DataObject
) -> None:
    rank, other = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, others - 1))
    number = room_number(
        random.Random(seed),
        bits,
        rank=rank,
        ranks=ranks,
        partner_rank=other,
        partner_ranks=others,
    )
    assert 0 < number < 2**bits
    assert number % ranks == rank
    possible = any(one % ranks == rank and one % others == other for one in range(ranks * others))
    assert (number % others == other) is possible or not possible


class Lowest:
    """Chance at its lowest."""

    def getrandbits(self, k: int, /) -> int:
        return 0

    def random(self) -> float:
        return 0.0


def test_no_room_is_called_0() -> None:
    for ranks, others in ((1, 1), (2, 1), (1, 4), (3, 4)):
        assert room_number(Lowest(), ranks=ranks, partner_ranks=others) > 0


def test_rooms_are_all_different() -> None:
    rng = random.Random(1)
    assert len({room_number(rng) for _ in range(2_000)}) > 1_998
    assert max(room_number(rng).bit_length() for _ in range(200)) == 31


def test_a_pair_that_fails_thrice_in_a_short_time_is_kept_apart_for_a_while() -> None:
    bans = PairBans()
    for at in range(FAILURES_MAX - 1):
        assert not bans.failed("p", "d", 100.0 + at)
        assert not bans.banned("p", "d", 100.0 + at)
    assert bans.failed("p", "d", 105.0)
    assert bans.banned("p", "d", 105.0)
    assert not bans.banned("p", "e", 105.0)
    assert not bans.banned("d", "p", 105.0)
    assert bans.banned("p", "d", 105.0 + BANNED_S - 0.001)
    assert not bans.banned("p", "d", 105.0 + BANNED_S)
    # What it was kept apart for is forgotten with it.
    assert not bans.failed("p", "d", 105.0 + BANNED_S)


def test_failures_that_are_far_apart_mean_nothing() -> None:
    bans = PairBans()
    for at in range(10):
        assert not bans.failed("p", "d", at * (WITHIN_S / 2 + 0.1))


def test_what_is_remembered_is_bounded() -> None:
    bans = PairBans()
    for at in range(PAIRS_MAX + 100):
        for _ in range(FAILURES_MAX):
            bans.failed(f"p{at}", "d", 1.0)
    assert len(bans._until) == PAIRS_MAX
    assert not bans.banned("p0", "d", 1.0)
    assert bans.banned(f"p{PAIRS_MAX + 99}", "d", 1.0)
    for at in range(PAIRS_MAX + 100):
        bans.failed(f"q{at}", "d", 1.0)
    assert len(bans._failures) == PAIRS_MAX
