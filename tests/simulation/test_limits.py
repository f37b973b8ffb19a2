"""Limits in random weather over real rights: a slice of seeds, every load, every kind of window and mode."""

import pytest

from smg_chaos.simulate.batch import Task, run_task
from smg_chaos.simulate.rights.plans import random_limits_plan

SEEDS = 5


@pytest.mark.parametrize("first", range(0, 4 * SEEDS, SEEDS))
def test_limits_hold_in_any_weather_and_are_used_again_after_it(first: int) -> None:
    tasks = [
        Task(seed=seed, nodes=5, profile="lan", scenario="limits")
        for seed in range(first, first + SEEDS)
    ]
    outcomes = [run_task(task) for task in tasks]
    broken = [
        f"smg-chaos simulate --scenario limits --seed {outcome.seed}: {outcome.broken[0]}"
        for outcome in outcomes
        if outcome.broken
    ]
    assert not broken, "\n".join(broken)


def test_weather_is_drawn_by_seed_and_knows_every_load_and_fault() -> None:
    plans = [random_limits_plan(seed, 5) for seed in range(300)]
    assert plans[7] == random_limits_plan(7, 5)
    kinds = {type(fault).__name__ for plan in plans for fault in plan.faults}
    assert kinds >= {"Crash", "Restart", "Pause", "Slow", "ClockJump", "Storm", "Join", "Leave"}
    assert kinds >= {"ChangeLimit", "KillOwner", "PauseOwner", "RestartAll"}
    limits = [limit for plan in plans if plan.rights is not None for limit in plan.rights.limits]
    assert {limit.mode for limit in limits} == {"strict", "balanced", "available"}
    assert {limit.window_ms for limit in limits} >= {1_000, 2_000, 5_000, 10_000, 20_000, 60_000}
    assert {plan.nodes for plan in plans} == {3, 4, 5}
