"""Gaps between tokens: what runs of tools or pictures beside streams made of them, as lines below a table. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from smg_chaos.bench.figures.rows import Figure, Row
from smg_chaos.bench.load.tools.tool_runs import PICTURES, RUNS
from smg_chaos.bench.load.workload import Workload

RATIO_MAX: Final = 1.1
"""What is aimed at: p99 of the gaps beside runs, as a share of that without them."""
_ONE: Final = {RUNS: "a run", PICTURES: "a picture"}


def add_gap_notes(
    figures: Sequence[Figure], rows: Sequence[Row], workloads: Sequence[Workload]
) -> None:
    """Add to the notes of every figure of gaps what its rounds were, and what runs beside them made of it."""
    known = {workload.name: workload for workload in workloads if workload.unit == "gap"}
    for figure in figures:
        workload = known.get(figure.workload)
        if workload is None:
            continue
        mine = _counting(rows, workload.name, figure.gateway)
        figure.notes += [
            f"round {number + 1}: gap p50 {row.gap_ms.p50:.1f}, p99 {row.gap_ms.p99:.1f} ms"
            for number, row in sorted(mine.items())
        ]
        without = _counting(rows, workload.beside, figure.gateway)
        if mine and without:
            figure.notes += _beside(mine, without, workload)


def _counting(rows: Sequence[Row], workload: str, gateway: str) -> Mapping[int, Row]:
    """Return the rows that count, by round."""
    return {
        row.round: row
        for row in rows
        if (row.workload, row.gateway) == (workload, gateway) and not row.void
    }


def gap_ratio(mine: Mapping[int, Row], without: Mapping[int, Row]) -> float:
    """Return the median p99 of the rounds with runs, as a share of that of the rounds without."""
    median_ms = statistics.median(row.gap_ms.p99 for row in without.values())
    return statistics.median(row.gap_ms.p99 for row in mine.values()) / median_ms


def _beside(mine: Mapping[int, Row], without: Mapping[int, Row], workload: Workload) -> list[str]:
    both = sorted(mine.keys() & without.keys())
    ratios = [mine[number].gap_ms.p99 / without[number].gap_ms.p99 for number in both]
    spread = f"; round by round {min(ratios):.3f} to {max(ratios):.3f}" if ratios else ""
    count = sum(row.flows.get(workload.companion, 0) for row in mine.values())
    seconds = sum(row.seconds for row in mine.values())
    slowest = statistics.median(row.latency_ms.p99 for row in mine.values())
    middle = statistics.median(row.latency_ms.p50 for row in mine.values())
    used = _cpu_rate(mine.values())
    wanted = f" of {workload.runs_per_s:g}" if workload.runs_per_s else ""
    lines = [
        f"p99 is {gap_ratio(mine, without):.3f} of that without {workload.companion} ({RATIO_MAX} at most is aimed at){spread}",
        f"{count / seconds:.1f}{wanted} {workload.companion} a second, which took p50 {middle:.0f}, p99 {slowest:.0f} ms",
    ]
    more = used - _cpu_rate(without.values())
    if count and more > 0:
        lines.append(
            f"CPU of {_ONE[workload.companion]}: {more * seconds / count * 1000:.1f} ms; of all: {used:.0%} of a core"
        )
    return lines


def _cpu_rate(rows: Iterable[Row]) -> float:
    """Return the seconds of CPU that the gateway used in a second."""
    return statistics.median(row.gateway_cpu_s / row.seconds for row in rows)
