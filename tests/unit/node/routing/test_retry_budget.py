"""Retries are rationed per model, and pauses grow, with chance in all of them."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.routing.retry_budget import RetryBudget, RetryBudgets, RetryOptions, backoff_s


def test_a_quiet_model_may_retry_as_often_as_the_floor_says() -> None:
    budget = RetryBudget(share=0.2, floor_per_s=3, window_s=10)
    assert [budget.take(0.0) for _ in range(40)] == [True] * 30 + [False] * 10
    assert (budget.taken, budget.refused) == (30, 10)


def test_a_fifth_of_the_requests_may_be_retried_on_top() -> None:
    budget = RetryBudget()
    for _ in range(1000):
        budget.asked(0.0)
    assert sum(budget.take(0.0) for _ in range(1000)) == 230


def test_what_was_used_comes_back_when_its_time_is_over() -> None:
    budget = RetryBudget(share=0.0, floor_per_s=1, window_s=10)
    assert all(budget.take(0.0) for _ in range(10))
    assert not budget.take(9.9)
    assert budget.take(10.0)


def test_without_share_and_floor_nothing_is_tried_again() -> None:
    assert not RetryBudget(share=0.0, floor_per_s=0.0).take(1.0)


@given(steps=st.lists(st.tuples(st.booleans(), st.floats(0, 3)), max_size=300))
def test_no_order_of_requests_and_retries_gets_more_than_the_budget(
    steps: list[tuple[bool, float]],
) -> None:
    budget, now_s = RetryBudget(share=0.5, floor_per_s=0.4, window_s=10), 0.0
    asked: list[float] = []
    taken: list[float] = []
    for retry, pause_s in steps:
        now_s += pause_s
        if not retry:
            budget.asked(now_s)
            asked.append(now_s)
        elif budget.take(now_s):
            taken.append(now_s)
        # The window speaks of 9 to 10 s.
        recent = sum(at_s > now_s - 9 for at_s in taken)
        assert recent <= 0.5 * sum(at_s > now_s - 19 for at_s in asked) + 4
    assert budget.taken == len(taken)
    assert budget.taken + budget.refused == sum(retry for retry, _ in steps)


def test_models_have_budgets_of_their_own_and_those_nobody_serves_are_dropped() -> None:
    served = ["a", "b"]
    budgets = RetryBudgets(
        RetryOptions(share=0, floor_per_s=0.1), known=lambda name: name in served
    )
    assert budgets.of("a").take(0.0)
    assert not budgets.of("a").take(0.0)
    assert budgets.of("b").take(0.0)
    assert budgets.counts() == {"a": (1, 1), "b": (1, 0)}
    served[:] = ["a", "c"]
    assert budgets.of("c").taken == 0
    assert budgets.counts().keys() == {"a", "c"}
    assert budgets.of("a").refused == 1


def test_other_numbers_count_from_now_on_for_budgets_that_exist() -> None:
    options = RetryOptions(share=0, floor_per_s=0)
    budgets = RetryBudgets(options)
    budget = budgets.of("a")
    assert not budget.take(0.0)
    budgets.retune(replace(options, floor_per_s=1))
    assert budget.take(0.0)
    assert budgets.of("new").take(0.0)


@given(attempt=st.integers(1, 10_000), seed=st.integers(0, 2**32))
def test_a_pause_lies_between_zero_and_its_bound(attempt: int, seed: int) -> None:
    pause_s = backoff_s(attempt, random.Random(seed))
    assert 0 <= pause_s <= min(2.0, 0.05 * 2.0 ** min(attempt - 1, 20))


def test_pauses_are_spread_over_their_whole_range() -> None:
    rng = random.Random(1)
    pauses_s = sorted(backoff_s(3, rng) for _ in range(1000))
    assert pauses_s[0] < 0.01
    assert pauses_s[-1] > 0.19
    assert pauses_s[500] == pytest.approx(0.1, abs=0.02)


def test_a_worker_that_names_a_time_is_not_called_before_it() -> None:
    rng = random.Random(1)
    pauses_s = [backoff_s(1, rng, retry_after_s=1.5) for _ in range(100)]
    assert 1.5 <= min(pauses_s) < max(pauses_s) <= 1.55
    assert backoff_s(1, rng, retry_after_s=-3.0) <= 0.05
