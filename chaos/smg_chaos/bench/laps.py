"""Makes one row of the laps of a round: what was used and done is added up, what was waited is weighed by how often."""

from collections.abc import Callable, Sequence

import msgspec

from smg_chaos.bench.rows import Row, Times


def whole_rounds(rows: Sequence[Row]) -> list[Row]:
    """Return one row per workload, gateway and round, in order; laps that count for nothing are left out if others count."""
    laps: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        laps.setdefault((row.workload, row.gateway, row.round), []).append(row)
    return [_together(these) if len(these) > 1 else these[0] for these in laps.values()]


def _together(laps: Sequence[Row]) -> Row:
    good = [row for row in laps if not row.void] or laps
    last = good[-1]
    void = [f"lap {row.lap + 1}: {reason}" for row in laps for reason in row.void]
    return msgspec.structs.replace(
        last,
        lap=0,
        seconds=sum(row.seconds for row in good),
        requests=sum(row.requests for row in good),
        tokens=sum(row.tokens for row in good),
        errors=sum(row.errors for row in laps),
        unsent=sum(row.unsent for row in laps),
        checked_completely=sum(row.checked_completely for row in laps),
        prompt_tokens=_weighed([(row.requests, row.prompt_tokens) for row in good]),
        gateway_cpu_s=sum(row.gateway_cpu_s for row in good),
        engine_cpu_s=sum(row.engine_cpu_s for row in good),
        client_cpu_s=[sum(each) for each in zip(*(row.client_cpu_s for row in good), strict=True)],
        ttft_ms=_times(good, lambda row: row.ttft_ms),
        tpot_ms=_times(good, lambda row: row.tpot_ms),
        latency_ms=_times(good, lambda row: row.latency_ms),
        flows={name: sum(row.flows.get(name, 0) for row in good) for name in last.flows},
        peak_mb=max(row.peak_mb for row in laps),
        load_average=max(row.load_average for row in laps),
        pressure=max(row.pressure for row in laps),
        problems=[*(problem for row in laps for problem in row.problems), *void][:3],
        void=[] if any(not row.void for row in laps) else void,
    )


def _times(laps: Sequence[Row], of: Callable[[Row], Times]) -> Times:
    """Return the percentiles of all laps: the mean of each lap's, by how many values it had."""
    each = [of(row) for row in laps]
    p50, p90, p99 = (
        round(_weighed([(one.count, getattr(one, name)) for one in each]), 4)
        for name in ("p50", "p90", "p99")
    )
    return Times(sum(one.count for one in each), p50, p90, p99)


def _weighed(values: Sequence[tuple[int, float]]) -> float:
    together = sum(count for count, _ in values)
    return sum(count * value for count, value in values) / together if together else 0.0
