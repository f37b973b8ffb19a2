"""Policies pick from what they are given, spread work, and repeat themselves under one seed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.fleet.load import WorkerLoad
from smg_node.routing.known import OwnBindings, Policies, known_policies
from smg_node.routing.policy import Asked, Policy, PolicyOptions
from smg_node.routing.pool import Pool
from support.pools import pool_of

pools = st.lists(st.integers(0, 50), min_size=1, max_size=12).map(pool_of)
ASKED = Asked("m", key="k", ids=(1, 2, 3))


def policy_of(name: str) -> Policy:
    return Policies(OwnBindings()).named(name)


@pytest.mark.parametrize("name", list(known_policies()))
@given(pool=pools, seed=st.integers(0, 2**32), key=st.sampled_from(["", "k", "l"]))
def test_a_choice_is_one_of_the_candidates_and_the_same_for_the_same_seed(
    name: str, pool: Pool, seed: int, key: str
) -> None:
    def walk() -> list[int]:
        policy, rng = policy_of(name), random.Random(seed)
        return [policy.choose(Asked("m", key=key), pool, rng) for _ in range(5)]

    first = walk()
    assert all(0 <= choice < len(pool.candidates) for choice in first)
    assert first == walk()


@given(pool=pools, seed=st.integers(0, 2**32))
def test_round_robin_visits_everyone_before_anyone_twice(pool: Pool, seed: int) -> None:
    policy, rng = policy_of("round_robin"), random.Random(seed)
    visits = [policy.choose(ASKED, pool, rng) for _ in pool.candidates]
    assert sorted(visits) == list(range(len(pool.candidates)))


def test_round_robin_keeps_models_apart() -> None:
    policy, rng, pool = policy_of("round_robin"), random.Random(1), pool_of([0, 0])
    first = policy.choose(Asked("one"), pool, rng)
    policy.choose(Asked("two"), pool, rng)
    assert policy.choose(Asked("one"), pool, rng) == 1 - first


@given(seed=st.integers(0, 2**32))
def test_power_of_two_never_picks_the_busiest_of_many(seed: int) -> None:
    policy, rng, pool = policy_of("power_of_two"), random.Random(seed), pool_of([1, 9, 1])
    assert all(policy.choose(ASKED, pool, rng) != 1 for _ in range(20))


def test_power_of_two_evens_out() -> None:
    policy, rng, pool = policy_of("power_of_two"), random.Random(7), pool_of([0] * 8)
    loads = pool.candidates
    for _ in range(800):
        chosen = loads[policy.choose(ASKED, pool, rng)]
        assert isinstance(chosen, WorkerLoad)
        chosen.begin(1)
    inflight = [one.inflight for one in loads]
    assert max(inflight) - min(inflight) <= 6


def test_an_unknown_policy_is_told_the_nearest_name() -> None:
    with pytest.raises(SmgError, match="power_of_two"):
        known_policies().get("power_of_too")


def test_a_manual_policy_that_delegates_to_itself_does_not_ask_itself_for_ever() -> None:
    policies = Policies(OwnBindings(), PolicyOptions(delegate="manual"))
    assert policies.named("manual").choose(Asked("m"), pool_of([0, 0]), random.Random(1)) in (0, 1)


def test_policies_are_made_once_and_keep_their_state() -> None:
    policies = Policies(OwnBindings())
    assert policies.named("round_robin") is policies.named("round_robin")
