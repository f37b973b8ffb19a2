"""Reference page of the metrics for operators, made from the declarations.

`python -m smg_node.telemetry.metrics.reference` prints it; `deploy/reference/metrics.md` is its output.
"""

import sys

from smg_node.telemetry.metrics.declared.node import METRICS
from smg_node.telemetry.metrics.metric import Metric

_HEAD = """# Metrics

Generated from `smg_node/telemetry/metrics/declared/node.py` by `make reference`; do not edit.

Served in the Prometheus and OpenMetrics text formats under `/metrics` on the metrics port, and on the
main port for operators. Every label is bounded: models nobody serves are counted as `unknown`, names
beyond the first 100 as `other`. The usual `process_*` and `python_gc_*` metrics come along.

| Name | Type | Labels | Meaning |
|---|---|---|---|
"""


def render_metrics_reference() -> str:
    """Return the whole page, ending with a line feed."""
    rows = "".join(_row(metric) for metric in METRICS)
    buckets = "".join(
        f"- `{metric.name}`: {', '.join(f'{edge:g}' for edge in metric.buckets)}\n"
        for metric in METRICS
        if metric.buckets
    )
    return f"{_HEAD}{rows}\n## Buckets, in seconds\n\n{buckets}"


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
    return f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |\n"


if __name__ == "__main__":
    sys.stdout.write(render_metrics_reference())
