"""Random writes in random weather over real replicas: a slice of seeds per test, every temper."""

import pytest

from smg_chaos.simulate.batch import Task, run_task
from support.tools.long_ranges import first_and_long

SEEDS = 12


@pytest.mark.parametrize("first", first_and_long(range(0, 12 * SEEDS, SEEDS), now=2))
def test_a_small_cluster_loses_nothing_and_agrees(first: int) -> None:
    survive(first, nodes=6)


@pytest.mark.parametrize("first", first_and_long(range(10_000, 10_000 + 3 * SEEDS, SEEDS), now=1))
def test_up_to_twenty_nodes_lose_nothing_and_agree(first: int) -> None:
    survive(first, nodes=20)


def survive(first: int, *, nodes: int) -> None:
    tasks = [
        Task(seed=seed, nodes=nodes, profile="lan", scenario="state-weather")
        for seed in range(first, first + SEEDS)
    ]
    outcomes = [(task, run_task(task)) for task in tasks]
    broken = [
        f"smg-chaos simulate --scenario state-weather --seed {task.seed} --nodes {task.nodes}: "
        f"{outcome.broken[0]}"
        for task, outcome in outcomes
        if outcome.broken
    ]
    assert not broken, "\n".join(broken)
    late = [
        (task.seed, outcome.figures["calm_s"])
        for task, outcome in outcomes
        if max(outcome.figures["calm_s"]) > 2.0
    ]
    assert not late
