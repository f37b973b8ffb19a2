"""Policies pick from what they are given, spread work, and repeat themselves under one seed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policy import Asked, Policy, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies, known_policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import pool_of

pools = st.lists(st.integers(0, 50), min_size=1, max_size=12).map(pool_of)
ASKED = Asked("m", key="k", ids=(1, 2, 3))


def policy_of(name: str) -> Policy:
    return Policies(OwnBindings()).named(name)


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


def test_power_of_two_compares_seconds_unless_it_is_told_to_compare_requests() -> None:
    pool = pool_of([5, 1])
    one, other = pool.candidates
    assert isinstance(other, WorkerLoad)
    # Few requests, but a long prompt among them.
    other.begin(80_000)
    by_wait = Policies(OwnBindings()).named("power_of_two")
    by_requests = Policies(OwnBindings(), PolicyOptions(metric="requests")).named("power_of_two")
    assert one.wait_s < other.wait_s
    rng = random.Random(1)
    assert {by_wait.choose(ASKED, pool, rng) for _ in range(9)} == {0}
    assert {by_requests.choose(ASKED, pool, rng) for _ in range(9)} == {1}


def test_round_robin_of_several_nodes_does_not_march_in_step() -> None:
    pool, starts = pool_of([0] * 16), set()
    for node in range(16):
        policy = Policies(OwnBindings(), PolicyOptions(node=f"n{node}")).named("round_robin")
        starts.add(policy.choose(ASKED, pool, random.Random(1)))
    assert len(starts) > 8
    again = Policies(OwnBindings(), PolicyOptions(node="n3")).named("round_robin")
    assert again.choose(ASKED, pool, random.Random(7)) in starts


def test_round_robin_goes_on_after_the_last_one_also_when_that_is_gone() -> None:
    policy, pool = policy_of("round_robin"), pool_of([0] * 4)
    rng = random.Random(1)
    while pool.candidates[policy.choose(ASKED, pool, rng)].worker != "w01":
        pass
    assert policy.choose(ASKED, pool.only([0, 2, 3]), rng) == 1
    assert policy.choose(ASKED, pool.only([0, 1]), rng) == 0


def test_random_gives_by_capacity() -> None:
    small, large = WorkerLoad("a"), WorkerLoad("b")
    small.sized(16)
    large.sized(48)
    policy, rng = policy_of("random"), random.Random(1)
    chosen = [policy.choose(ASKED, Pool([small, large]), rng) for _ in range(4000)]
    assert 0.72 < sum(chosen) / 4000 < 0.78


def test_passthrough_says_once_a_model_that_there_is_something_to_choose() -> None:
    said: list[str] = []
    policy = Policies(OwnBindings(), warn=said.append).named("passthrough")
    rng = random.Random(1)
    assert policy.choose(ASKED, pool_of([0]), rng) == 0
    assert said == []
    assert [policy.choose(ASKED, pool_of([9, 0]), rng) for _ in range(3)] == [0, 0, 0]
    assert len(said) == 1
    assert "'m'" in said[0]
    assert "w00" in said[0]
    policy.choose(Asked("other"), pool_of([0, 0]), rng)
    assert len(said) == 2


def test_manual_keys_are_spread_evenly_by_how_many_each_worker_has() -> None:
    bindings = OwnBindings()
    policy = Policies(bindings, PolicyOptions(assignment="min_group")).named("manual")
    pool, rng = pool_of([50, 0, 0]), random.Random(1)
    for number in range(30):
        policy.choose(Asked("m", key=f"k{number}"), pool, rng)
    assert [bindings.keys_at(one.worker) for one in pool.candidates] == [10, 10, 10]


def test_bindings_of_one_node_are_counted_and_bounded() -> None:
    bindings = OwnBindings(entries_max=2)
    bindings.bind("a", "w1", "")
    bindings.bind("a", "w2", "")
    bindings.bind("b", "w2", "")
    bindings.touch("a")
    assert (bindings.keys_at("w1"), bindings.keys_at("w2")) == (0, 2)
    bindings.bind("c", "w1", "")
    assert bindings.worker_of("b") is None
    assert (bindings.keys_at("w1"), bindings.keys_at("w2")) == (1, 1)
    bindings.release("c")
    bindings.release("c")
    assert bindings.keys_at("w1") == 0


def test_least_load_goes_by_seconds_not_by_requests() -> None:
    pool = pool_of([9, 1, 9])
    for at in (1, 2):
        one = pool.candidates[at]
        assert isinstance(one, WorkerLoad)
        one.begin(80_000)
    policy, rng = policy_of("least_load"), random.Random(1)
    assert {policy.choose(ASKED, pool, rng) for _ in range(20)} == {0}


def test_least_load_without_anything_known_takes_the_fewest_open_calls() -> None:
    policy, rng = policy_of("least_load"), random.Random(1)
    assert {policy.choose(ASKED, pool_of([40, 3, 44]), rng) for _ in range(20)} == {1}


def test_an_unknown_policy_is_told_the_nearest_name() -> None:
    with pytest.raises(SmgError, match="power_of_two"):
        known_policies().get("power_of_too")


def test_a_manual_policy_that_delegates_to_itself_does_not_ask_itself_for_ever() -> None:
    policies = Policies(OwnBindings(), PolicyOptions(delegate="manual"))
    assert policies.named("manual").choose(Asked("m"), pool_of([0, 0]), random.Random(1)) in (0, 1)


def test_policies_are_made_once_and_keep_their_state() -> None:
    policies = Policies(OwnBindings())
    assert policies.named("round_robin") is policies.named("round_robin")
