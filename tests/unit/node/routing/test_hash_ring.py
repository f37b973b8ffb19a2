"""Rings: the same on every node, few keys move, and nobody is given more than his share and a quarter."""

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.hash_ring import POINTS, Ring
from smg_node.routing.policy import Asked, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from smg_node.routing.routing_keys import key_digest, prefix_digest, sticky_id
from support.fleet.worker_pools import load, pool_of

KEYS = [key_digest(f"user-{at}", model="m") for at in range(20_000)]


def ring_of(*workers: str) -> Ring:
    return Ring(tuple((worker, 1.0) for worker in workers))


def names(count: int) -> list[str]:
    return [f"w-{at:012x}" for at in range(count)]


def test_adding_one_of_16_workers_moves_at_most_eight_percent_of_the_keys() -> None:
    before, after = ring_of(*names(15)), ring_of(*names(16))
    moved = [key for key in KEYS if before.owner(key) != after.owner(key)]
    assert 0.03 < len(moved) / len(KEYS) <= 0.08
    assert {after.owner(key) for key in moved} == {names(16)[15]}


def test_a_worker_that_goes_moves_only_its_own_keys() -> None:
    everybody, others = ring_of(*names(16)), ring_of(*names(15))
    gone = names(16)[15]
    assert all(
        everybody.owner(key) == others.owner(key) for key in KEYS if everybody.owner(key) != gone
    )


def test_a_candidate_that_is_away_leaves_its_keys_as_if_it_were_gone() -> None:
    known = [(worker, 1.0) for worker in names(16)]
    pool = Pool([load(worker) for worker in names(15)], known)
    others = ring_of(*names(15))
    for key in KEYS[:2000]:
        assert pool.candidates[pool.nearest(key)].worker == others.owner(key)


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([0.5, 1.0, 2.0]), min_size=1),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 63),
)
def test_a_ring_made_after_others_is_what_it_is_from_scratch(
    steps: list[dict[str, float]], asked: int
) -> None:
    ring: Ring | None = None
    for at, workers in enumerate(steps):
        ring = Ring(tuple(sorted(workers.items())), ring)
        if asked >> at & 1:
            ring.owner(KEYS[0])
    assert ring is not None
    fresh = Ring(tuple(sorted(steps[-1].items())))
    assert [ring.owner(key) for key in KEYS[:100]] == [fresh.owner(key) for key in KEYS[:100]]


def test_keys_are_spread_by_weight() -> None:
    ring = Ring((("heavy", 2.0), ("light", 1.0), ("tiny", 0.05)))
    owned = [ring.owner(key) for key in KEYS]
    assert owned.count("heavy") / owned.count("light") == pytest.approx(2, rel=0.35)
    assert 0 < owned.count("tiny") < owned.count("light") / 5
    assert POINTS == 160


def test_a_ring_is_the_same_in_another_process_under_another_hash_seed() -> None:
    code = (
        "from smg_node.routing.hash_ring import Ring\n"
        "from smg_node.routing.routing_keys import key_digest\n"
        "ring = Ring(tuple((f'w-{at:012x}', 1.0) for at in range(16)))\n"
        "print([ring.owner(key_digest(f'user-{at}', model='m')) for at in range(50)])"
    )
    here = [ring_of(*names(16)).owner(key) for key in KEYS[:50]]
    for seed in ("0", "4711"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert run.stdout.strip() == str(here)


def test_where_a_key_lies_is_written_down_for_ever() -> None:
    """Nodes of different versions run side by side, so these may never change."""
    assert sticky_id("user-1", model="m") == "ce1ce38396667483"
    assert prefix_digest(Asked("m", ids=(1, 2, 3)), 256).hex() == "070a3c2e9d0fba74"
    assert ring_of("w-1", "w-2", "w-3").owner(bytes.fromhex("8000000000000000")) == "w-3"


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_tenant_model_and_key_are_never_mixed_up(a: str, b: str, c: str, d: str) -> None:
    if (a, b) != (c, d):
        assert sticky_id(b, model=a) != sticky_id(d, model=c)
        assert sticky_id("k", model=b, tenant=a) != sticky_id("k", model=d, tenant=c)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=300), st.integers(1, 256))
def test_prompts_that_begin_alike_have_one_digest(ids: list[int], tokens: int) -> None:
    one = Asked("m", ids=[*ids[:tokens], *([7] if len(ids) >= tokens else [])])
    other = Asked("m", ids=ids[:tokens]) if len(ids) >= tokens else one
    assert prefix_digest(one, tokens) == prefix_digest(other, tokens)


def test_a_prompt_without_tokens_is_known_by_its_first_characters() -> None:
    text = "x" * 1024
    assert prefix_digest(Asked("m", text=text + "a"), 256) == prefix_digest(
        Asked("m", text=text + "b"), 256
    )
    assert prefix_digest(Asked("m", text="a"), 256) != prefix_digest(Asked("m", text="b"), 256)


# ── Bounded loads ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("policy", ["consistent_hashing", "prefix_hash"])
@pytest.mark.parametrize("workers", [3, 16, 64])
def test_the_peak_is_at_most_a_quarter_over_the_mean(policy: str, workers: int) -> None:
    """Keys by Zipf's law: the commonest alone asks for more than a worker may be given."""
    rng = random.Random(workers)
    pool = Pool([load(worker) for worker in names(workers)])
    chooser = Policies(OwnBindings()).named(policy)
    weights = [1 / (rank + 1) for rank in range(2000)]
    for key in rng.choices(range(2000), weights, k=workers * 60):
        chosen = pool.candidates[chooser.choose(Asked("m", key=f"u{key}", ids=(key,)), pool, rng)]
        assert isinstance(chosen, WorkerLoad)
        chosen.begin(1)
    inflight = [one.inflight for one in pool.candidates]
    assert max(inflight) / (sum(inflight) / workers) <= 1.25


def test_a_full_worker_spills_to_its_neighbour_always_the_same() -> None:
    pool = pool_of([0] * 8)
    asked, rng = Asked("m", key="k"), random.Random(1)
    policy = Policies(OwnBindings()).named("consistent_hashing")
    home = policy.choose(asked, pool, rng)
    full = pool.candidates[home]
    assert isinstance(full, WorkerLoad)
    full.hear(50, 0)
    neighbours = {policy.choose(asked, pool, rng) for _ in range(20)}
    assert len(neighbours) == 1
    assert home not in neighbours
    full.hear(9, 0)
    assert policy.choose(asked, pool, rng) == home


@given(
    loads=st.lists(st.integers(0, 200), min_size=1, max_size=12),
    weights=st.lists(st.floats(0.05, 20), min_size=12, max_size=12),
    factor=st.floats(1.05, 3),
    key=st.binary(min_size=8, max_size=8),
)
def test_there_is_always_somebody(
    loads: list[int], weights: list[float], factor: float, key: bytes
) -> None:
    some = [load(f"w{at}", one, weight=weights[at]) for at, one in enumerate(loads)]
    pool = Pool(sorted(some, key=lambda one: one.worker))
    chosen = pool.nearest_free(key, load_factor=factor, floor=10)
    assert 0 <= chosen < len(loads)


def test_the_key_is_the_clients_else_the_callers_else_the_address_else_chance() -> None:
    pool, rng = pool_of([0] * 16), random.Random(3)
    policy = Policies(OwnBindings()).named("consistent_hashing")

    def of(key: str = "", caller: str = "", client: str = "") -> set[int]:
        asked = Asked("m", key=key, caller=caller, client=client)
        return {policy.choose(asked, pool, rng) for _ in range(30)}

    keyed = of(key="k", caller="c", client="10.0.0.1")
    assert keyed == of(key="k")
    assert of(caller="c", client="10.0.0.1") == of(caller="c", client="10.0.0.2")
    assert len(of(client="10.0.0.1")) == 1
    assert len(of()) > 5
    # What one client chose as a key is not what another one is called by.
    spread = [of(key=f"x{at}") == of(caller=f"x{at}") for at in range(40)]
    assert not all(spread)


def test_the_load_factor_is_the_operators() -> None:
    pool = pool_of([40, 20, 20, 20])
    asked = Asked("m", key=next(f"k{at}" for at in range(99) if first(pool, f"k{at}") == 0))
    rng = random.Random(1)
    loose = Policies(OwnBindings(), PolicyOptions(load_factor=2.0)).named("consistent_hashing")
    tight = Policies(OwnBindings(), PolicyOptions(load_factor=1.25)).named("consistent_hashing")
    assert loose.choose(asked, pool, rng) == 0
    assert tight.choose(asked, pool, rng) != 0


def first(pool: Pool, key: str) -> int:
    return pool.nearest(key_digest(key, model="m"))
