"""Rows of measurements, one per gateway, workload and round, and the figures computed from them."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from smg_chaos.bench.load.tools.tool_runs import PICTURES, RUNS
from smg_chaos.bench.load.workload import Workload

SPREAD_MAX: Final = 0.2
ALONE: Final = "engine alone"
"""In place of a gateway: nobody stands before the engine."""
_CORE_MAX: Final = 0.8
_SCARCE: Final = 0.5
"""The part of a machine's CPU from which on those who use it are in each other's way."""
_LATE_MAX: Final = 1.1
_US: Final = 1e6


class Times(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds, of `count` values."""

    count: int = 0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0


def times_of(seconds: Sequence[float]) -> Times:
    """Return the percentiles of values in seconds: always one that was measured, never between two."""
    values = sorted(seconds)
    if not values:
        return Times()
    p50, p90, p99 = (
        round(values[min(len(values) - 1, int(len(values) * share))] * 1000, 4)
        for share in (0.5, 0.9, 0.99)
    )
    return Times(len(values), p50, p90, p99)


class Row(msgspec.Struct, kw_only=True):
    """One measurement. CPU is in seconds of a core, user and system, inside the borders."""

    workload: str
    gateway: str
    round: int
    lap: int = 0
    """Of the round: between two of them the others have theirs."""
    part: str = ""
    """Of the run, where it has several."""
    upstream: str = "grpc"
    seconds: float = 0.0
    requests: int = 0
    tokens: int = 0
    errors: int = 0
    unsent: int = 0
    checked_completely: int = 0
    prompt_tokens: float = 0.0
    """Tokens of a prompt, as the gateway counts them, on average."""
    gateway_cpu_s: float = 0.0
    engine_cpu_s: float = 0.0
    client_cpu_s: list[float] = []
    others_cpu_s: dict[str, float] = {}
    """What else worked for the requests, beside the engine."""
    ttft_ms: Times = Times()
    tpot_ms: Times = Times()
    latency_ms: Times = Times()
    gap_ms: Times = Times()
    """Between two arrivals of tokens of a stream, where that is what is asked about."""
    crowds: int = 0
    """Crowds that began in one instant each."""
    asking_ms: Times = Times()
    """From the instant of a crowd until a request of it had left the client: its own part of the time to the first token."""
    flows: dict[str, int] = {}
    """Requests of every flow, where there are several."""
    rss_mb: float = 0.0
    pss_mb: float = 0.0
    peak_mb: float = 0.0
    load_average: float = 0.0
    pressure: float = 0.0
    step_ns: float = 0.0
    """Of CPU that a plain step of Python took right before it: twice as much where a neighbour is busy."""
    stolen: float = 0.0
    """Share of the machine's CPU time that its host gave to others meanwhile."""
    problems: list[str] = []
    void: list[str] = []
    """Why this row counts for nothing; empty if it does count."""

    def request_us(self) -> float:
        """Return the gateway's CPU per request, in microseconds."""
        return self.gateway_cpu_s / self.requests * _US if self.requests else 0.0

    def token_us(self) -> float:
        """Return the gateway's CPU per token, in microseconds."""
        return self.gateway_cpu_s / self.tokens * _US if self.tokens else 0.0


def void_reasons(row: Row, *, has_cpu: bool, cores: int) -> list[str]:
    """Return why a row does not count: wrong answers, none, or the bottleneck was not the gateway.

    A process that uses more CPU than the gateway takes it away from it only on a machine with
    little to spare: it does not count where all of them together had half of its `cores` left.
    """
    reasons = []
    if row.errors:
        reasons.append(f"{row.errors} answers were wrong")
    if not row.requests and not row.tokens:
        reasons.append("nothing was answered")
    for flow, none in ((RUNS, "no run of tools ended"), (PICTURES, "no picture was answered")):
        if row.flows.get(flow) == 0:
            reasons.append(none)
    if row.unsent:
        reasons.append(f"{row.unsent} requests could not even wait")
    others = [("a client", max(row.client_cpu_s, default=0.0), sum(row.client_cpu_s))]
    others.append(("the engine", row.engine_cpu_s, row.engine_cpu_s))
    others += [(who, used_s, used_s) for who, used_s in row.others_cpu_s.items()]
    together_s = row.gateway_cpu_s + sum(used_s for _, _, used_s in others)
    scarce = together_s > _SCARCE * cores * row.seconds
    for who, busiest_s, used_s in others:
        if row.seconds and busiest_s > _CORE_MAX * row.seconds:
            reasons.append(f"{who} used {busiest_s / row.seconds:.0%} of a core")
        if has_cpu and scarce and used_s > row.gateway_cpu_s:
            reasons.append(f"{who} used more CPU than the gateway")
    return reasons


class Figure(msgspec.Struct, kw_only=True):
    """Figure of a gateway in a workload over all rounds; `values` of the rounds that count."""

    workload: str
    gateway: str
    unit: str
    values: list[float]
    median: float | None = None
    spread: float | None = None
    """(largest - smallest) / median."""
    ratio: float | None = None
    """Median of the rounds' ratios to the gateway compared with."""
    result: bool = False
    """Whether it may be quoted: two rounds or more count, and the spread is within 20 per cent."""
    requests_per_s: float = 0.0
    tokens_per_s: float = 0.0
    prompt_tokens: float = 0.0
    ttft_ms: Times = Times()
    tpot_ms: Times = Times()
    client_share: float = 0.0
    engine_share: float = 0.0
    """CPU of the clients and of the engine, as shares of the gateway's."""
    pss_mb: float = 0.0
    peak_mb: float = 0.0
    steady_mb: float = 0.0
    """Memory after the last round, shared pages counted once."""
    requests: int = 0
    """Requests of all rounds, without those before and after what is counted."""
    notes: list[str] = []


Key = tuple[str, str, int, int]


def value_of(row: Row, workload: Workload, rows: Mapping[Key, Row]) -> float | None:
    """Return a row's figure: µs per request or token, or ms; None if there is none that counts."""
    if row.void:
        return None
    if workload.unit == "gap":
        return row.gap_ms.p99 or None
    if workload.unit == "first token":
        if not workload.added:
            return row.ttft_ms.p99
        alone = rows.get((workload.name, ALONE, row.round, row.lap))
        return None if alone is None else max(0.0, row.ttft_ms.p50 - alone.ttft_ms.p50)
    if not row.gateway_cpu_s:
        return None
    if workload.unit == "request":
        return row.request_us()
    if not workload.less:
        return row.token_us()
    other = rows.get((workload.less, row.gateway, row.round, row.lap))
    per_request = row.tokens / row.requests if row.requests else 0.0
    if other is None or other.void or per_request <= 1:
        return None
    return max(0.0, row.request_us() - other.request_us()) / (per_request - 1)


def figures_of(
    rows: Sequence[Row], workloads: Sequence[Workload], gateways: Sequence[str], base: str | None
) -> list[Figure]:
    """Return the figures, by workload and then gateway; ratios to `base`, round by round.

    That of a round is the median of those of its laps that count.
    """
    by_key = {(row.workload, row.gateway, row.round, row.lap): row for row in rows}
    rounds = sorted({row.round for row in rows})
    figures = []
    for workload in workloads:
        laps: dict[tuple[str, int], list[float]] = {}
        for row in rows:
            value = value_of(row, workload, by_key) if row.workload == workload.name else None
            if value is not None:
                laps.setdefault((row.gateway, row.round), []).append(value)
        values = {place: statistics.median(these) for place, these in laps.items()}
        for gateway in gateways:
            own = [row for row in rows if (row.workload, row.gateway) == (workload.name, gateway)]
            if not own:
                continue
            mine = {n: v for n in rounds if (v := values.get((gateway, n))) is not None}
            theirs = {n: v for n in rounds if base and (v := values.get((base, n)))}
            figure = _figure(workload, gateway, own, mine, theirs)
            if workload.added:
                figure.notes += _alone(workload, rows)
            figures.append(figure)
    return figures


def _figure(
    workload: Workload,
    gateway: str,
    rows: Sequence[Row],
    mine: Mapping[int, float],
    theirs: Mapping[int, float],
) -> Figure:
    counting = [row for row in rows if not row.void] or list(rows)
    figure = Figure(
        workload=workload.name,
        gateway=gateway,
        unit=_unit(workload),
        values=list(mine.values()),
        # Streams that are held from before until after have no rate.
        requests_per_s=0.0
        if workload.paced
        else _median([row.requests / max(row.seconds, 1e-9) for row in counting]),
        tokens_per_s=_median([row.tokens / max(row.seconds, 1e-9) for row in counting]),
        prompt_tokens=_median([row.prompt_tokens for row in counting]),
        ttft_ms=_middle([row.ttft_ms for row in counting]),
        tpot_ms=_middle([row.tpot_ms for row in counting]),
        client_share=_median([_share(sum(row.client_cpu_s), row) for row in counting]),
        engine_share=_median([_share(row.engine_cpu_s, row) for row in counting]),
        pss_mb=_median([row.pss_mb for row in counting]),
        peak_mb=max(row.peak_mb for row in counting),
        steady_mb=rows[-1].pss_mb,
        requests=sum(row.requests for row in counting),
    )
    if mine:
        figure.median = statistics.median(mine.values())
        if figure.median:
            figure.spread = (max(mine.values()) - min(mine.values())) / figure.median
        ratios = [value / theirs[number] for number, value in mine.items() if number in theirs]
        figure.ratio = statistics.median(ratios) if ratios else None
    figure.result = figure.spread is not None and len(mine) > 1 and figure.spread <= SPREAD_MAX
    figure.notes = _notes(figure, rows)
    if workload.paced and figure.tpot_ms.p50 > _LATE_MAX * workload.step_ms:
        figure.notes.append(f"the pace was not kept: a token every {figure.tpot_ms.p50:.0f} ms")
    return figure


def _unit(workload: Workload) -> str:
    return "ms" if workload.unit in ("first token", "gap") else f"µs per {workload.unit}"


def _notes(figure: Figure, rows: Sequence[Row]) -> list[str]:
    notes = [f"round {row.round + 1}: {'; '.join(row.void)}" for row in rows if row.void]
    notes += [f"round {row.round + 1}: {row.problems[0]}" for row in rows if row.problems]
    if figure.values and not figure.result:
        why = f"the rounds spread by {figure.spread or 0:.0%}" if len(figure.values) > 1 else ""
        notes.append(f"no result: {why or 'only one round counts'}")
    if any(row.upstream == "http" for row in rows):
        notes.append("its engine speaks HTTP")
    return list(dict.fromkeys(notes))


def _alone(workload: Workload, rows: Sequence[Row]) -> list[str]:
    """Return the line about the engine alone, whose time is no gateway's."""
    times = [
        row.ttft_ms.p50 for row in rows if (row.workload, row.gateway) == (workload.name, ALONE)
    ]
    if not times:
        return ["nobody asked the engine alone, so what the gateway adds is not known"]
    return [f"less {_median(times):.2f} ms, which the engine alone takes"]


def _share(used_s: float, row: Row) -> float:
    return used_s / row.gateway_cpu_s if row.gateway_cpu_s else 0.0


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0


def _middle(times: Sequence[Times]) -> Times:
    """Return the median of each percentile over the rounds."""
    told = [one for one in times if one.count]
    if not told:
        return Times()
    p50, p90, p99 = (
        _median([getattr(one, name) for one in told]) for name in ("p50", "p90", "p99")
    )
    return Times(sum(one.count for one in told), p50, p90, p99)
