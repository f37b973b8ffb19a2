"""Policies pick from what they are given, spread work, and repeat themselves under one seed."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.routing.known import known_policies
from smg_node.routing.policy import Candidate

fleets = st.lists(st.integers(0, 50), min_size=1, max_size=12).map(
    lambda loads: [Candidate(f"w{at:02}", load) for at, load in enumerate(loads)]
)


@pytest.mark.parametrize("name", list(known_policies()))
@given(fleet=fleets, seed=st.integers(0, 2**32))
def test_a_choice_is_one_of_the_candidates_and_the_same_for_the_same_seed(
    name: str, fleet: list[Candidate], seed: int
) -> None:
    def walk() -> list[int]:
        policy, rng = known_policies().get(name)(), random.Random(seed)
        return [policy.choose("m", fleet, rng) for _ in range(5)]

    first = walk()
    assert all(0 <= choice < len(fleet) for choice in first)
    assert first == walk()


@given(fleet=fleets, seed=st.integers(0, 2**32))
def test_round_robin_visits_everyone_before_anyone_twice(fleet: list[Candidate], seed: int) -> None:
    policy, rng = known_policies().get("round_robin")(), random.Random(seed)
    visits = [policy.choose("m", fleet, rng) for _ in fleet]
    assert sorted(visits) == list(range(len(fleet)))


def test_round_robin_keeps_models_apart() -> None:
    policy, rng = known_policies().get("round_robin")(), random.Random(1)
    fleet = [Candidate("a", 0), Candidate("b", 0)]
    first = policy.choose("one", fleet, rng)
    policy.choose("two", fleet, rng)
    assert policy.choose("one", fleet, rng) == 1 - first


@given(seed=st.integers(0, 2**32))
def test_power_of_two_never_picks_the_busiest_of_many(seed: int) -> None:
    fleet = [Candidate("a", 1), Candidate("b", 9), Candidate("c", 1)]
    policy, rng = known_policies().get("power_of_two")(), random.Random(seed)
    assert all(policy.choose("m", fleet, rng) != 1 for _ in range(20))


def test_power_of_two_evens_out() -> None:
    policy, rng = known_policies().get("power_of_two")(), random.Random(7)
    inflight = Counter({f"w{at}": 0 for at in range(8)})
    for _ in range(800):
        fleet = [Candidate(name, inflight[name]) for name in sorted(inflight)]
        inflight[fleet[policy.choose("m", fleet, rng)].worker] += 1
    assert max(inflight.values()) - min(inflight.values()) <= 6


def test_an_unknown_policy_is_told_the_nearest_name() -> None:
    with pytest.raises(SmgError, match="power_of_two"):
        known_policies().get("power_of_too")
