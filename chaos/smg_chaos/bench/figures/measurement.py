"""Measurement of one workload on one gateway: loads it and reads its CPU at the borders of the
counted time.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from smg_chaos.bench.figures import machine
from smg_chaos.bench.figures.interpreter import step_ns
from smg_chaos.bench.figures.process_accounting import cpu_s, memory_of, tree_cpu_s
from smg_chaos.bench.figures.rows import Row, times_of, void_reasons
from smg_chaos.bench.gateways.gateways import Gateway
from smg_chaos.bench.load.job import Job, Tally
from smg_chaos.bench.load.remote_client import Clients
from smg_chaos.bench.load.script import Spoken
from smg_chaos.bench.load.tools.tool_runs import PICTURES, RUNS
from smg_chaos.bench.load.workload import Load, Workload
from smg_chaos.bench.load.workloads import SLACK_S

_MB: Final = 1024 * 1024
_PACED_WARMUP_S: Final = 3.0
"""LiteLLM needs more than a second for the first words of the last of 32 streams."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Durations of the warm-up and of the counted time."""

    warmup_s: float = 1.0
    duration_s: float = 4.0
    laps: int = 1

    def of_one(self, laps: int) -> "Lengths":
        """Return the lengths of one lap of so many."""
        return replace(self, laps=laps)

    def warmup(self, workload: Workload) -> float:
        """Return the warm-up of a workload: paced streams need time until all of them are open."""
        return max(self.warmup_s, _PACED_WARMUP_S) if workload.paced else self.warmup_s

    def counts_s(self, workload: Workload) -> float:
        """Return the counted time of a workload; for paced streams, which use little CPU, each lap
        is as long as a round.
        """
        laps = 1 if workload.paced and workload.longer == 1 else self.laps
        return max(self.duration_s * workload.longer / laps, workload.least_s)

    def held_s(self, workload: Workload) -> float:
        """Return the duration of the held streams of a workload."""
        return self.warmup(workload) + self.counts_s(workload) + SLACK_S


@dataclass(frozen=True, slots=True)
class _Used:
    """CPU seconds so far, and when that was."""

    at_s: float
    gateway_s: float
    engine_s: float
    clients_s: tuple[float, ...]
    others_s: tuple[float, ...]


def _read(gateway: Gateway, clients: Clients, clock_s: Callable[[], float]) -> _Used:
    return _Used(
        clock_s(),
        tree_cpu_s(gateway.pid) if gateway.pid else 0.0,
        tree_cpu_s(gateway.engine.pid) if gateway.engine else 0.0,
        tuple(cpu_s([pid]) for pid in clients.pids),
        tuple(tree_cpu_s(child.pid) for child in gateway.others),
    )


async def measure(
    workload: Workload,
    gateway: Gateway,
    clients: Clients,
    *,
    load: Load,
    lengths: Lengths,
    script: Spoken | None,
    clock_s: Callable[[], float],
) -> Row:
    """Return the row of one workload on one gateway; `load.round` numbers it."""
    job = Job(
        host=gateway.host,
        port=gateway.port,
        model=gateway.model,
        flows=tuple(workload.flows(load, script)),
        spread_s=0.8 * lengths.warmup(workload) if workload.paced else 0.0,
        seed=load.round,
        key=gateway.key,
    )
    weather = machine.load_average(), machine.pressure(), round(step_ns(), 1)
    await clients.begin(job)
    await asyncio.sleep(lengths.warmup(workload))
    before, stolen_s = _read(gateway, clients, clock_s), machine.stolen_s()
    await clients.open()
    await asyncio.sleep(lengths.counts_s(workload))
    counted = await clients.close()
    after, stolen_s = _read(gateway, clients, clock_s), machine.stolen_s() - stolen_s
    whole = await clients.stop()
    row = Row(workload=workload.name, gateway=gateway.label, round=load.round)
    row.upstream = gateway.upstream
    row.load_average, row.pressure, row.step_ns = weather
    _charge(row, before, after)
    row.others_cpu_s = {
        child.name: round(late - early, 4)
        for child, early, late in zip(gateway.others, before.others_s, after.others_s, strict=True)
    }
    row.stolen = round(stolen_s / (row.seconds * (os.cpu_count() or 1)), 4)
    _count(row, workload, counted, whole)
    if gateway.pid:
        memory = memory_of(gateway.pid)
        row.rss_mb, row.pss_mb, row.peak_mb = (
            round(size / _MB, 1) for size in (memory.rss, memory.pss, memory.peak)
        )
    row.void = void_reasons(row, has_cpu=bool(gateway.pid), cores=os.cpu_count() or 1)
    return row


def _charge(row: Row, before: _Used, after: _Used) -> None:
    row.seconds = after.at_s - before.at_s
    row.gateway_cpu_s = after.gateway_s - before.gateway_s
    row.engine_cpu_s = after.engine_s - before.engine_s
    row.client_cpu_s = [
        late - early for early, late in zip(before.clients_s, after.clients_s, strict=True)
    ]


def _count(
    row: Row, workload: Workload, counted: dict[str, Tally], whole: dict[str, Tally]
) -> None:
    """Fill in what the clients counted: inside the borders, and errors of the whole job."""
    # A stream that began inside the borders may end behind them.
    held = workload.paced or workload.crowd
    tallies = whole if held else counted
    row.requests = sum(tally.requests for tally in tallies.values())
    row.tokens = sum(tally.tokens for tally in counted.values())
    row.unsent = sum(tally.unsent for tally in counted.values())
    row.errors = sum(tally.errors for tally in whole.values())
    row.checked_completely = sum(tally.careful for tally in whole.values())
    row.problems = [problem for tally in whole.values() for problem in tally.problems][:3]
    prompts = sum(tally.prompt_tokens for tally in tallies.values())
    row.prompt_tokens = prompts / row.requests if row.requests else 0.0
    told = tallies.get(workload.first, Tally())
    row.ttft_ms = times_of(told.ttft)
    row.asking_ms, row.crowds = times_of(told.asking), told.crowds
    paced = [tally for name, tally in tallies.items() if name not in (RUNS, PICTURES)]
    row.tpot_ms = times_of([value for tally in paced for value in tally.tpot])
    row.latency_ms = times_of(told.latency)
    row.gap_ms = times_of([value for tally in counted.values() for value in tally.gaps])
    if len(tallies) > 1:
        row.flows = {name: tally.requests for name, tally in tallies.items()}
