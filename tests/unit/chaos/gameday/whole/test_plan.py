"""The plan of a game day: never more harm at once than the promises bear, whatever the seed."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.gameday.whole.faults.table import FAULTS
from smg_chaos.gameday.whole.plan import CALM_S, KINDS, WARM_S, Planned, chosen, plan

ENGINES = ("engine 0", "engine 1", "engine 2")


def planned(seed: int, nodes: int, length_s: float, *names: str) -> tuple[Planned, ...]:
    members = [f"n{number:02}" for number in range(nodes)]
    return plan(Random(seed), length_s, members, ENGINES, chosen(names, store=True))


DAYS = given(
    seed=st.integers(0, 10_000),
    nodes=st.integers(3, 20),
    length_s=st.floats(20, 7200, allow_nan=False),
    names=st.lists(st.sampled_from(sorted(KINDS)), max_size=5),
)


@DAYS
def test_in_a_lane_one_fault_has_healed_before_the_next_begins(
    seed: int, nodes: int, length_s: float, names: list[str]
) -> None:
    day = planned(seed, nodes, length_s, *names)
    for lane in ("nodes", "world"):
        own = [one for one in day if one.kind.lane == lane]
        for early, late in pairwise(own):
            assert late.at_s >= early.at_s + early.seconds + early.kind.heals_s - 0.01


@DAYS
def test_a_majority_of_the_nodes_is_never_hurt_and_the_day_begins_and_ends_calm(
    seed: int, nodes: int, length_s: float, names: list[str]
) -> None:
    for one in planned(seed, nodes, length_s, *names):
        hurt = [name for name in one.victims if name.startswith("n")]
        assert 2 * len(hurt) < nodes
        assert len(set(one.victims)) == len(one.victims)
        assert one.at_s >= WARM_S
        assert one.at_s + one.seconds <= length_s - CALM_S + 0.01
        assert one.kind.least_s - 0.001 <= one.seconds <= one.kind.most_s + 0.001


@DAYS
def test_the_same_seed_makes_the_same_day(
    seed: int, nodes: int, length_s: float, names: list[str]
) -> None:
    assert planned(seed, nodes, length_s, *names) == planned(seed, nodes, length_s, *names)


def test_every_kind_comes_before_one_comes_again() -> None:
    for lane in ("nodes", "world"):
        own = [one.kind.name for one in planned(1, 5, 3600) if one.kind.lane == lane]
        kinds = {kind.name for kind in chosen([], store=True) if kind.lane == lane}
        assert set(own[: len(kinds)]) == kinds
        counts = Counter(own)
        assert max(counts.values()) - min(counts.values()) <= 1


def test_two_nodes_have_no_minority_so_no_node_is_hurt() -> None:
    assert {one.kind.lane for one in planned(1, 2, 600)} == {"world"}


def test_the_only_engine_is_left_alone() -> None:
    day = plan(Random(1), 3600, ["a", "b", "c"], ["engine 0"], chosen((), store=True))
    assert not [one for one in day if one.kind.takes == "engine"]


def test_a_day_that_is_too_short_for_any_fault_has_none() -> None:
    assert planned(1, 5, WARM_S + CALM_S) == ()


def test_faults_that_do_not_exist_or_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no fault is called 'flood'; there are kill"):
        chosen(["flood"], store=True)
    with pytest.raises(ValueError, match="'store' needs a store server: say --store postgresql"):
        chosen(["kill", "store"], store=False)


def test_unless_they_are_named_faults_that_cannot_be_are_left_out() -> None:
    assert {kind.name for kind in chosen([], store=False)} == set(KINDS) - {"store", "store-stall"}
    assert {kind.name for kind in chosen([], store=True)} == set(KINDS)


def test_whatever_can_be_planned_can_be_done() -> None:
    assert set(FAULTS) == set(KINDS)
