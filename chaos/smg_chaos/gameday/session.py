"""Session of `smg-chaos gameday`: plays every scenario on every system; prints a table, writes the
figures.
"""

import asyncio
import json
import platform
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random

from rich.console import Console
from rich.markup import escape

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import Cluster, ClusterError, watched
from smg_chaos.gameday.lab.lab import LabError, opened
from smg_chaos.gameday.limits.trials.trial_list import chosen as chosen_trials
from smg_chaos.gameday.options import Options
from smg_chaos.gameday.outcomes import Outcome, as_json, table, verdict
from smg_chaos.gameday.scenarios import ALL, SCENARIOS, Scenario, Size
from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.systems import SYSTEMS, Ground, System, check_installed
from smg_chaos.statistics import Figure
from smg_node.core.ports import Clock
from smg_node.system_clock import SystemClock


def run(options: Options) -> int:
    """Play, print, write; return the exit code: 0 if ours met every target, else 1.

    ValueError names a scenario, trial or system that does not exist; SystemMissingError one that is not installed.
    """
    scenarios = _chosen(options.scenarios)
    chosen_trials(options.trials, options.window_s)
    systems = [_system(name) for name in options.systems]
    check_installed([system.name for system in systems], options.peers)
    clock: Clock = SystemClock()
    stamp = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    folder = (options.out / stamp).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    outcomes: list[Outcome] = []
    stopped = False
    try:
        for scenario, system in product(scenarios, systems):
            outcomes.append(_outcome(options, scenario, system, folder, clock, console))
    except KeyboardInterrupt:
        stopped = True
        console.print("stopped; what was measured so far:")
    if outcomes:
        Console(width=_width()).print(table(outcomes))
        _write(outcomes, options, folder, stamp)
    return 0 if verdict(outcomes) and not stopped else 1


def _width() -> int | None:
    """Return a width for a table that goes into a file; a terminal has its own."""
    return None if Console().is_terminal else 160


def _chosen(names: tuple[str, ...]) -> list[Scenario]:
    if ALL in names:
        return list(SCENARIOS.values())
    for name in names:
        if name not in SCENARIOS:
            raise ValueError(f"no scenario is called {name!r}; there are {', '.join(SCENARIOS)}")
    return [SCENARIOS[name] for name in dict.fromkeys(names)]


def _system(name: str) -> System:
    if name not in SYSTEMS:
        raise ValueError(f"no system is called {name!r}; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


def size_of(options: Options, scenario: Scenario) -> Size:
    """Return the size of a scenario: its own, where the options give no other."""
    own = scenario.quick if options.quick else scenario.full
    return Size(
        options.nodes or own.nodes, options.seconds or own.seconds, options.rounds or own.rounds
    )


def _outcome(
    options: Options,
    scenario: Scenario,
    system: System,
    folder: Path,
    clock: Clock,
    console: Console,
) -> Outcome:
    """Play one scenario on one system in a lab of its own."""

    def say(what: str) -> None:
        line = f"{scenario.name}, {system.name}: {what}"
        console.print(escape(line), soft_wrap=True, highlight=False)

    size = size_of(options, scenario)
    names = [f"n{number:02}" for number in range(size.nodes)]
    say(f"{size.nodes} nodes: {scenario.says}")
    figures: tuple[Figure, ...] = ()
    failed = ""
    with opened([*names, *scenario.places], seed=options.seed) as lab:
        # The same faults for every system: chance that the scenario draws from is made anew.
        rng = Random(f"{options.seed}/{scenario.name}")
        own = folder / scenario.name / system.name
        own.mkdir(parents=True, exist_ok=True)
        keys = Random(f"{options.seed}/keys")
        ground = Ground(lab, own, options.peers, clock, keys, scenario.flags)
        cluster = Cluster(lab, system.make(ground, names), clock)
        try:
            figures = asyncio.run(
                _played(
                    scenario,
                    Stage(
                        cluster,
                        size.seconds,
                        size.rounds,
                        rng,
                        say,
                        options.streams,
                        options.topology,
                        options.faults,
                        options.store,
                        options.engines,
                        options.seed,
                        options.trials,
                        options.window_s,
                        options.mode,
                    ),
                )
            )
        except (AgentError, ClusterError, ConnectionError, LabError) as error:
            failed = str(error)
            say(f"does not end: {failed}")
    return Outcome(scenario.name, system.name, system.is_ours, figures, failed)


async def _played(scenario: Scenario, stage: Stage) -> tuple[Figure, ...]:
    """Play, with all agents watched from beginning to end."""
    async with watched(stage.cluster):
        return tuple(await scenario.play(stage))


def _write(outcomes: list[Outcome], options: Options, folder: Path, stamp: str) -> None:
    content = {
        "at": stamp,
        "seed": options.seed,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "outcomes": as_json(outcomes),
    }
    text = json.dumps(content, indent=1)
    (folder / "figures.json").write_text(text)
    if options.json is not None:
        options.json.write_text(text)
