"""Batch of histories: runs many seeds in several processes, outcomes in the order of the seeds."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from smg_chaos.simulate.hosts.core_interface import CoreFactory
from smg_chaos.simulate.outcome import Outcome
from smg_chaos.simulate.random_faults import random_plan
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.scenarios.catalogue import SCENARIOS
from smg_chaos.simulate.scenarios.scenario import play
from smg_chaos.simulate.trials.trial import try_plan
from smg_chaos.simulate.world.world import Setting
from smg_mesh.config import ProfileName

_LARGE: Final = 100
"""Members from which on a history's memory is mostly tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One history to be lived. Without a scenario it is random weather."""

    seed: int
    nodes: int
    profile: ProfileName
    scenario: str = ""
    sealed: bool = False
    traced: bool = False


def real_core() -> CoreFactory:
    """Return what makes the cores that real nodes run."""
    from smg_chaos.simulate.real import make_core

    return make_core


def real_replica(scenario: str) -> ReplicaFactory | None:
    """Return what makes the replicas that real nodes run, if there is state in the scenario."""
    found = SCENARIOS.get(scenario)
    if found is None or not found.shares:
        return None
    from smg_chaos.simulate.real import replicas

    return replicas()


def run_task(
    task: Task,
    make_core: CoreFactory | None = None,
    make_replica: ReplicaFactory | None = None,
) -> Outcome:
    """Live through one history."""
    if task.nodes < _LARGE:
        return _run_task(task, make_core, make_replica)
    # Millions of rows that all stay: looking for garbage among them takes longer than the history.
    gc.disable()
    try:
        return _run_task(task, make_core, make_replica)
    finally:
        gc.enable()
        gc.collect()


def _run_task(
    task: Task, make_core: CoreFactory | None, make_replica: ReplicaFactory | None
) -> Outcome:
    make_core = make_core or real_core()
    if not task.scenario:
        plan = random_plan(task.seed, nodes=task.nodes, profile=task.profile, sealed=task.sealed)
        return try_plan(plan, make_core, traced=task.traced)
    setting = Setting(seed=task.seed, profile=task.profile, sealed=task.sealed, traced=task.traced)
    make_replica = make_replica or real_replica(task.scenario)
    return play(SCENARIOS[task.scenario], setting, make_core, make_replica, nodes=task.nodes)[1]


def seeds_of(task: Task, seeds: Sequence[int]) -> list[Task]:
    """Return the same task for every seed."""
    return [replace(task, seed=seed) for seed in seeds]


def run_all(
    tasks: Sequence[Task], *, jobs: int, progress: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Live through all of them, `jobs` at a time; outcomes come in the order of the tasks."""
    outcomes: list[Outcome] = []
    for outcome in _each(tasks, jobs):
        outcomes.append(outcome)
        if progress is not None:
            progress(outcome)
    return outcomes


def _each(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(run_task, tasks)
        return
    chunk = max(1, min(20, len(tasks) // (jobs * 8)))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context) as pool:
        yield from pool.map(run_task, tasks, chunksize=chunk)
