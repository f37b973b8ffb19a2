"""Comparison of gateways (`smg-chaos compare`): this gateway, secured as in production, against its
cost goals.

    goals       all gateways but litellm in one interleaved run, then this one and litellm in another; what has no result,
                because rounds spread by more than a fifth, once more at the end of each
    cores       this gateway with some numbers of data processes, beside the reference
    growth      this gateway alone, over streams, clients, prompts and workers
    profile     this gateway alone, each workload once, under Python's profiler

What is published is written before anything is judged, so that a run that falls short can be read
as well. Every row is kept in the folder of the run as soon as it is measured, so what was measured
may be judged again, and what a run that was stopped has brought as well.
"""

import asyncio
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from smg_chaos.bench.bench import Bench, Plan
from smg_chaos.bench.children import BenchError
from smg_chaos.bench.compare_page import Page, page
from smg_chaos.bench.figures import machine
from smg_chaos.bench.figures.cores import CoresLine, cores_gateways, cores_lines, cores_workloads
from smg_chaos.bench.figures.growth import PROCESSES, growths
from smg_chaos.bench.figures.measurement import Lengths
from smg_chaos.bench.figures.process_accounting import AccountingError
from smg_chaos.bench.figures.profiling import profiled, said_of
from smg_chaos.bench.figures.progress import Progress
from smg_chaos.bench.figures.rows import Figure, Row, figures_of
from smg_chaos.bench.gateways import gateways
from smg_chaos.bench.gateways.engines import EngineChoice
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS, Wanted
from smg_chaos.bench.gateways.pinning import Pins, told
from smg_chaos.bench.goals import (
    COMMON,
    GOALS,
    MEMORY_WORKLOAD,
    REFERENCE,
    REFERENCE_CACHED,
    Judged,
    judged,
)
from smg_chaos.bench.load.workload import Load, Workload
from smg_chaos.bench.load.workloads import chosen
from smg_chaos.bench.options import Options
from smg_chaos.bench.session import bundle_of, facts_of, until_told
from smg_chaos.engine.scripts.bundle import Bundle
from smg_node.core.ports import Clock
from smg_node.system_clock import SystemClock

_COMMON_STREAMS: Final = 32
_GROWTH_ROUNDS: Final = 2
_ANEW: Final = "-anew"
_CORES: Final = "cores"
_ROWS: Final = "rows.json"
_STOPPED: Final = 130


@dataclass(frozen=True, slots=True)
class Wish:
    """Parts of the comparison that are run beside the goals; `page` is the path of the published
    page, None for none.
    """

    page: Path | None
    goals: bool = True
    cores: bool = True
    growth: bool = True
    profile: bool = False
    anew: bool = True
    """Whether what has no result is measured once more."""
    arguments: tuple[str, ...] = ()
    """More flags for this gateway."""
    processes: tuple[int, ...] = PROCESSES
    """Numbers of data processes that growth goes over, and cores."""
    pins: Pins = field(default_factory=dict)


class _Content(msgspec.Struct):
    """What a run leaves in its folder."""

    facts: dict[str, Any]
    rows: list[Row]


@dataclass(slots=True)
class _Run:
    """What is common to all parts of a run, and what they brought."""

    options: Options
    wish: Wish
    folder: Path
    console: Console
    clock: Clock
    bundle: Bundle
    before: Sequence[Row] | None = None
    """What was measured before; then nothing is measured now but what had no result, if that is wished."""
    facts: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the date and time."""
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)

    def keep(self) -> None:
        """Write what is known so far."""
        everything = {"facts": self.facts, "rows": [*(self.before or ()), *self.rows]}
        content = msgspec.json.format(msgspec.json.encode(everything), indent=1)
        fresh = self.folder / f"{_ROWS}.new"
        fresh.write_bytes(content + b"\n")
        fresh.replace(self.folder / _ROWS)

    def is_there(self, name: str) -> bool:
        """Return whether a gateway can be measured, or was."""
        if self.before is not None:
            return any(row.gateway == name for row in self.before)
        return gateways.is_installed(KINDS[name], self.options.peers)

    def measure(
        self,
        name: str,
        wanted: Sequence[Wanted],
        workloads: Sequence[Workload],
        *,
        rounds: int,
        laps: int = 1,
        host: str = "127.0.0.1",
    ) -> tuple[Plan, list[Row]]:
        """Measure one part; all that was started is stopped, whatever happens."""
        options = self.options
        plan = Plan(
            workloads=workloads,
            gateways=wanted,
            folder=self.folder / name,
            peers=options.peers,
            bundle=self.bundle,
            engine=EngineChoice(
                options.contract, options.engine_server, options.pace, options.tokenizer, host
            ),
            rounds=rounds,
            laps=laps,
            lengths=Lengths(options.warmup_s, options.duration_s),
            load=Load(clients=options.clients),
            client_processes=max(options.client_processes, *(one.clients_min for one in workloads)),
            pins=self.wish.pins,
        )
        if self.before is not None:
            rows = [row for row in self.before if row.part == name]
            if rows or not (self.wish.anew and name.endswith(_ANEW)):
                return plan, rows
        plan.folder.mkdir(parents=True, exist_ok=True)
        if self.before is not None:
            # Before its first row: a run that is stopped says as well which of its rows are of another hour.
            self.facts["anew"] = (
                f"{self.now():%Y-%m-%d %H:%M} UTC, commit {machine.describe()['commit']}"
            )
        elif "gateways" not in self.facts:
            self.facts = facts_of(options, plan) | self.facts

        def keep(row: Row) -> None:
            row.part = name
            self.rows.append(row)
            self.keep()

        bench = Bench(plan, Progress(self.console), self.clock.monotonic_s, keep)
        try:
            with bench.progress.shown(bench.measurements()), asyncio.Runner() as runner:
                runner.run(until_told(bench))
        finally:
            bench.kill_rest()
        return plan, bench.rows

    def ours(self) -> Wanted:
        """Return this gateway, as it is measured."""
        return Wanted(EQUIPPED, KINDS[EQUIPPED], self.wish.arguments)


def compare(options: Options, wish: Wish) -> int:
    """Measure, print, write; return 0 if all that must be is so, 130 if stopped, else 1. ValueError, BenchError as for `bench`."""
    if options.again is not None:
        return _again(options, options.again, wish)
    clock = SystemClock()
    at = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    folder = options.out / f"compare-{at.strftime('%Y%m%d-%H%M%S')}"
    console = Console(stderr=True)
    run = _Run(options, wish, folder, console, clock, bundle_of(options.tokenizer))
    run.facts = {"at": at.isoformat(), "machine": machine.describe(), "pinning": told(wish.pins)}
    return _kept(run, lambda: _whole(run, at))


def _whole(run: _Run, at: datetime) -> int:
    """Measure all that is wished, judge it, and write the page."""
    judgements: list[Judged] = []
    if run.wish.goals:
        judgements, facts = _goals(run)
        run.facts = facts | {name: run.facts[name] for name in ("at", "machine", "pinning")}
    cores = _cores(run) if run.wish.cores else []
    tables = [] if not run.wish.growth else _grown(run)
    if run.wish.profile:
        _profile(run)
    run.facts["weather"] = _weather_of(run.rows)
    text = page(Page(at, run.facts, judgements, tables, cores))
    _write(run, text)
    return _told(text, judgements, run.console)


def _kept(run: _Run, work: Callable[[], int]) -> int:
    """Return the result of `work`; where it does not finish, report where its measurements are
    kept.
    """
    try:
        return work()
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say_kept(run, "stopped")
        return _STOPPED
    except (AccountingError, BenchError, OSError):
        _say_kept(run, "ended early")
        raise


def _say_kept(run: _Run, why: str) -> None:
    if run.rows:
        path = run.folder / _ROWS
        says = f"{why}; what was measured is kept: smg-chaos compare --again {path} judges it"
        run.console.print(says, soft_wrap=True)
    else:
        run.console.print(f"{why}; nothing was measured")


def _weather_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what else the machine did: the worst, and of plain steps the least, the median and the most."""
    steps = [row.step_ns for row in rows if row.step_ns]
    return {
        "load_average": max((row.load_average for row in rows), default=0.0),
        "pressure": max((row.pressure for row in rows), default=0.0),
        "stolen": max((row.stolen for row in rows), default=0.0),
        "step_ns": [min(steps), statistics.median(steps), max(steps)] if steps else [],
    }


def _again(options: Options, path: Path, wish: Wish) -> int:
    """Judge the rows of an earlier run, and write its page. ValueError for a file that no run
    wrote.
    """
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Content)
        facts = kept.facts
        at = datetime.fromisoformat(facts["at"])
        rounds, laps, duration_s = facts["rounds"], facts["laps"], facts["duration_s"]
    except (KeyError, msgspec.MsgspecError, OSError) as error:
        raise ValueError(f"{path} is no rows.json of `smg-chaos compare`: {error}") from error
    options = replace(options, rounds=rounds, laps=laps, duration_s=duration_s)
    clock: Clock = SystemClock()
    now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
    folder = options.out / f"compare-{now.strftime('%Y%m%d-%H%M%S')}"
    console = Console(stderr=True)
    bundle = bundle_of(options.tokenizer)
    run = _Run(options, wish, folder, console, clock, bundle, kept.rows, facts)
    return _kept(run, lambda: _judged_again(run, at))


def _judged_again(run: _Run, at: datetime) -> int:
    """Judge what is known; measure nothing but what has no result, if that is wished."""
    before = run.before or ()
    measured = any(row.part.startswith(("goals", "common")) for row in before)
    judgements = _goals(run)[0] if measured else []
    grew = any(row.part.startswith("growth-") for row in before)
    cores = _cores(run) if any(row.part == _CORES for row in before) else []
    run.facts["weather"] = _weather_of([*before, *run.rows])
    text = page(Page(at, run.facts, judgements, _grown(run) if grew else [], cores))
    if run.rows:
        _write(run, text)
    elif run.wish.page is not None:
        run.wish.page.write_text(text, encoding="utf-8")
    return _told(text, judgements, run.console)


def _told(text: str, judgements: Sequence[Judged], console: Console) -> int:
    """Print the page, and what falls short; return the exit code."""
    print(text)
    short = [one.goal.axis for one in judgements if one.short]
    if short:
        console.print(f"short, or without a result: {', '.join(short)}", soft_wrap=True)
    return int(bool(short))


def _goals(run: _Run) -> tuple[list[Judged], dict[str, Any]]:
    options, ours = run.options, run.ours()
    there = {name for name in (REFERENCE, REFERENCE_CACHED, COMMON) if run.is_there(name)}
    figures: dict[str, list[Figure]] = {}
    names = [name for name in (REFERENCE, REFERENCE_CACHED) if name in there]
    plan, anew = _beside(run, "goals", names, _workloads(), figures)
    if REFERENCE in there:
        figures[REFERENCE] += _memory(run)
    if COMMON in there:
        vendors = [one.workload for one in GOALS if one.workload.startswith("vendor-")]
        workloads = chosen(["short", "paced", *vendors], [_COMMON_STREAMS])
        beside, more = _beside(run, "common", [COMMON], workloads, figures)
        anew |= more
        plan = replace(plan, gateways=[*plan.gateways, *beside.gateways[1:]])
    judgements = [
        replace(one, anew=one.goal.of == "figure" and (one.goal.base, one.goal.workload) in anew)
        for one in judged(GOALS, figures, ours.label)
    ]
    return judgements, facts_of(options, plan)


def _beside(
    run: _Run,
    part: str,
    bases: Sequence[str],
    workloads: Sequence[Workload],
    figures: dict[str, list[Figure]],
) -> tuple[Plan, set[tuple[str, str]]]:
    """Measure this gateway beside others, for `figures`; return what was measured anew: by gateway and workload."""
    wanted = [run.ours(), *(Wanted(name, KINDS[name]) for name in bases)]
    labels = [one.label for one in wanted]
    rounds, laps = run.options.rounds, run.options.laps
    plan, rows = run.measure(part, wanted, workloads, rounds=rounds, laps=laps)
    figures |= {base: figures_of(rows, workloads, labels, base) for base in bases}
    goals = [one for one in GOALS if one.base in bases and one.of == "figure"]
    told = judged(goals, figures, labels[0])
    noisy = {one.goal.workload for one in told if one.verdict == "no result"}
    noisy |= {one.less for one in workloads if one.name in noisy and one.less}
    again = [one for one in workloads if one.name in noisy]
    more: list[Row] = []
    if again and (run.wish.anew or run.before is not None):
        _, more = run.measure(part + _ANEW, wanted, again, rounds=rounds, laps=laps)
    more = [row for row in more if row.workload in noisy]
    noisy &= {row.workload for row in more}
    rows = [*(row for row in rows if row.workload not in noisy), *more]
    figures |= {base: figures_of(rows, workloads, labels, base) for base in bases}
    return plan, {(base, name) for base in bases for name in noisy}


def _memory(run: _Run) -> list[Figure]:
    """Return the memory figures: of a control process and one for data, and of the reference."""
    one_each = Wanted(EQUIPPED, KINDS[EQUIPPED], (*run.wish.arguments, "--processes", "1"))
    wanted = [one_each, Wanted(REFERENCE, KINDS[REFERENCE])]
    workloads = chosen([MEMORY_WORKLOAD], [])
    _, rows = run.measure("memory", wanted, workloads, rounds=1)
    return figures_of(rows, workloads, [one.label for one in wanted], REFERENCE)


def _workloads() -> list[Workload]:
    """Return what goals with the reference are about, each once."""
    wanted = [one.workload for one in GOALS if one.base != COMMON and one.of == "figure"]
    streams = sorted(int(name.partition("-")[2]) for name in wanted if name.startswith("paced-"))
    names = [name for name in wanted if not name.startswith("paced-")]
    return chosen([*dict.fromkeys(names), "paced"], streams)


def _cores(run: _Run) -> list[CoresLine]:
    references = [REFERENCE] if run.is_there(REFERENCE) else []
    wanted = cores_gateways(run.wish.processes, run.wish.arguments, references)
    workloads = cores_workloads()
    _, rows = run.measure(_CORES, wanted, workloads, rounds=run.options.rounds)
    labels = list(dict.fromkeys([*(row.gateway for row in rows), *(one.label for one in wanted)]))
    return cores_lines(rows, workloads, sorted(labels, key=lambda one: one == REFERENCE))


def _grown(run: _Run) -> list[tuple[str, list[tuple[int, Figure | None]]]]:
    tables = []
    for number, growth in enumerate(growths(run.wish.arguments, run.wish.processes)):
        # One engine is as many workers only where it listens at more than one address.
        host = "0.0.0.0" if len(growth.gateways) > 1 else "127.0.0.1"
        _, rows = run.measure(
            f"growth-{number}",
            growth.gateways,
            growth.workloads,
            rounds=_GROWTH_ROUNDS,
            host=host,
        )
        labels = [one.label for one in growth.gateways]
        tables.append((growth.says, growth.lines(figures_of(rows, growth.workloads, labels, None))))
    return tables


def _profile(run: _Run) -> None:
    for workload in _workloads():
        wanted = profiled(run.ours(), run.folder / f"profile-{workload.name}.out")
        run.measure(f"profile-{workload.name}", [wanted], [workload], rounds=1)
        (run.folder / f"profile-{workload.name}.txt").write_text(
            said_of(run.folder / f"profile-{workload.name}.out"), encoding="utf-8"
        )


def _write(run: _Run, text: str) -> None:
    run.keep()
    for path in (run.folder / "page.md", run.wish.page):
        if path is not None:
            path.write_text(text, encoding="utf-8")
    run.console.print(f"rows, profiles and logs: {run.folder}", soft_wrap=True)
