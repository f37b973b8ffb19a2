"""Table of results: a block per workload, a line per gateway, as plain text that can be pasted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_chaos.bench.figures import interpreter
from smg_chaos.bench.figures.rows import Figure, Times
from smg_chaos.bench.load.workload import Workload

_HEAD: Final = (
    "gateway",
    "median",
    "spread",
    "ratio",
    "req/s",
    "tok/s",
    "TTFT p50/p99 ms",
    "TPOT p50/p99 ms",
    "client",
    "engine",
    "PSS/peak MB",
)


def table(
    figures: Sequence[Figure],
    workloads: Sequence[Workload],
    *,
    base: str | None,
    facts: Mapping[str, Any],
) -> str:
    """Return the whole table, a description of the machine, and notes on its lines."""
    lines = list(_about(facts))
    for workload in workloads:
        own = [figure for figure in figures if figure.workload == workload.name]
        if not own:
            continue
        what = own[0].unit if workload.unit in ("first token", "gap") else f"{own[0].unit} (CPU)"
        lines += ["", f"{workload.name}: {workload.says}; {what}"]
        lines += _aligned([_HEAD, *(_cells(figure) for figure in own)])
        for figure in own:
            lines += [f"    {figure.gateway}: {note}" for note in figure.notes]
    lines += ["", *_legend(base)]
    return "\n".join(lines) + "\n"


def _about(facts: Mapping[str, Any]) -> list[str]:
    machine = facts.get("machine", {})
    load = ", ".join(f"{one:.2f}" for one in machine.get("load_average", ()))
    lines = [
        f"{machine.get('cpu')}, {machine.get('cores')} cores, Linux {machine.get('kernel')}, "
        f"Python {interpreter.told(machine)}, clock {machine.get('clock_source')}, "
        f"nice {machine.get('nice')}",
        f"load average {load} at the start; {facts.get('rounds')} rounds of "
        f"{facts.get('duration_s')} s, interleaved; tokenizer: {facts.get('tokenizer')}; "
        f"engine: {facts.get('engine')}",
    ]
    return lines + [
        f"  {gateway['label']}: {gateway['says']}, {gateway['version']}"
        + (f", {gateway['arguments']}" if gateway["arguments"] else "")
        for gateway in facts.get("gateways", ())
    ]


def _legend(base: str | None) -> list[str]:
    against = f"ratio: to {base}, round by round. " if base else ""
    return [
        "median and spread ((largest - smallest) / median) over the rounds that count; * : no result. "
        + against,
        "client, engine: their CPU as a share of the gateway's. CPU is user + system of the gateway's "
        "whole process tree.",
    ]


def _cells(figure: Figure) -> tuple[str, ...]:
    median = "-" if figure.median is None else _short(figure.median)
    return (
        figure.gateway,
        median + ("" if figure.result or figure.median is None else " *"),
        "-" if figure.spread is None else f"{figure.spread:.0%}",
        "-" if figure.ratio is None else f"{figure.ratio:.2f}",
        _short(figure.requests_per_s),
        _short(figure.tokens_per_s),
        _pair(figure.ttft_ms),
        _pair(figure.tpot_ms),
        f"{figure.client_share:.0%}",
        f"{figure.engine_share:.0%}",
        f"{figure.pss_mb:.0f}/{figure.peak_mb:.0f}",
    )


def _short(value: float) -> str:
    """Return a number with as many digits as are significant."""
    if not value:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _pair(times: Times) -> str:
    return f"{times.p50:.2f}/{times.p99:.2f}" if times.count else "-"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  "
        + row[0].ljust(widths[0])
        + "".join(f"  {cell.rjust(width)}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
