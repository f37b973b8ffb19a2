"""Page that a comparison publishes: goals and results, how costs grow, and the machine it was
measured on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from smg_chaos.bench.figures import interpreter
from smg_chaos.bench.figures.cores import CoresLine
from smg_chaos.bench.figures.rows import Figure, Times
from smg_chaos.bench.goals import Judged

Growing = tuple[str, Sequence[tuple[int, Figure | None]]]

_HEAD: Final = """# Performance

Written by `smg-chaos compare`; do not edit. CPU is user and system time of a gateway's whole process tree, by the kernel's
account, per request or per token; ratios are the median of those of the rounds, each of which goes round all gateways.
This gateway runs as it is operated: with keys, limits, metrics and its access log; the others as they come. Every answer is
checked against what the engine said.
"""


@dataclass(frozen=True, slots=True)
class Page:
    """Contents of the published page."""

    at: datetime
    facts: Mapping[str, Any]
    goals: Sequence[Judged]
    growing: Sequence[Growing] = ()
    cores: Sequence[CoresLine] = ()


def page(told: Page) -> str:
    """Return the whole page, ending with a line feed."""
    parts = [_HEAD, _about(told)]
    parts += [_goals(told.goals)] if told.goals else []
    parts += [_cores(told.cores)] if told.cores else []
    parts += [_grown(says, lines) for says, lines in told.growing]
    return "\n".join(parts)


def _about(told: Page) -> str:
    machine = told.facts.get("machine", {})
    load = ", ".join(f"{one:.2f}" for one in machine.get("load_average", ()))
    rows = [
        ("When", told.at.strftime("%Y-%m-%d %H:%M UTC")),
        ("Commit", machine.get("commit") or "-"),
        ("Machine", f"{machine.get('cpu')}, {machine.get('cores')} cores, Linux {machine.get('kernel')}"),
        *([("Pinning", told.facts["pinning"])] if told.facts.get("pinning") else []),
        ("Python", interpreter.told(machine)),
        ("Load at the start", load or "-"),
        ("Load and CPU pressure, worst of all rows", _weather(told.facts)),
        *_neighbours(told.facts),
        ("Rounds", f"{told.facts.get('rounds')} of {told.facts.get('duration_s')} s{_laps(told.facts)}, {told.facts.get('clients')} clients"),
        *([("Measured anew", told.facts["anew"])] if told.facts.get("anew") else []),
        ("Tokenizer", told.facts.get("tokenizer")),
        ("Engine", told.facts.get("engine")),
    ]  # fmt: skip
    rows += [
        (one["label"], f"{one['says']}, {one['version']}, {one['arguments'] or 'no flags'}")
        for one in told.facts.get("gateways", ())
    ]
    rows += [(name, version) for name, version in machine.get("libraries", {}).items() if version]
    return "| | |\n|---|---|\n" + "".join(f"| {name} | {value} |\n" for name, value in rows)


def _goals(goals: Sequence[Judged]) -> str:
    lines = [
        "## Goals\n\n| What | Beside | Ours | Theirs | Unit | Ratio | Must | Wished | Spread | |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    ]
    for one in goals:
        goal = one.goal
        spread = "-" if one.spread is None else f"{one.spread:.0%}"
        cells = (
            goal.axis,
            goal.base,
            _number(one.ours),
            _number(one.theirs),
            one.unit or "-",
            _number(one.ratio, places=3),
            f"{goal.must:.3g}",
            f"{goal.stretch:.3g}",
            spread,
            _verdict(one),
        )
        lines.append(f"| {' | '.join(cells)} |\n")
    return "".join(lines)


def _cores(lines: Sequence[CoresLine]) -> str:
    """Return the table of data processes beside the reference."""
    head = (
        "## Cores: data processes beside the reference\n\n| Load | Gateway | Requests per second | µs per request"
        " | To the first token p50, p99 (ms) | Gaps p50, p99 (ms) | Memory (PSS, MB) | Rounds | |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(_cores_line(line) for line in lines)


def _cores_line(line: CoresLine) -> str:
    cells = (
        line.workload,
        line.gateway,
        _number(line.requests_per_s),
        _number(line.request_us),
        _percentiles(line.first_ms),
        _percentiles(line.gap_ms),
        f"{line.pss_mb:.0f}",
        str(line.rounds),
        line.why.replace("|", "/") or "-",
    )
    return f"| {' | '.join(cells)} |\n"


def _percentiles(times: Times) -> str:
    return f"{times.p50:.2f}, {times.p99:.2f}" if times.count else "-"


def _laps(facts: Mapping[str, Any]) -> str:
    return (
        f", each in {facts['laps']} laps between which the others have theirs"
        if facts.get("laps", 1) > 1
        else ""
    )


def _weather(facts: Mapping[str, Any]) -> str:
    worst = facts.get("weather")
    return f"{worst['load_average']:.2f}, {worst['pressure']:.0f} %" if worst else "-"


def _neighbours(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the lines about other load on the same host: figures of an hour in which it was high
    are not comparable.
    """
    steps = facts.get("weather", {}).get("step_ns")
    if not steps:
        return []
    least, median, most = steps
    stolen = facts["weather"]["stolen"]
    return [
        ("A plain step before each row", f"{least:.0f} to {most:.0f} ns, median {median:.0f}"),
        ("CPU given to other machines, worst of all rows", f"{stolen:.0%}"),
    ]


def _verdict(one: Judged) -> str:
    if one.verdict == "short":
        verdict = "**short**"
    else:
        verdict = f"{one.verdict}: {one.why}" if one.why else one.verdict
    return f"{verdict} (measured anew)" if one.anew else verdict


def _grown(says: str, lines: Sequence[tuple[int, Figure | None]]) -> str:
    what, _, unit = says.partition(": ")
    head = (
        f"## Growth: {what}\n\n| {what} | {unit} | Spread | Requests or tokens per second | To the first token p50, p99 (ms) |"
        " Memory, peak (MB) | |\n|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(_grown_line(number, figure) for number, figure in lines)


def _grown_line(number: int, figure: Figure | None) -> str:
    if figure is None:
        return f"| {number:,} | - | - | - | - | - | not measured |\n"
    spread = "-" if figure.spread is None else f"{figure.spread:.0%}"
    ttft = figure.ttft_ms
    rate = figure.requests_per_s or figure.tokens_per_s
    first = _percentiles(ttft)
    notes = "; ".join(figure.notes).replace("|", "/") or "-"
    return (
        f"| {number:,} | {_number(figure.median)} | {spread} | {_number(rate)} | {first} |"
        f" {figure.peak_mb:.0f} | {notes} |\n"
    )


def _number(value: float | None, *, places: int = 1) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.{places}f}"
