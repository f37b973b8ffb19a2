"""The quick choice is the plain one: the same candidates for the same fleets, prompts and draws."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.load import Load
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.peer_load_estimate import LOOK_AGAIN_S
from smg_node.routing.policy import Asked, Policy
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from support.fleet.reference_choice import PlainChoice, busy_fleet
from support.fleet.worker_pools import FakeBeginning

NAMES = ("cache_aware", "least_load")


def choices(
    policy: Policy, seed: int, *, workers: int, requests: int
) -> tuple[list[int], list[WorkerLoad]]:
    """Return what it chooses for requests one after the other, and the fleet as it stands then."""
    world, draws = random.Random(seed), random.Random(seed + 1)
    loads, chosen, now_s = busy_fleet(world, workers), [], 100.0
    pool = Pool(loads)
    calls: list[tuple[WorkerLoad, int]] = []
    for number in range(requests):
        now_s += world.random() / 5
        ids = range(world.choice([0, 10, 500, 4_600, 30_000]))
        asked = Asked("m", ids=ids, now_s=now_s, beginning=prompt(world, loads, len(ids)))
        at = policy.choose(asked, pool, draws)
        chosen.append(at)
        loads[at].begin(len(ids))
        calls.append((loads[at], len(ids)))
        if len(calls) > workers:
            one, tokens = calls.pop(world.randrange(len(calls)))
            one.end(tokens, seconds=5 * world.random())
        if number % 3 == 0:
            one = world.choice(loads)
            said = Load(0, one.inflight, world.randrange(3), None, None, world.random(), None, None)
            one.sample(said, now_s)
    return chosen, loads


def prompt(world: random.Random, loads: list[WorkerLoad], tokens: int) -> FakeBeginning | None:
    kind = world.random()
    if kind < 0.2:
        return None
    known = {}
    if kind < 0.6:
        few = world.sample(loads, min(len(loads), 3))
        known = {one.worker: world.choice([32.0, 64.0, 0.5 * tokens, tokens]) for one in few}
    return FakeBeginning(known, world.randbytes(8) if tokens >= 64 else b"")


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 24))
def test_the_quick_choice_is_the_plain_one(name: str, seed: int, workers: int) -> None:
    plain = PlainChoice(cached=name == "cache_aware")
    quick = Policies(OwnBindings()).named(name)
    expected, _ = choices(plain, seed, workers=workers, requests=30)
    assert choices(quick, seed, workers=workers, requests=30)[0] == expected


@pytest.mark.parametrize("name", NAMES)
def test_it_is_so_over_a_thousand_requests_to_64_workers(name: str) -> None:
    plain = PlainChoice(cached=name == "cache_aware")
    quick = Policies(OwnBindings()).named(name)
    expected, theirs = choices(plain, 7, workers=64, requests=1_000)
    chosen, ours = choices(quick, 7, workers=64, requests=1_000)
    assert chosen == expected
    assert [one.wait_s for one in ours] == [one.wait_s for one in theirs]
    assert len(set(chosen)) > 16


@settings(deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), alone=st.integers(1, 12))
def test_what_the_only_worker_was_sent_counts_when_others_come(seed: int, alone: int) -> None:
    def chosen(policy: Policy) -> list[int]:
        world = random.Random(seed)
        loads, now_s = busy_fleet(world, 8), 100.0
        one, all_of = Pool(loads[:1]), Pool(loads)
        for _ in range(alone):
            now_s += world.random() / 5
            asked = Asked("m", ids=range(world.choice([10, 4_600])), now_s=now_s)
            assert policy.choose(asked, one, random.Random(seed)) == 0
        draws = random.Random(seed)
        later_s = now_s + LOOK_AGAIN_S
        return [
            policy.choose(Asked("m", ids=range(500), now_s=later_s + at / 10), all_of, draws)
            for at in range(20)
        ]

    assert chosen(Policies(OwnBindings()).named("cache_aware")) == chosen(PlainChoice(cached=True))
