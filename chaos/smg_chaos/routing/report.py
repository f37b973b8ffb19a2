"""Report of trials: the plans of a comparison, and their results as a table or as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from smg_chaos.routing.model.trial_plan import OMNISCIENT, Plan
from smg_chaos.routing.model.trial_result import Result

_BASE: Final = "round_robin"
_COLUMNS: Final = (
    *("policy", "nodes", "hits", "of omniscient", "TTFT mean", "against rr", "p50", "p99"),
    *("against rr", "max/mean 10 s", "max/mean", "open", "requests"),
)


def trials(model: Plan, policies: Sequence[str], nodes: Sequence[int]) -> Iterator[Plan]:
    """Yield the plans of all trials: an omniscient router is one, whatever the number of nodes."""
    for policy in policies:
        for count in nodes if policy != OMNISCIENT else (1,):
            yield replace(model, policy=policy, node_count=count)


def table(model: Plan, results: Sequence[Result]) -> str:
    """Return the figures as text: shares in percent, times in milliseconds."""
    lines = [list(_COLUMNS), *(_row(one, results) for one in results)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_COLUMNS))]
    shown = [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    size, engines = model.size, model.engine_count
    head = (
        f"{engines} engines, each {size.gpus} H100, {size.kv_tokens:,} tokens of KV,"
        f" prefill {size.prefill_rate:,.0f} tokens/s; {model.per_engine_s:g} requests/s each;"
        f" {model.seconds - model.warm_s:.0f} s counted; an endless cache would hit"
        f" {100 * results[0].possible:.1f} %"
    )
    return "\n".join([head, "", *shown])


def as_json(model: Plan, results: Sequence[Result]) -> dict[str, Any]:
    """Return everything as JSON."""
    return {"plan": asdict(model), "results": [asdict(one) for one in results]}


def _row(one: Result, results: Sequence[Result]) -> list[str]:
    base = next(
        (other for other in results if (other.policy, other.nodes) == (_BASE, one.nodes)), None
    )
    best = next((other for other in results if other.policy == OMNISCIENT), None)
    more = f" ({one.unanswered} unanswered)" if one.unanswered else ""
    return [
        one.policy,
        str(one.nodes),
        f"{100 * one.hits:.1f} %",
        "" if best is None else f"{100 * one.hits / best.hits:.1f} %",
        _ms(one.ttft_mean_s),
        "" if base is None else _change(one.ttft_mean_s, base.ttft_mean_s),
        _ms(one.ttft_p50_s),
        _ms(one.ttft_p99_s),
        "" if base is None else _change(one.ttft_p99_s, base.ttft_p99_s),
        f"{one.spread:.2f}",
        f"{one.busiest:.2f}",
        f"{one.open_mean:.1f}",
        f"{one.requests}{more}",
    ]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms"


def _change(value: float, base: float) -> str:
    return f"{100 * (value / base - 1):+.0f} %"
