"""Random weather over real cores: a slice of seeds per test, every kind of network and size."""

from dataclasses import replace

import pytest

from smg_chaos.simulate.batch import Task, real_core, run_task
from smg_chaos.simulate.faults import Restart, Storm
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_chaos.simulate.random_faults import random_plan
from smg_chaos.simulate.trials.trial import try_plan
from smg_mesh.config import ProfileName
from support.tools.long_ranges import first_and_long

SEEDS = 12


@pytest.mark.parametrize("first", first_and_long(range(0, 20 * SEEDS, SEEDS), now=6))
def test_a_small_cluster_survives_any_weather_on_a_lan(first: int) -> None:
    survive([Task(seed=seed, nodes=3 + seed % 4, profile="lan") for seed in seeds(first)])


@pytest.mark.parametrize("first", first_and_long(range(1_000, 1_000 + 3 * SEEDS, SEEDS), now=1))
def test_ten_nodes_survive_any_weather(first: int) -> None:
    survive([Task(seed=seed, nodes=10, profile="lan") for seed in seeds(first)])


@pytest.mark.parametrize("profile", ["lan-stable", "wan", "local"])
def test_a_cluster_survives_any_weather_on_other_networks(profile: ProfileName) -> None:
    survive([Task(seed=seed, nodes=5, profile=profile) for seed in seeds(2_000)])


@pytest.mark.parametrize("first", first_and_long(range(3_000, 3_000 + 2 * SEEDS, SEEDS), now=1))
def test_a_sealed_cluster_survives_any_weather(first: int) -> None:
    survive([Task(seed=seed, nodes=4, profile="lan", sealed=True) for seed in seeds(first)])


def test_no_two_lives_share_a_boot_whatever_clock_and_disk_did() -> None:
    # A life whose boot nobody heard of; then one that lost its disk and learns its number from peers
    # who only know the life before. Both would take the next number if it were simply one more.
    alone = Rough(sources=("n3",), targets=("n0", "n1", "n2"), both_ways=True, block=True)
    for seed in range(8):
        faults = (
            Storm(at_ms=8_000, for_ms=30_000, rough=alone),
            Restart(at_ms=20_000, who="n3", clock_back_ms=800_000),
            Restart(at_ms=30_000, who="n3", lost_disk=True),
        )
        plan = replace(random_plan(seed, nodes=4), faults=faults)
        assert try_plan(plan, real_core()).broken == ()


def seeds(first: int) -> range:
    return range(first, first + SEEDS)


def survive(tasks: list[Task]) -> None:
    outcomes = [(task, run_task(task)) for task in tasks]
    broken = [
        f"smg-chaos simulate --seed {task.seed} --nodes {task.nodes} --profile {task.profile}"
        f"{' --sealed' if task.sealed else ''}: {outcome.broken[0]}"
        for task, outcome in outcomes
        if outcome.broken
    ]
    assert not broken, "\n".join(broken)
