"""What a worker's numbers become when something begins, is heard, is said by its engine, or grows old."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.fleet.load.load_options import CAPACITY
from smg_node.fleet.load.worker_load import (
    NEVER,
    PREFILL_RATE,
    WorkerLoad,
)
from support.fleet.worker_loads import IDLE, load

# ── Calls ────────────────────────────────────────────────────────────────────


def test_a_worker_without_work_costs_nothing() -> None:
    one = load()
    assert (one.wait_s, one.pressure_s, one.prefill_rate, one.capacity) == (
        0.0,
        0.0,
        PREFILL_RATE,
        CAPACITY,
    )
    assert (one.overloaded, one.full, one.stuck) == (False, False, False)


def test_tokens_wait_until_the_first_token_came_and_never_twice() -> None:
    one = load()
    one.begin(8000)
    assert one.wait_s == pytest.approx(1.0)
    one.begin(4000)
    assert one.wait_s == pytest.approx(1.5)
    one.prefilled(8000)
    assert one.wait_s == pytest.approx(0.5)
    one.end(8000, prefilled=True)
    assert one.wait_s == pytest.approx(0.5)
    one.end(4000)
    assert (one.wait_s, one.tokens, one.inflight) == (0.0, 0, 0)


def test_a_call_is_told_what_is_before_it_unless_it_must_wait_for_a_slot() -> None:
    one = load()
    one.sized(2)
    assert one.begin(100) == 0
    assert one.begin(50) == 100
    assert one.begin(50) == -1


def test_the_first_call_of_this_node_is_noticed_and_no_other() -> None:
    began: list[str] = []
    one = WorkerLoad("w", began=lambda: began.append("began"))
    one.hear(5, 100)
    one.begin(1)
    one.begin(1)
    one.end(1)
    assert began == ["began"]
    one.end(1)
    one.begin(1)
    assert began == ["began", "began"]


def test_what_others_have_open_counts_as_much_as_the_own_and_replaces_what_they_had() -> None:
    one = load()
    one.begin(4000)
    one.hear(3, 12_000)
    assert (one.inflight, one.tokens) == (4, 16_000)
    assert one.wait_s == pytest.approx(2.0)
    one.hear(1, 0)
    assert (one.inflight, one.tokens) == (2, 4000)
    assert one.wait_s == pytest.approx(0.5)


def test_a_worker_with_all_slots_taken_makes_wait_for_the_next_one_to_become_free() -> None:
    one = load()
    one.sized(4)
    for _ in range(3):
        one.begin(0)
    assert one.wait_s == 0
    one.begin(0)
    # One of four must end, each takes ten seconds: as long as nobody knows better.
    assert one.wait_s == pytest.approx(2.5)
    one.begin(0)
    assert one.wait_s == pytest.approx(5.0)
    one.end(0, seconds=2.0)
    assert one.request_s == pytest.approx(2.0)
    assert one.wait_s == pytest.approx(0.5)


def test_busy_slots_cost_in_proportion() -> None:
    one = load(busy_weight_s=0.5)
    one.sized(10)
    one.begin(0)
    assert one.pressure_s == pytest.approx(0.05)
    one.hear(4, 0)
    assert one.pressure_s == pytest.approx(0.25)


@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "first", "end", "hear"]), st.integers(0, 10_000)),
        max_size=60,
    )
)
def test_sums_are_what_is_open_whatever_the_order(steps: list[tuple[str, int]]) -> None:
    one = WorkerLoad("w")
    waiting: list[int] = []
    answering: list[int] = []
    others = (0, 0)
    for what, number in steps:
        if what == "begin":
            one.begin(number)
            waiting.append(number)
        elif what == "first" and waiting:
            one.prefilled(waiting[0])
            answering.append(waiting.pop(0))
        elif what == "end" and answering:
            one.end(answering.pop(), prefilled=True)
        elif what == "end" and waiting:
            one.end(waiting.pop())
        elif what == "hear":
            others = (number % 7, number)
            one.hear(*others)
        assert one.own_inflight == len(waiting) + len(answering)
        assert one.own_tokens == sum(waiting)
        assert (one.inflight, one.tokens) == (
            one.own_inflight + others[0],
            one.own_tokens + others[1],
        )
        assert one.wait_s >= 0


# ── What the engine says ─────────────────────────────────────────────────────


def test_what_an_engine_has_beyond_what_nodes_know_of_is_added_and_worked_off() -> None:
    one = load()
    one.begin(4000)
    one.sample(replace(IDLE, waiting=3, waiting_uncached_tokens=12_000), 100.0)
    assert one.wait_s == pytest.approx(1.5)
    # A call that begins after the sample is seen at once.
    one.begin(4000)
    assert one.wait_s == pytest.approx(2.0)
    one.tick(100.5)
    assert one.wait_s == pytest.approx(1.5)
    one.tick(103.0)
    assert one.wait_s == pytest.approx(1.0)


def test_what_nodes_know_of_is_not_counted_again_when_the_engine_says_it() -> None:
    one = load()
    for _ in range(4):
        one.begin(2000)
    before = (one.wait_s, one.pressure_s)
    one.sized(16)
    one.sample(replace(IDLE, running=1, waiting=3, waiting_uncached_tokens=6000), 5.0)
    assert one.wait_s == pytest.approx(before[0])
    one.sample(IDLE, 6.0)
    assert one.wait_s == pytest.approx(before[0])


def test_waiting_requests_of_an_engine_that_counts_no_tokens_are_taken_for_usual_ones() -> None:
    one = load()
    one.sample(replace(IDLE, waiting=4, waiting_uncached_tokens=None), 1.0)
    assert one.wait_s == pytest.approx(4 * 1024 / 8000)


def test_a_sample_older_than_15_s_is_none() -> None:
    one = load()
    one.sample(replace(IDLE, running=8, waiting=9, kv_usage=0.9), 100.0)
    assert one.overloaded
    assert one.sampled_s == 100.0
    one.tick(114.9)
    assert one.overloaded
    one.tick(115.1)
    assert (one.overloaded, one.wait_s, one.pressure_s) == (False, 0.0, 0.0)
    assert one.sampled_s == NEVER
    assert one.capacity == CAPACITY


def test_a_sample_was_so_when_it_was_taken_not_when_it_came() -> None:
    one = load()
    one.sample(replace(IDLE, age_ms=14_000), 100.0)
    assert one.sampled_s == 86.0
    one.tick(101.5)
    assert one.sampled_s == NEVER


def test_ranks_are_added_up_and_judged_by_their_mean() -> None:
    one = load()
    one.sample(replace(IDLE, rank=0, running=4, waiting=10, kv_usage=0.4), 1.0)
    assert one.overloaded
    one.sample(replace(IDLE, rank=1, running=4, kv_usage=0.2), 1.0)
    # Five wait at each, which is some room again only below five.
    assert (one.overloaded, one.capacity) == (True, 32)
    one.sample(replace(IDLE, rank=1, running=4, kv_usage=0.2), 1.0)
    one.sample(replace(IDLE, rank=0, running=4, waiting=8, kv_usage=0.4), 1.0)
    assert not one.overloaded
    # Two ranks work off twice as much.
    one.sample(replace(IDLE, rank=0, waiting_uncached_tokens=16_000, waiting=1), 2.0)
    assert one.wait_s == pytest.approx(1.0)


def test_the_capacity_is_what_the_engine_says_else_its_card_else_a_guess() -> None:
    one = load()
    one.sized(128)
    assert one.capacity == 128
    one.sample(IDLE, 1.0)
    assert one.capacity == 16
    one.sample(replace(IDLE, running_max=None), 2.0)
    assert one.capacity == 128
    one.sized(None)
    assert one.capacity == CAPACITY


def test_pressure_grows_steeply_with_the_memory_in_use() -> None:
    one = load(pressure_weight_s=0.15, busy_weight_s=0.0)
    found = []
    for usage in (0.0, 0.5, 0.8, 1.0):
        one.sample(replace(IDLE, running=1, kv_usage=usage), 1.0)
        found.append(one.pressure_s)
    assert found[:3] == [0.0, pytest.approx(0.15), pytest.approx(0.6)]
    assert found[3] == pytest.approx(0.15 * 99)


def test_an_idle_engine_that_only_keeps_its_cache_is_under_no_pressure() -> None:
    one = load()
    one.sample(replace(IDLE, kv_usage=0.95), 1.0)
    assert (one.pressure_s, one.overloaded) == (0.0, False)
