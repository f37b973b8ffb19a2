"""Cores: this gateway with some numbers of data processes beside the reference, a process of many threads.

Throughput, first tokens of crowds, gaps between tokens, CPU and memory: a line for each workload and gateway.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from smg_chaos.bench.figures.growth import with_processes
from smg_chaos.bench.figures.rows import Row, Times
from smg_chaos.bench.gateways.gateways import KINDS, Wanted
from smg_chaos.bench.load.workload import Workload
from smg_chaos.bench.load.workloads import chosen, clients

_CLIENTS: Final = 64
_CROWDS: Final = ("flash", "flash-beside")


@dataclass(frozen=True, slots=True)
class CoresLine:
    """What one workload was to one gateway: medians of the rounds that count, None for what was not measured."""

    workload: str
    gateway: str
    rounds: int
    """That count."""
    requests_per_s: float | None
    request_us: float | None
    """CPU of the whole tree of processes."""
    first_ms: Times
    gap_ms: Times
    pss_mb: float
    """With pages that the processes share counted once, at the end."""
    why: str = ""
    """Why rounds do not count."""


def cores_workloads() -> list[Workload]:
    """Return what is measured: a closed loop, crowds that begin in one instant, and such crowds beside running streams."""
    return [clients(_CLIENTS), *chosen(_CROWDS, [])]


def cores_gateways(
    processes: Sequence[int], arguments: Sequence[str], references: Sequence[str]
) -> list[Wanted]:
    """Return this gateway with each number of data processes, and the references."""
    ours = [with_processes(one, arguments) for one in processes]
    return [*ours, *(Wanted(name, KINDS[name]) for name in references)]


def cores_lines(
    rows: Sequence[Row], workloads: Sequence[Workload], labels: Sequence[str]
) -> list[CoresLine]:
    """Return a line for each workload and gateway that was measured, gateways of one workload together."""
    lines = []
    for workload in workloads:
        for label in labels:
            mine = [row for row in rows if (row.workload, row.gateway) == (workload.name, label)]
            if mine:
                lines.append(_line(workload, label, mine))
    return lines


def _line(workload: Workload, label: str, rows: Sequence[Row]) -> CoresLine:
    counting = [row for row in rows if not row.void]
    # Streams that are held, and crowds with pauses between them, have no rate of their own making.
    loop = not (workload.paced or workload.crowd)
    return CoresLine(
        workload.name,
        label,
        len({row.round for row in counting}),
        _median(counting, lambda row: row.requests / max(row.seconds, 1e-9)) if loop else None,
        None if workload.paced else _median(counting, Row.request_us),
        _middle([row.ttft_ms for row in counting]),
        _middle([row.gap_ms for row in counting]),
        rows[-1].pss_mb,
        "; ".join(dict.fromkeys(why for row in rows for why in row.void)),
    )


def _median(rows: Sequence[Row], of: Callable[[Row], float]) -> float | None:
    return statistics.median(map(of, rows)) if rows else None


def _middle(times: Sequence[Times]) -> Times:
    """Return the median of each percentile."""
    known = [one for one in times if one.count]
    if not known:
        return Times()
    return Times(
        sum(one.count for one in known),
        statistics.median(one.p50 for one in known),
        statistics.median(one.p90 for one in known),
        statistics.median(one.p99 for one in known),
    )
