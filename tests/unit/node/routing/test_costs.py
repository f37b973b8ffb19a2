"""What a prompt costs where, who is about as good as the best, and what others do meanwhile."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.routing.cold_work_limit import AT_LEAST, Burst
from smg_node.routing.costs import about, prompt_tokens, uncached
from smg_node.routing.peer_load_estimate import STALE_S, PeerLoadEstimate, drawn, level, poured
from smg_node.routing.policy import Asked
from smg_node.routing.pool import Pool
from support.fleet.worker_pools import FakeBeginning, pool_of

costs_of = st.lists(st.floats(0, 100) | st.sampled_from([0.1, 0.3, 1e9]), min_size=1, max_size=20)


def test_a_prompt_is_as_long_as_its_ids_else_a_quarter_of_its_characters() -> None:
    assert prompt_tokens(Asked("m", ids=[1, 2, 3], text="x" * 400)) == 3
    assert prompt_tokens(Asked("m", text="x" * 400)) == 100
    assert prompt_tokens(Asked("m")) == 0


def test_what_is_cached_need_not_be_computed() -> None:
    pool = pool_of([0, 0])
    assert uncached(Asked("m"), pool, 0, 100) == 100
    wish = Asked("m", beginning=FakeBeginning({"w01": 64.0}))
    assert [uncached(wish, pool, at, 100) for at in (0, 1)] == [100, 36]
    assert uncached(wish, pool, 1, 50) == 0


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [(0.0, 1.05), (1.0, 1.15), (2.0, 1.25), (100.0, 1.25), (float("inf"), 1.25), (-5.0, 1.05)],
)
def test_the_older_what_an_engine_said_the_more_is_about_as_good(
    age_s: float, expected: float
) -> None:
    assert about(1.0, age_s) == pytest.approx(expected)
    assert about(0.0, age_s) == 0.005


works_s = st.floats(1e-9, 1000) | st.just(1e-300)


@given(costs_of, works_s)
def test_the_level_is_where_the_poured_work_fills_up_to(found: list[float], work_s: float) -> None:
    top, below = level(found, work_s)
    assert sum(max(0.0, top - cost) for cost in found) == pytest.approx(work_s, rel=1e-6, abs=1e-5)
    assert below == [cost for cost in found if cost < top]


@given(costs_of, works_s, st.floats(-1, 2e9) | st.just(float("inf")))
def test_a_guess_changes_nothing_about_the_level(
    found: list[float], work_s: float, near: float
) -> None:
    assert level(found, work_s, near)[0] == pytest.approx(level(found, work_s)[0], rel=1e-12)


@given(costs_of, st.floats(0, 10), st.integers(0, 2**32))
def test_who_brings_those_below_draws_the_same(found: list[float], more: float, seed: int) -> None:
    top = min(found) + more
    below = [cost for cost in found if cost < top]
    both = [poured(found, top, random.Random(seed), given) for given in (None, below)]
    assert both[0] == both[1]


@given(costs_of, st.floats(0, 10), st.integers(0, 2**32))
def test_only_who_lies_below_the_level_is_drawn_else_the_lowest(
    found: list[float], more: float, seed: int
) -> None:
    top = min(found) + more
    at = poured(found, top, random.Random(seed))
    assert found[at] < top or found[at] == min(found)


def test_the_further_below_the_level_the_more_often() -> None:
    rng = random.Random(1)
    counts = Counter(poured([0.0, 0.5, 2.0], 1.0, rng) for _ in range(3000))
    assert counts[2] == 0
    assert counts[0] / counts[1] == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize("many", [1, 4, 40])
def test_a_blind_draw_is_as_good_as_one_that_looks_at_all(many: int) -> None:
    world, rng = random.Random(many), random.Random(2)
    found = [0.01 * world.random() for _ in range(many)] + [5.0] * 12
    top = max(found[:many]) + 0.002
    weights = [max(0.0, top - cost) for cost in found]
    counts = Counter(drawn(found, min(found), top, rng) for _ in range(20_000))
    for at, weight in enumerate(weights):
        expected = 20_000 * weight / sum(weights)
        assert counts[at] == pytest.approx(expected, abs=4 * expected**0.5)


def test_a_blind_draw_finds_the_lowest_where_nobody_lies_below() -> None:
    for seed in range(50):
        assert drawn([0.5, 0.2, 0.9], 0.2, 0.2, random.Random(seed)) == 1


def half_of_it_ours() -> Pool:
    loads = [WorkerLoad(f"w{at}") for at in range(4)]
    for one in loads:
        one.begin(0)
        one.hear(3, 0)
    return Pool(loads)


def test_a_node_alone_has_nothing_unseen() -> None:
    loads = [WorkerLoad("a"), WorkerLoad("b")]
    loads[0].begin(100)
    unseen = PeerLoadEstimate()
    for at in range(100):
        unseen.placed(1.0, at / 10)
    assert unseen.seconds(Pool(loads), 10.0) == 0


def test_others_are_expected_to_do_what_this_node_does_by_what_they_have_open() -> None:
    unseen = PeerLoadEstimate()
    for at in range(1000):
        unseen.placed(0.1, at / 10)
    # One second of work a second, and the others have three times as much open.
    assert unseen.seconds(half_of_it_ours(), 100.0) == pytest.approx(3 * STALE_S, rel=0.1)


def test_who_has_nothing_open_expects_nothing_of_others() -> None:
    unseen = PeerLoadEstimate()
    unseen.placed(1.0, 0.0)
    assert unseen.seconds(pool_of([5, 5]), 0.0) == 0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 10)), max_size=30))
def test_unseen_work_is_never_negative_nor_without_bound(steps: list[tuple[float, float]]) -> None:
    unseen, pool, now_s = PeerLoadEstimate(), half_of_it_ours(), 0.0
    for cost_s, later_s in steps:
        now_s += later_s
        unseen.placed(cost_s, now_s)
        assert 0 <= unseen.seconds(pool, now_s) <= 64 * sum(cost for cost, _ in steps)


# ── Bursts ───────────────────────────────────────────────────────────────────


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1), st.booleans()), min_size=1, max_size=200)
)
def test_asking_and_noting_in_one_look_is_the_same(steps: list[tuple[int, float, bool]]) -> None:
    loads = [WorkerLoad(f"w{at}") for at in range(4)]
    apart, at_once, now_s = Burst(), Burst(), 0.0
    for at, more_s, speaks in steps:
        one, now_s = loads[at], now_s + more_s
        if speaks:
            one.sampled_s = now_s
        takes = apart.takes(one, 4, now_s)
        if takes:
            apart.sent(one, now_s)
        assert at_once.send(one, 4, now_s) is takes


def test_a_burst_is_four_in_any_case_then_twice_the_fair_share() -> None:
    burst, one, others = Burst(), WorkerLoad("a"), [WorkerLoad(f"o{at}") for at in range(7)]
    for _ in range(AT_LEAST):
        assert burst.takes(one, 8, 0.0)
        burst.sent(one, 0.0)
    assert not burst.takes(one, 8, 0.0)
    for other in others * 2:
        burst.sent(other, 0.0)
    # 18 in all since, a share of 2.25.
    assert burst.takes(one, 8, 0.0)
    burst.sent(one, 0.0)
    assert not burst.takes(one, 8, 0.0)


def test_a_burst_is_over_when_the_engine_speaks_or_after_two_seconds() -> None:
    burst, one = Burst(), WorkerLoad("a")
    for _ in range(AT_LEAST):
        burst.sent(one, 10.0)
    assert not burst.takes(one, 8, 11.0)
    assert burst.takes(one, 8, 12.0)
    one.sampled_s = 11.0
    assert burst.takes(one, 8, 11.0)
    burst.sent(one, 11.0)
    for _ in range(AT_LEAST - 1):
        assert burst.takes(one, 8, 11.0)
        burst.sent(one, 11.0)
    assert not burst.takes(one, 8, 11.0)


def test_what_is_remembered_of_workers_is_bounded() -> None:
    burst = Burst()
    for at in range(20_000):
        burst.sent(WorkerLoad(f"w{at}"), 0.0)
    assert len(burst._sent) <= 8192
