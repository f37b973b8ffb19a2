"""Bucket: prompts of like length to like workers, by borders that follow what is asked."""

import random
from collections import Counter

from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policy import Asked, Policy, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import pool_of


def bucket(**options: int) -> Policy:
    return Policies(OwnBindings(), PolicyOptions(**options)).named("bucket")  # type: ignore[arg-type]  # they are numbers, all of them


def of(tokens: int, now_s: float = 0.0, model: str = "m") -> Asked:
    return Asked(model, ids=range(tokens), now_s=now_s)


def test_until_there_were_enough_prompts_classes_have_equal_width() -> None:
    policy, rng, pool = bucket(), random.Random(1), pool_of([0] * 4)
    chosen = [policy.choose(of(tokens), pool, rng) for tokens in (1, 1023, 1024, 2048, 3072, 9999)]
    assert chosen == [0, 0, 1, 2, 3, 3]


def test_then_every_class_gets_equally_many() -> None:
    policy, rng, pool = bucket(), random.Random(1), pool_of([0] * 4)
    draw = random.Random(2)
    lengths = [int(draw.lognormvariate(6, 1)) for _ in range(4000)]
    for at, tokens in enumerate(lengths[:2000]):
        policy.choose(of(tokens, at / 100), pool, rng)
    chosen = [
        policy.choose(of(tokens, 20 + at / 100), pool, rng)
        for at, tokens in enumerate(lengths[2000:])
    ]
    shares = Counter(chosen)
    assert min(shares.values()) > 0.8 * 500
    longest = [
        max(t for t, at in zip(lengths[2000:], chosen, strict=True) if at == bucket_at)
        for bucket_at in range(4)
    ]
    assert longest == sorted(longest)


def test_borders_are_drawn_anew_after_five_seconds_and_when_workers_come_or_go() -> None:
    policy, rng = bucket(), random.Random(1)
    for at in range(1024):
        policy.choose(of(100 + at % 2, 6.0), pool_of([0] * 2), rng)
    # The borders of the first moment still hold.
    assert policy.choose(of(1000, 6.0), pool_of([0] * 2), rng) == 0
    assert policy.choose(of(1000, 12.0), pool_of([0] * 2), rng) == 1
    assert policy.choose(of(1000, 12.0), pool_of([0] * 8), rng) == 7


def test_out_of_balance_the_least_loaded_gets_the_prompt() -> None:
    policy, rng = bucket(), random.Random(1)
    assert policy.choose(of(1), pool_of([65, 70, 0, 65]), rng) == 2
    assert policy.choose(of(1), pool_of([60, 61, 0, 60]), rng) == 0
    assert policy.choose(of(1), pool_of([170, 165, 120, 165]), rng) == 0


def test_models_have_borders_of_their_own() -> None:
    policy, rng, pool = bucket(), random.Random(1), pool_of([0, 0])
    for at in range(100):
        policy.choose(of(10 + at % 3, at, model="short"), pool, rng)
    assert policy.choose(of(100, 99, model="short"), pool, rng) == 1
    assert policy.choose(of(100, 99, model="long"), pool, rng) == 0


def test_equal_lengths_leave_no_worker_out_of_bounds() -> None:
    policy, rng, pool = bucket(), random.Random(1), pool_of([0] * 3)
    chosen = {policy.choose(of(7, float(at)), pool, rng) for at in range(100)}
    assert chosen <= {0, 1, 2}


def test_one_worker_is_its_only_class() -> None:
    pool = Pool([WorkerLoad("w")])
    policy = bucket()
    assert {policy.choose(of(tokens), pool, random.Random(1)) for tokens in (0, 5000)} == {0}
