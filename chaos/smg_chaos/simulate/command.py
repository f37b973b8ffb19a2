"""Command `smg-chaos simulate`: runs one history, many, a scenario or the acceptance table."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from smg_chaos.simulate.batch import Task, real_core, real_replica, run_all, seeds_of
from smg_chaos.simulate.history_text import ending, story
from smg_chaos.simulate.outcome import Outcome, gathered
from smg_chaos.simulate.random_faults import Plan, random_plan
from smg_chaos.simulate.scenarios.catalogue import ACCEPTANCE, SCENARIOS, Row, targets_of
from smg_chaos.simulate.scenarios.scenario import Scenario, play
from smg_chaos.simulate.shorten import shortened
from smg_chaos.simulate.table import (
    acceptance_header,
    acceptance_lines,
    cost_line,
    figures_table,
    target_line,
)
from smg_chaos.simulate.trials.trial import live, try_plan
from smg_chaos.simulate.world.world import Setting, World
from smg_mesh.config import ProfileName

_SEEDS: Final = 200
_NODES: Final = 10
_SHORTENED_MAX: Final = 3
"""Failing seeds whose list of faults is shortened; each takes dozens of histories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of the command."""

    seed: int | None = None
    seeds: int | None = None
    first: int = 0
    scenario: str | None = None
    nodes: int | None = None
    profile: ProfileName | None = None
    sealed: bool = False
    share: float = 1.0
    jobs: int | None = None
    story: bool = False
    cost: bool = False
    json: Path | None = None

    @property
    def processes(self) -> int:
        """How many processes to use."""
        return self.jobs or len(os.sched_getaffinity(0))


def run(asked: Asked) -> int:
    """Run the command; return its exit code."""
    if asked.scenario not in (None, "acceptance", *SCENARIOS):
        print(f"--scenario: no scenario {asked.scenario!r}; see --help", file=sys.stderr)
        return 2
    if asked.scenario == "acceptance":
        return _acceptance(asked)
    if asked.seed is not None:
        return _one(asked)
    return _scenario(asked) if asked.scenario else _weather(asked)


# ── One history ──────────────────────────────────────────────────────────────


def _one(asked: Asked) -> int:
    world, outcome = _lived(asked)
    if asked.story:
        for line in story(world):
            print(line)
        print()
    for line in ending(world):
        print(line)
    for name, values in outcome.figures.items():
        print(f"{name}: {' '.join(f'{value:.3f}' for value in values)}")
    print(f"fingerprint {outcome.fingerprint}")
    if asked.cost:
        print(cost_line([outcome]))
    plan = _plan(asked, outcome.seed)
    if outcome.broken and plan is not None:
        _print_shortened(asked, plan)
    _write(asked, {"outcomes": [asdict(outcome)]})
    return 1 if outcome.broken else 0


def _lived(asked: Asked) -> tuple[World, Outcome]:
    assert asked.seed is not None
    plan = _plan(asked, asked.seed)
    make_replica = real_replica(asked.scenario or "")
    if plan is not None:
        return live(plan, real_core(), make_replica, traced=True)
    assert asked.scenario is not None
    scenario = SCENARIOS[asked.scenario]
    setting = Setting(
        seed=asked.seed,
        profile=asked.profile or scenario.profile,
        sealed=asked.sealed,
        traced=True,
    )
    nodes = asked.nodes or scenario.nodes
    return play(scenario, setting, real_core(), make_replica, nodes=nodes)


def _plan(asked: Asked, seed: int) -> Plan | None:
    """Return the list of what befalls whom, None for a scenario that is no such list."""
    if asked.scenario is None:
        nodes, profile = asked.nodes or _NODES, asked.profile or "lan"
        return random_plan(seed, nodes=nodes, profile=profile, sealed=asked.sealed)
    scenario = SCENARIOS[asked.scenario]
    if scenario.plan is None:
        return None
    return scenario.plan(seed, asked.nodes or scenario.nodes, asked.profile or scenario.profile)


def _print_shortened(asked: Asked, plan: Plan) -> None:
    make_core, make_replica = real_core(), real_replica(asked.scenario or "")
    shortest, outcome, tries = shortened(
        plan, lambda fewer: try_plan(fewer, make_core, make_replica)
    )
    print(f"seed {plan.seed}: {len(shortest.faults)} of {len(plan.faults)} faults suffice", end="")
    print(f" ({tries} histories tried):")
    for fault in shortest.faults:
        print(f"  {fault}")
    for promise in outcome.broken[:5]:
        print(f"  broken {promise}")


# ── Batches ──────────────────────────────────────────────────────────────────


def _weather(asked: Asked) -> int:
    task = Task(
        seed=0,
        nodes=asked.nodes or _NODES,
        profile=asked.profile or "lan",
        sealed=asked.sealed,
    )
    count = asked.seeds or _SEEDS
    outcomes = _batch(asked, "random weather", task, count)
    print(f"random weather: {count} seeds of {task.nodes} nodes, profile {task.profile}")
    for line in figures_table(gathered(outcomes)):
        print(line)
    failed = [outcome for outcome in outcomes if outcome.broken]
    print(f"broken promises: {len(failed)} of {count} seeds")
    _shorten(asked, failed)
    _finish(asked, outcomes)
    return 1 if failed else 0


def _shorten(asked: Asked, failed: Sequence[Outcome]) -> None:
    """Print of the first failed histories what suffices to fail, and how to see it again."""
    for outcome in failed[:_SHORTENED_MAX]:
        plan = _plan(asked, outcome.seed)
        assert plan is not None
        _print_shortened(asked, plan)
        print(f"  again: smg-chaos simulate --seed {outcome.seed}{_again(asked)}")
    if len(failed) > _SHORTENED_MAX:
        print(f"also: {' '.join(str(outcome.seed) for outcome in failed[_SHORTENED_MAX:])}")


def _scenario(asked: Asked) -> int:
    assert asked.scenario is not None
    scenario = SCENARIOS[asked.scenario]
    task = _task(scenario, asked)
    count = asked.seeds or scenario.seeds
    outcomes = _batch(asked, scenario.name, task, count)
    print(f"{scenario.name}: {scenario.about}; {count} seeds of {task.nodes} nodes, {task.profile}")
    figures = gathered(outcomes)
    for line in figures_table(figures):
        print(line)
    targets = targets_of(scenario, nodes=task.nodes, profile=task.profile)
    for target in targets:
        print(target_line(target, figures))
    failed = _print_broken(asked, outcomes)
    if scenario.plan is not None:
        _shorten(asked, [outcome for outcome in outcomes if outcome.broken])
    _finish(asked, outcomes)
    missed = [target for target in targets if not target.met(figures)]
    return 1 if failed or missed else 0


def _acceptance(asked: Asked) -> int:
    print(acceptance_header())
    written: list[dict[str, Any]] = []
    bad = False
    everything: list[Outcome] = []
    for row in ACCEPTANCE:
        outcomes = _row(asked, row)
        name = row.scenario.name
        for line in acceptance_lines(name, row.nodes, outcomes, row.targets):
            print(line, flush=True)
        failed = _print_broken(asked, outcomes)
        figures = gathered(outcomes)
        met = all(target.met(figures) for target in row.targets)
        bad = bad or failed or not met
        everything += outcomes
        written.append(
            {"scenario": name, "nodes": row.nodes, "met": met, "figures": figures}
            | {"seeds": len(outcomes), "targets": [asdict(target) for target in row.targets]}
        )
    if asked.cost:
        print(cost_line(everything))
    _write(asked, {"rows": written})
    return 1 if bad else 0


def _row(asked: Asked, row: Row) -> list[Outcome]:
    seeds = asked.seeds or max(min(2, row.seeds), round(row.seeds * asked.share))
    task = Task(
        seed=0,
        nodes=row.nodes,
        profile=asked.profile or row.scenario.profile,
        scenario=row.scenario.name,
        sealed=asked.sealed,
    )
    return _batch(asked, f"{row.scenario.name} n={row.nodes}", task, seeds)


def _task(scenario: Scenario, asked: Asked) -> Task:
    return Task(
        seed=0,
        nodes=asked.nodes or scenario.nodes,
        profile=asked.profile or scenario.profile,
        scenario=scenario.name,
        sealed=asked.sealed,
    )


def _batch(asked: Asked, title: str, task: Task, count: int) -> list[Outcome]:
    tasks = seeds_of(task, range(asked.first, asked.first + count))
    return run_all(tasks, jobs=asked.processes, progress=_progress(title, count))


def _progress(title: str, count: int) -> Callable[[Outcome], None] | None:
    if not sys.stderr.isatty():
        return None
    done = [0, 0]

    def _show(outcome: Outcome) -> None:
        done[0] += 1
        done[1] += bool(outcome.broken)
        end = "\r" if done[0] < count else "\r\033[K"
        line = f"{title}: {done[0]} of {count}, {done[1]} with broken promises"
        print(line, end=end, file=sys.stderr, flush=True)

    return _show


def _print_broken(asked: Asked, outcomes: Sequence[Outcome]) -> bool:
    failed = [outcome for outcome in outcomes if outcome.broken]
    for outcome in failed[:_SHORTENED_MAX]:
        print(f"  seed {outcome.seed} broke: {outcome.broken[0]}")
    if len(failed) > _SHORTENED_MAX:
        print(f"  also: {' '.join(str(one.seed) for one in failed[_SHORTENED_MAX:])}")
    return bool(failed)


def _finish(asked: Asked, outcomes: Sequence[Outcome]) -> None:
    if asked.cost:
        print(cost_line(outcomes))
    _write(asked, {"outcomes": [asdict(outcome) for outcome in outcomes]})


def _again(asked: Asked) -> str:
    options = f" --scenario {asked.scenario}" if asked.scenario else ""
    if asked.nodes:
        options += f" --nodes {asked.nodes}"
    if asked.profile:
        options += f" --profile {asked.profile}"
    return options + (" --sealed" if asked.sealed else "")


def _write(asked: Asked, figures: dict[str, Any]) -> None:
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n")
