"""Recordings: series that Prometheus precomputes for cluster dashboards and for autoscalers.

Names have the form `smg:WHAT:HOW`. Series are by job: a cluster is queried, and its nodes come and
go.
"""

from dataclasses import dataclass
from typing import Final

from smg_node.telemetry.metrics.declared import limits as limit_metrics
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.declared import resilience as resilience_metrics
from smg_node.telemetry.metrics.declared import store as store_metrics
from smg_node.telemetry.metrics.declared import usage
from smg_node.telemetry.metrics.metric import Metric

SPAN: Final = "5m"


@dataclass(frozen=True, slots=True)
class Recording:
    """One rule: its name, its expression, the labels its series have, and what they mean."""

    name: str
    expression: str
    labels: tuple[str, ...]
    meaning: str


def _rate(name: str, metric: Metric, labels: tuple[str, ...], meaning: str) -> Recording:
    by = ("job", *labels)
    expression = f"sum by ({', '.join(by)}) (rate({metric.name}[{SPAN}]))"
    return Recording(f"smg:{name}:rate{SPAN}", expression, by, meaning)


def _quantiles(
    name: str, metric: Metric, labels: tuple[str, ...], meaning: str
) -> tuple[Recording, ...]:
    by = ("job", *labels)
    series = f"sum by ({', '.join(('le', *by))}) (rate({metric.name}_bucket[{SPAN}]))"
    return tuple(
        Recording(
            f"smg:{name}:p{round(100 * part)}_{SPAN}",
            f"histogram_quantile({part:g}, {series})",
            by,
            f"{meaning}: {part:.0%} were not above it.",
        )
        for part in (0.5, 0.95, 0.99)
    )


def _part(name: str, some: str, whole: str, labels: tuple[str, ...], meaning: str) -> Recording:
    by = ("job", *labels)
    # Where none of it ever happened there is no series of it, and the part is zero.
    expression = f"({some} or 0 * {whole}) / ({whole} > 0)"
    return Recording(f"smg:{name}:ratio{SPAN}", expression, by, meaning)


def _summed(metric: Metric, by: str, selector: str = "") -> str:
    return f"sum by ({by}) (rate({metric.name}{selector}[{SPAN}]))"


RECORDINGS: Final[tuple[Recording, ...]] = (
    _rate(
        "http_requests", declared.HTTP_REQUESTS, ("route", "status"), "Answered requests a second."
    ),
    Recording(
        "smg:http_requests_inflight:avg",
        f"avg by (job) ({declared.HTTP_INFLIGHT.name})",
        ("job",),
        "Requests that a node has open, on average: what to scale nodes by.",
    ),
    _rate(
        "generations",
        declared.GENERATIONS,
        ("model", "outcome"),
        "Generations that ended, a second.",
    ),
    _part(
        "generations_failed",
        _summed(declared.GENERATIONS, "job, model", '{outcome="failed"}'),
        _summed(declared.GENERATIONS, "job, model"),
        ("model",),
        "Part of the generations that failed.",
    ),
    *_quantiles("time_to_first_token_seconds", declared.TTFT_SECONDS, ("model",), "First token"),
    *_quantiles("time_per_output_token_seconds", declared.TPOT_SECONDS, ("model",), "Each token"),
    _rate("prompt_tokens", declared.PROMPT_TOKENS, ("model",), "Tokens of prompts a second."),
    _rate(
        "completion_tokens", declared.COMPLETION_TOKENS, ("model",), "Generated tokens a second."
    ),
    _part(
        "prompt_tokens_cached",
        _summed(declared.CACHED_TOKENS, "job, model"),
        _summed(declared.PROMPT_TOKENS, "job, model"),
        ("model",),
        "Part of the prompts that engines had in their caches.",
    ),
    _rate("tenant_requests", usage.USAGE_REQUESTS, ("tenant",), "Requests of a tenant a second."),
    _rate("tenant_refused", usage.USAGE_REFUSED, ("tenant",), "Those that were refused."),
    _rate(
        "tenant_prompt_tokens",
        usage.USAGE_PROMPT_TOKENS,
        ("tenant",),
        "Tokens of its prompts a second.",
    ),
    _rate(
        "tenant_completion_tokens",
        usage.USAGE_COMPLETION_TOKENS,
        ("tenant",),
        "Tokens of its answers a second.",
    ),
    _rate(
        "limit_requests",
        limit_metrics.LIMIT_REQUESTS,
        ("limit", "outcome"),
        "Requests that a limit applied to, a second.",
    ),
    _rate(
        "queue_requests",
        resilience_metrics.QUEUE_LEFT,
        ("model", "outcome"),
        "Requests that had to wait, a second.",
    ),
    *_quantiles(
        "store_operation_duration_seconds", store_metrics.STORE_SECONDS, ("op",), "The store"
    ),
    *_quantiles(
        "loop_lag_seconds", declared.LOOP_LAG_SECONDS, ("instance",), "The event loop's delay"
    ),
)
