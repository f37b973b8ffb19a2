"""Every policy, whatever the fleet looks like: a candidate is chosen, repeatably, and keys move only if they must."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.journey import RATED_MAX, Ratings
from smg_node.engines.load import Load
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.policy import Asked, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies, known_policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import FakeBeginning

NAMES = list(known_policies())
KEYED = ("consistent_hashing", "prefix_hash")


@dataclass(frozen=True)
class Seen:
    """What a node knows of one worker, as plain values: what policies see is made of it anew."""

    own: int
    tokens: int
    others: int
    others_tokens: int
    weight: float
    capacity: int | None
    kv_usage: float | None
    waiting: int
    sampled_s: float | None
    fresh: bool
    rate: float

    def load(self, at: int) -> WorkerLoad:
        made = WorkerLoad(f"w{at:02}", weight=self.weight)
        made.prefill_rate = self.rate
        made.hear(self.others, self.others_tokens)
        for _ in range(self.own):
            made.begin(self.tokens)
        made.sized(self.capacity)
        if self.sampled_s is not None:
            said = Load(0, self.own, self.waiting, None, None, self.kv_usage, None, None)
            made.sample(said, self.sampled_s)
        if self.fresh:
            made.fresh_until_s = 1e9
        return made


workers = st.builds(
    Seen,
    own=st.integers(0, 5),
    tokens=st.integers(0, 100_000),
    others=st.integers(0, 300),
    others_tokens=st.integers(0, 10**9),
    weight=st.floats(0.05, 20),
    capacity=st.none() | st.integers(1, 512),
    kv_usage=st.none() | st.floats(0, 1),
    waiting=st.integers(0, 100),
    sampled_s=st.none() | st.floats(0, 1000),
    fresh=st.booleans(),
    rate=st.floats(500, 200_000),
)
fleets = st.lists(workers, min_size=1, max_size=10)


@dataclass(frozen=True)
class Wish:
    """One request, as plain values."""

    key: str
    caller: str
    tokens: int
    text: str
    overlaps: Sequence[float] | None
    block: bytes
    later_s: float

    def asked(self, now_s: float, rated: Ratings | None) -> Asked:
        known = {f"w{at:02}": overlap for at, overlap in enumerate(self.overlaps or ())}
        return Asked(
            "m",
            key=self.key,
            caller=self.caller,
            ids=range(self.tokens),
            text=self.text,
            now_s=now_s,
            beginning=None if self.overlaps is None else FakeBeginning(known, self.block),
            rated=rated,
        )


wishes = st.lists(
    st.builds(
        Wish,
        key=st.sampled_from(["", "k", "l"]),
        caller=st.sampled_from(["", "c"]),
        tokens=st.integers(0, 20_000),
        text=st.text(max_size=300),
        overlaps=st.none() | st.lists(st.floats(0, 30_000), max_size=10),
        block=st.sampled_from([b"", b"01234567", b"89abcdef"]),
        later_s=st.floats(0, 10),
    ),
    min_size=1,
    max_size=8,
)
options = st.builds(
    PolicyOptions,
    load_factor=st.floats(1.05, 3),
    assignment=st.sampled_from(["ring", "random", "min_load", "min_group"]),
    delegate=st.sampled_from(NAMES),
    metric=st.sampled_from(["expected_wait", "requests"]),
    cache_mode=st.sampled_from(["cost", "threshold"]),
    cache_threshold=st.floats(0, 1),
    balance_abs=st.integers(1, 100),
    balance_rel=st.floats(1, 10),
    node=st.sampled_from(["", "n1"]),
)


def walk(
    name: str, fleet: Sequence[Seen], asked: Sequence[Wish], told: PolicyOptions, seed: int
) -> list[int]:
    """Return the choices of a new policy for these requests, which are open from then on."""
    loads = [one.load(at) for at, one in enumerate(fleet)]
    pool = Pool(loads)
    policy, rng = Policies(OwnBindings(), told).named(name), random.Random(seed)
    chosen, now_s = [], 0.0
    for wish in asked:
        now_s += wish.later_s
        rated = Ratings()
        at = policy.choose(wish.asked(now_s, rated), pool, rng)
        assert 0 <= at < len(loads)
        assert len(rated) <= RATED_MAX
        if rated:
            assert loads[at].worker in [one.worker for one in rated]
        loads[at].begin(wish.tokens)
        chosen.append(at)
    return chosen


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(fleet=fleets, asked=wishes, told=options, seed=st.integers(0, 2**32))
def test_a_choice_is_a_candidate_and_the_same_for_the_same_view_and_seed(
    name: str, fleet: list[Seen], asked: list[Wish], told: PolicyOptions, seed: int
) -> None:
    assert walk(name, fleet, asked, told, seed) == walk(name, fleet, asked, told, seed)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(fleet=fleets, asked=wishes, seed=st.integers(0, 2**32), kept=st.integers(1, 2**10 - 1))
def test_whoever_was_filtered_out_is_never_chosen(
    name: str, fleet: list[Seen], asked: list[Wish], seed: int, kept: int
) -> None:
    loads = [one.load(at) for at, one in enumerate(fleet)]
    places = [at for at in range(len(loads)) if kept >> at & 1] or [0]
    pool = Pool(loads).only(places)
    policy, rng = Policies(OwnBindings()).named(name), random.Random(seed)
    for wish in asked:
        at = policy.choose(wish.asked(1.0, None), pool, rng)
        assert pool.candidates[at] is loads[places[at]]


@pytest.mark.parametrize("name", KEYED)
@settings(deadline=None)
@given(count=st.integers(2, 12), gone=st.integers(0, 11), keys=st.lists(st.text(), max_size=20))
def test_a_worker_that_goes_moves_only_its_own_keys(
    name: str, count: int, gone: int, keys: list[str]
) -> None:
    loads = [WorkerLoad(f"w{at:02}") for at in range(count)]
    away = loads[gone % count]
    everybody, others = Pool(loads), Pool([one for one in loads if one is not away])
    policy, rng = Policies(OwnBindings()).named(name), random.Random(1)
    for key in keys:
        wish = Asked("m", key=key or "k", text=key)
        before = everybody.candidates[policy.choose(wish, everybody, rng)]
        after = others.candidates[policy.choose(wish, others, rng)]
        assert before is away or after is before


@pytest.mark.parametrize("name", KEYED)
@settings(deadline=None)
@given(count=st.integers(1, 12), keys=st.lists(st.sampled_from("abcd"), max_size=120))
def test_no_key_is_common_enough_to_drown_a_worker(name: str, count: int, keys: list[str]) -> None:
    loads = [WorkerLoad(f"w{at:02}") for at in range(count)]
    pool, policy = Pool(loads), Policies(OwnBindings()).named(name)
    for key in keys:
        at = policy.choose(Asked("m", key=key, text=key), pool, random.Random(1))
        loads[at].begin(1)
    assert max(one.inflight for one in loads) <= max(10, 1.25 * (len(keys) + 1) / count + 1)


@pytest.mark.parametrize("name", ["cache_aware", "least_load", "power_of_two", "round_robin"])
@settings(deadline=None)
@given(count=st.integers(1, 8), calls=st.integers(0, 120), seed=st.integers(0, 2**32))
def test_calls_that_stay_open_are_spread(name: str, count: int, calls: int, seed: int) -> None:
    """Of requests without anything in common nobody gets more than a few above the mean."""
    loads = [WorkerLoad(f"w{at:02}") for at in range(count)]
    pool, policy, rng = Pool(loads), Policies(OwnBindings()).named(name), random.Random(seed)
    for number in range(calls):
        ids = [number, *range(number, number + 400)]
        at = policy.choose(Asked("m", ids=ids, now_s=number / 10), pool, rng)
        loads[at].begin(400)
        loads[at].prefilled(400)
    assert max(one.inflight for one in loads) <= calls / count + 8
