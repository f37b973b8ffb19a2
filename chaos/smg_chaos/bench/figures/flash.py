"""Lines about flash crowds: first tokens round by round, and what of them was the client's own."""

import statistics
from collections.abc import Sequence

from smg_chaos.bench.figures.rows import Figure, Row
from smg_chaos.bench.load.workload import Workload


def add_flash_notes(
    figures: Sequence[Figure], rows: Sequence[Row], workloads: Sequence[Workload]
) -> None:
    """Add to the notes of every figure of crowds what its rounds were."""
    known = {workload.name: workload for workload in workloads if workload.crowd}
    for figure in figures:
        workload = known.get(figure.workload)
        if workload is None:
            continue
        mine = [
            row
            for row in rows
            if (row.workload, row.gateway) == (workload.name, figure.gateway) and not row.void
        ]
        figure.notes += [_first_tokens(row) for row in mine]
        if mine and not workload.paced:
            each_us = statistics.median(row.request_us() for row in mine)
            figure.notes.append(f"CPU of a stream, from beginning to end: {each_us:.0f} µs")


def _first_tokens(row: Row) -> str:
    ttft, asking = row.ttft_ms, row.asking_ms
    used_s = max(row.client_cpu_s, default=0.0)
    client = f"{used_s / row.seconds:.0%} of a core" if row.seconds else "unknown"
    return (
        f"round {row.round + 1}: {row.crowds} crowds, first token p50 {ttft.p50:.1f}, p90 {ttft.p90:.1f},"
        f" p99 {ttft.p99:.1f} ms; the last request had left the client after {asking.p99:.1f} ms, client {client}"
    )
