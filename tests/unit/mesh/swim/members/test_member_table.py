"""The table is a join of claims."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import xor
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.config import PROFILES
from smg_mesh.swim.members.member_table import Members, digest_piece
from smg_mesh.swim.messages import Address, Claim, Rank

LAN = PROFILES["lan"]


def claim(
    rank: Rank = Rank.ALIVE,
    *,
    name: str = "a",
    boot: int = 1,
    incarnation: int = 0,
    full: bool = True,
) -> Claim:
    """A member's address and meta are a function of boot and incarnation: it alone says them."""
    bare = Claim(name, boot, incarnation, rank)
    if not full:
        return bare
    address = Address(f"10.0.{boot}.{incarnation + 1}", 7946)
    return msgspec.structs.replace(bare, address=address, meta=bytes([boot, incarnation]))


def table(claims: Sequence[Claim]) -> list[tuple[object, ...]]:
    members = Members(LAN)
    for one in claims:
        members.merge(one, now_ms=0)
    return [
        (row.name, row.order, row.detail, row.address, row.meta, row.present)
        for _, row in sorted(members.rows.items())
    ] + [(members.digest, members.count)]


CLAIMS = st.builds(
    claim,
    st.sampled_from(Rank),
    name=st.sampled_from(["a", "b"]),
    boot=st.integers(1, 3),
    incarnation=st.integers(0, 2),
    full=st.booleans(),
)


@given(st.lists(CLAIMS, max_size=12), st.randoms(use_true_random=False))
def test_any_order_and_any_repetition_of_claims_give_the_same_table(
    claims: list[Claim], random: Random
) -> None:
    again = claims + random.choices(claims, k=len(claims)) if claims else []
    random.shuffle(again)
    assert table(again) == table(claims)


@given(st.lists(CLAIMS, max_size=8), st.lists(CLAIMS, max_size=8))
def test_a_table_that_hears_what_it_knows_says_that_nothing_is_new(
    claims: list[Claim], more: list[Claim]
) -> None:
    members = Members(LAN)
    for one in claims + more:
        members.merge(one, now_ms=0)
    assert all(members.merge(one, now_ms=1) is None for one in claims + more)


@given(st.lists(CLAIMS, max_size=12))
def test_the_digest_kept_on_the_way_is_the_digest_of_the_members(claims: list[Claim]) -> None:
    members = Members(LAN)
    for one in claims:
        members.merge(one, now_ms=0)
    pieces = [digest_piece(row.name, *row.detail) for row in members.rows.values() if row.present]
    assert members.digest == reduce(xor, pieces, 0)
    assert sorted(row.name for row in members.present) == sorted(
        row.name for row in members.rows.values() if row.present
    )
    assert all(row.listed is not None and row.listed[row.place] is row for row in members.present)
    assert all(row.rank is Rank.DEAD and row.address is not None for row in members.dead)


@given(st.lists(CLAIMS, max_size=12))
def test_a_tables_claims_tell_all_states_and_what_is_true_of_addresses(
    claims: list[Claim],
) -> None:
    members, copy = Members(LAN), Members(LAN)
    for one in claims:
        members.merge(one, now_ms=0)
    told = list(members.claims())
    assert [one.name for one in told] == sorted(members.rows)
    for one in told:
        copy.merge(one, now_ms=0)
    for name, row in members.rows.items():
        assert copy.rows[name].order == row.order
        known = row.detailed or row.rank is Rank.LEFT
        assert copy.rows[name].address == (row.address if known else None)
    behind = [row for row in members.present if not row.detailed]
    assert (copy.digest == members.digest) == (not behind)


@pytest.mark.parametrize(
    ("first", "then", "rank"),
    [
        (claim(), claim(Rank.SUSPECT), Rank.SUSPECT),
        (claim(Rank.SUSPECT), claim(), Rank.SUSPECT),
        (claim(Rank.SUSPECT), claim(incarnation=1), Rank.ALIVE),
        (claim(Rank.DEAD), claim(incarnation=1), Rank.ALIVE),
        (claim(Rank.DEAD), claim(Rank.SUSPECT, incarnation=1), Rank.SUSPECT),
        (claim(Rank.LEFT, incarnation=1), claim(Rank.DEAD, incarnation=1), Rank.LEFT),
        (claim(Rank.LEFT, incarnation=1), claim(boot=2), Rank.ALIVE),
        (claim(boot=2), claim(Rank.DEAD, incarnation=9), Rank.ALIVE),
    ],
)
def test_the_larger_claim_decides(first: Claim, then: Claim, rank: Rank) -> None:
    members = Members(LAN)
    members.merge(first, now_ms=0)
    members.merge(then, now_ms=1)
    assert members.rows["a"].rank is rank


def test_a_newer_address_is_taken_though_the_state_ran_ahead() -> None:
    members = Members(LAN)
    members.merge(claim(), now_ms=0)
    members.merge(claim(incarnation=2, full=False), now_ms=1)
    merge = members.merge(claim(incarnation=1), now_ms=2)
    assert merge is not None
    assert (merge.moved, merge.told) == (False, True)
    assert merge.row.incarnation == 2
    assert merge.row.address == claim(incarnation=1).address


def test_digests_differ_until_the_address_of_the_new_incarnation_is_known() -> None:
    ahead, whole = Members(LAN), Members(LAN)
    for members in (ahead, whole):
        members.merge(claim(), now_ms=0)
    whole.merge(claim(incarnation=1), now_ms=1)
    ahead.merge(claim(incarnation=1, full=False), now_ms=1)
    assert ahead.digest != whole.digest
    ahead.merge(claim(incarnation=1), now_ms=2)
    assert ahead.digest == whole.digest


def test_doubts_and_rows_of_the_dead_are_not_in_the_digest() -> None:
    members, others = Members(LAN), Members(LAN)
    for table in (members, others):
        table.merge(claim(name="b"), now_ms=0)
    others.merge(claim(Rank.SUSPECT, name="b"), now_ms=1)
    others.merge(claim(Rank.DEAD), now_ms=1)
    assert members.digest == others.digest
    assert members.count == others.count == 2


def test_a_name_without_address_is_a_row_but_no_member() -> None:
    members = Members(LAN)
    members.merge(claim(Rank.SUSPECT, full=False), now_ms=0)
    assert members.rows["a"].rank is Rank.SUSPECT
    assert (members.count, members.present, members.aging_count) == (1, [], 1)
    members.merge(claim(), now_ms=1)
    assert (members.count, members.aging_count) == (2, 0)


def test_rows_of_the_dead_are_dropped_after_their_time_and_not_before() -> None:
    members = Members(LAN)
    members.merge(claim(Rank.DEAD), now_ms=0)
    members.merge(claim(Rank.LEFT, name="b"), now_ms=500)
    assert members.sweep(now_ms=LAN.forget_after_ms - 1) == 0
    assert members.sweep(now_ms=LAN.forget_after_ms) == 1
    assert list(members.rows) == ["b"]
    assert members.dead == []


def test_what_was_forgotten_is_not_taken_back_from_those_who_still_offer_it() -> None:
    members = Members(LAN)
    members.merge(claim(Rank.DEAD, incarnation=1), now_ms=0)
    members.sweep(now_ms=LAN.forget_after_ms)
    assert members.merge(claim(Rank.DEAD, incarnation=1), now_ms=LAN.forget_after_ms + 1) is None
    assert members.rows == {}
    assert members.merge(claim(incarnation=1), now_ms=LAN.forget_after_ms + 2) is not None
    assert members.count == 2


def test_the_oldest_rows_of_the_dead_go_first_when_there_are_too_many() -> None:
    members = Members(replace(LAN, rows_max=3))
    for number in range(10):
        members.merge(claim(Rank.DEAD, name=f"n{number}"), now_ms=number)
    assert list(members.rows) == ["n7", "n8", "n9"]
    assert len(members.dead) == len(members.tags) == 3


def test_only_rows_of_the_gone_can_be_forgotten() -> None:
    members = Members(LAN)
    members.merge(claim(), now_ms=0)
    with pytest.raises(ValueError, match="a is alive, not gone"):
        members.forget("a")
    with pytest.raises(KeyError):
        members.forget("b")
    members.merge(claim(Rank.DEAD), now_ms=1)
    members.forget("a")
    assert members.rows == {}
