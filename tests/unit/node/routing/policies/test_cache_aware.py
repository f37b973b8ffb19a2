"""Where a prompt goes that is cached somewhere, everywhere, or nowhere; and what moves it elsewhere."""

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from smg_node.core.journey import RATED_MAX, Ratings
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.costs import COMPUTED, costs
from smg_node.routing.policies.cache_aware import COLD_MARGIN_S, COLD_MARGIN_SHARE
from smg_node.routing.policy import Asked, Policy, PolicyOptions
from smg_node.routing.policy_registry import OwnBindings, Policies
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import FakeBeginning, pool_of, press, slow_down

PROMPT = list(range(4600))
NOW_S = 100.0


def policy() -> Policy:
    return Policies(OwnBindings()).named("cache_aware")


def workers(count: int) -> tuple[Pool, list[WorkerLoad]]:
    loads = [WorkerLoad(f"w{at:02}", sampled_s=NOW_S) for at in range(count)]
    return Pool(loads), loads


def asked(
    known: Mapping[str, float] | None = None,
    *,
    ids: list[int] = PROMPT,
    block: bytes = b"01234567",
    now_s: float = NOW_S,
    rated: Ratings | None = None,
) -> Asked:
    return Asked(
        "m", ids=ids, now_s=now_s, beginning=FakeBeginning(known or {}, block), rated=rated
    )


def counted(pool: Pool, wish: Asked, times: int = 400, seed: int = 1) -> Counter[int]:
    """Return how often each is chosen by a policy that never chose before."""
    rng = random.Random(seed)
    return Counter(policy().choose(wish, pool, rng) for _ in range(times))


def test_a_prompt_goes_where_it_is_cached() -> None:
    pool, _ = workers(8)
    assert counted(pool, asked({"w05": 4000.0})) == {5: 400}


def test_of_two_that_have_it_the_longer_match_counts_unless_it_makes_no_odds() -> None:
    pool, loads = workers(4)
    assert counted(pool, asked({"w01": 4000.0, "w02": 2000.0})) == {1: 400}
    near = counted(pool, asked({"w01": 4000.0, "w02": 3990.0}))
    assert set(near) == {1, 2}
    # The busier one of two that are about as good is drawn less often.
    loads[1].hear(1, 0)
    busier = counted(pool, asked({"w01": 4000.0, "w02": 4000.0}, block=b""))
    assert busier[1] < busier[2]


def test_a_cached_prompt_waits_as_long_as_computing_it_anew_takes_and_no_longer() -> None:
    pool, loads = workers(2)
    wish = asked({"w00": 4000.0})
    loads[0].begin(3000)
    assert counted(pool, wish) == {0: 400}
    loads[0].begin(3000)
    assert counted(pool, wish) == {1: 400}


def test_a_full_memory_moves_a_prompt_away_from_its_cache() -> None:
    pool, loads = workers(2)
    press(loads[0], 0.7)
    assert counted(pool, asked({"w00": 4000.0})) == {1: 400}


def test_a_slow_worker_gets_what_it_need_not_compute() -> None:
    pool, loads = workers(2)
    slow_down(loads[0], 1000.0)
    assert counted(pool, asked()) == {1: 400}
    assert counted(pool, asked({"w00": 4600.0})) == {0: 400}


def test_a_cold_prompt_goes_to_the_owner_of_its_first_block_from_every_node() -> None:
    pool, _ = workers(16)
    for at in range(20):
        block = random.Random(at).randbytes(8)
        homes = {
            policy().choose(asked(block=block), pool, random.Random(seed)) for seed in range(8)
        }
        assert homes == {pool.nearest(block)}


@pytest.mark.parametrize(
    ("tokens", "margin_s"),
    [(640, COLD_MARGIN_S), (4600, COLD_MARGIN_SHARE * COMPUTED * 4600 / 8000)],
)
def test_the_owner_of_a_cold_prompt_is_passed_over_when_it_is_50_ms_or_a_quarter_worse(
    tokens: int, margin_s: float
) -> None:
    pool, loads = workers(8)
    home, cold = pool.nearest(b"01234567"), asked(ids=PROMPT[:tokens])
    press(loads[home], margin_s - 0.001)
    assert counted(pool, cold) == {home: 400}
    press(loads[home], margin_s + 0.001)
    assert home not in counted(pool, cold)


def test_an_owner_that_was_measured_a_little_slower_keeps_its_cold_prompts() -> None:
    pool, loads = workers(8)
    home = pool.nearest(b"01234567")
    slow_down(loads[home], 0.85 * 8000)
    assert counted(pool, asked()) == {home: 400}


def test_a_prompt_shorter_than_a_block_has_no_owner() -> None:
    pool, _ = workers(8)
    assert len(counted(pool, asked(ids=[1, 2, 3], block=b""))) == 8


def test_half_a_block_is_no_match() -> None:
    pool, _ = workers(8)
    home = pool.nearest(b"01234567")
    other = (home + 1) % 8
    assert counted(pool, asked({f"w{other:02}": 63.0})) == {home: 400}
    assert counted(pool, asked({f"w{other:02}": 640.0})) == {other: 400}


def test_without_an_index_prompts_that_begin_alike_still_share_an_owner() -> None:
    pool, _ = workers(16)
    alike = [Asked("m", ids=[*range(64), *range(at, at + 200)], now_s=NOW_S) for at in range(9)]
    texts = [Asked("m", text="x" * 1024 + str(at), now_s=NOW_S) for at in range(9)]
    for wishes in (alike, texts):
        homes = {policy().choose(wish, pool, random.Random(1)) for wish in wishes}
        assert len(homes) == 1


def test_a_worker_that_begins_empty_gets_a_quarter_of_the_cold_prompts() -> None:
    pool, loads = workers(8)
    home = pool.nearest(b"01234567")
    fresh = (home + 1) % 8
    loads[fresh].fresh_until_s = NOW_S + 10
    pool = Pool(loads)
    chosen = counted(pool, asked(), times=4000)
    assert set(chosen) == {home, fresh}
    assert 0.21 < chosen[fresh] / 4000 < 0.29
    # Once it has filled up, or while it is much worse, it gets no more than others do.
    press(loads[fresh], 0.2)
    assert fresh not in counted(pool, asked())
    press(loads[fresh], 0.0)
    loads[fresh].settled()
    assert fresh not in counted(pool, asked())


def test_where_most_are_new_nobody_is_behind() -> None:
    pool, loads = workers(4)
    for one in loads:
        one.fresh_until_s = NOW_S + 10
    pool = Pool(loads)
    assert counted(pool, asked()) == {pool.nearest(b"01234567"): 400}


def test_the_older_the_samples_the_more_count_as_equal_where_nothing_is_cached() -> None:
    pool, loads = workers(2)
    press(loads[0], 0.5)
    press(loads[1], 0.57)
    cold = asked(block=b"")
    assert counted(pool, cold) == {0: 400}
    assert set(counted(pool, asked(block=b"", now_s=NOW_S + 2))) == {0, 1}
    press(loads[1], 0.5 + 0.25 * (0.5 + COMPUTED * 4600 / 8000) + 0.01)
    assert counted(pool, asked(block=b"", now_s=NOW_S + 1000)) == {0: 400}
    # Who has a cache to go to does not herd, and need not be scattered.
    known = {"w00": 4600.0, "w01": 4600.0}
    press(loads[1], 0.57)
    assert counted(pool, asked(known, now_s=NOW_S + 1000)) == {0: 400}


def test_one_candidate_is_the_choice() -> None:
    pool, _ = workers(1)
    assert counted(pool, asked()) == {0: 400}


# ── Bursts ───────────────────────────────────────────────────────────────────


def test_a_worker_that_looks_best_gets_no_more_than_its_share_twice_over_until_it_speaks() -> None:
    pool, loads = workers(8)
    for one in loads[1:]:
        press(one, 0.3)
    rng, chooser = random.Random(1), policy()
    wishes = [asked(block=random.Random(at).randbytes(8)) for at in range(40)]
    chosen = Counter(chooser.choose(wish, pool, rng) for wish in wishes)
    assert 4 <= chosen[0] <= 2 * 40 / 8 + 1
    loads[0].sampled_s = NOW_S + 1
    assert chooser.choose(asked(), pool, rng) == 0


def test_a_worker_that_never_speaks_is_asked_again_after_two_seconds() -> None:
    pool, loads = workers(8)
    for one in loads[1:]:
        press(one, 0.3)
    rng, chooser = random.Random(1), policy()
    chosen = [chooser.choose(asked(), pool, rng) for _ in range(6)]
    assert chosen[:4] == [0] * 4
    assert 0 not in chosen[4:]
    assert chooser.choose(asked(now_s=NOW_S + 2.5), pool, rng) == 0


def test_what_is_cached_is_no_burst() -> None:
    pool, _ = workers(8)
    rng, chooser = random.Random(1), policy()
    wish = asked({"w03": 4000.0})
    assert {chooser.choose(wish, pool, rng) for _ in range(200)} == {3}


def test_where_all_have_had_enough_the_prompt_still_goes_somewhere() -> None:
    pool, _ = workers(2)
    rng, chooser = random.Random(1), policy()
    chosen = Counter(chooser.choose(asked(), pool, rng) for _ in range(100))
    assert sum(chosen.values()) == 100


# ── Why ──────────────────────────────────────────────────────────────────────


def test_what_candidates_cost_is_left_for_who_asks_best_first_and_bounded() -> None:
    pool, loads = workers(64)
    for at, one in enumerate(loads):
        press(one, at / 10)
    rated = Ratings()
    at = policy().choose(asked({"w07": 4600.0}, rated=rated), pool, random.Random(1))
    assert len(rated) == RATED_MAX
    found = [one.cost_s for one in rated]
    assert found == sorted(found)
    assert pool.candidates[at].worker in [one.worker for one in rated]
    assert {one.worker: one.overlap for one in rated}["w07"] == 4600.0


def test_the_chosen_one_is_among_those_that_are_told_of() -> None:
    pool, loads = workers(32)
    home = pool.nearest(b"01234567")
    press(loads[home], 0.04)
    rated = Ratings()
    at = policy().choose(asked(rated=rated), pool, random.Random(1))
    assert at == home
    assert loads[home].worker in [one.worker for one in rated]


def test_an_overlap_beyond_the_prompt_costs_nothing_less() -> None:
    pool, _ = workers(1)
    assert costs(pool, 100, [200.0]) == [0.0]
    assert costs(pool, 100, [50.0]) == pytest.approx([COMPUTED * 50 / 8000])
    assert costs(pool, 100, pool.nothing) == pytest.approx([COMPUTED * 100 / 8000])


# ── By thresholds ────────────────────────────────────────────────────────────


def threshold(**options: float) -> Policy:
    made = PolicyOptions(cache_mode="threshold", **options)  # type: ignore[arg-type]  # they are numbers, all of them
    return Policies(OwnBindings(), made).named("cache_aware")


@pytest.mark.parametrize(
    ("loads", "known", "expected"),
    [
        ([9, 0, 5], {"w00": 1500.0}, 0),
        ([9, 0, 5], {"w00": 1300.0}, 1),
        ([9, 0, 5], {"w00": 1500.0, "w02": 1600.0}, 2),
        ([65, 0, 5], {"w00": 4000.0}, 1),
        ([64, 0, 5], {"w00": 4000.0}, 0),
        ([200, 140, 150], {"w00": 4000.0}, 0),
        ([300, 140, 150], {"w00": 4000.0}, 1),
        ([3, 0, 5], {}, 1),
    ],
)
def test_thresholds_are_those_of_other_gateways(
    loads: list[int], known: Mapping[str, float], expected: int
) -> None:
    """A third of 4,600 tokens must match, and open calls may differ by 64 or by a half."""
    assert threshold().choose(asked(known), pool_of(loads), random.Random(1)) == expected


def test_thresholds_without_an_index_balance() -> None:
    wish = Asked("m", ids=PROMPT, rated=Ratings())
    assert threshold().choose(wish, pool_of([3, 1, 2]), random.Random(1)) == 1
    assert wish.rated
    assert (
        threshold(cache_threshold=0.9).choose(
            asked({"w00": 4000.0}), pool_of([3, 1, 2]), random.Random(1)
        )
        == 1
    )
