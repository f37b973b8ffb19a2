"""Limits in random weather over real rights: a slice of seeds, every load, every kind of window and mode."""

from collections.abc import Iterable

import pytest

from smg_chaos.simulate.batch import Task, run_task
from smg_chaos.simulate.plans.rights_plans import random_limits_plan
from smg_mesh.escrow.permits.permit_loans import Borrowed
from support.tools.long_ranges import first_and_long

SEEDS = 5


@pytest.mark.parametrize("first", first_and_long(range(0, 4 * SEEDS, SEEDS), now=2))
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


def test_two_foundings_with_names_in_common_do_not_wait_for_each_other() -> None:
    assert _broken("limits", (31102,)) == []


@pytest.mark.parametrize("first", first_and_long(range(0, 20, 10), now=1))
def test_no_more_are_open_at_a_time_than_may_be_in_any_weather(first: int) -> None:
    assert _broken("limit-places", range(first, first + 10)) == []


def test_places_move_to_the_node_that_is_asked_for_them() -> None:
    task = Task(seed=1, nodes=5, profile="lan", scenario="limit-permits")
    outcome = run_task(task)
    unused = outcome.figures["places_unused"]
    assert outcome.broken == ()
    assert sum(unused) / len(unused) <= 0.1


def test_a_borrower_that_takes_what_is_old_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(one: Borrowed, number: int, level: int) -> None:
        one.number, one.level = number, level

    monkeypatch.setattr(Borrowed, "take", take)
    assert any(
        "there is room for" in broken for broken in _broken("limit-places", (3, 6, 8, 20, 35))
    )


def _broken(scenario: str, seeds: Iterable[int]) -> list[str]:
    tasks = [Task(seed=seed, nodes=5, profile="lan", scenario=scenario) for seed in seeds]
    return [f"{task.seed}: {broken}" for task in tasks for broken in run_task(task).broken]


def test_weather_is_drawn_by_seed_and_knows_every_load_and_fault() -> None:
    plans = [random_limits_plan(seed, 5) for seed in range(300)]
    assert plans[7] == random_limits_plan(7, 5)
    kinds = {type(fault).__name__ for plan in plans for fault in plan.faults}
    assert kinds >= {"Crash", "Restart", "Pause", "Slow", "ClockJump", "Storm", "Join", "Leave"}
    assert kinds >= {"ChangeLimit", "KillOwner", "PauseOwner", "RestartAll"}
    limits = [limit for plan in plans if plan.rights is not None for limit in plan.rights.limits]
    assert {limit.mode for limit in limits} == {"strict", "balanced", "available"}
    assert {limit.window_ms for limit in limits} >= {0, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000}
    assert {plan.nodes for plan in plans} == {3, 4, 5}
