"""Limits metrics: requests by outcome, units charged and owed; all are read at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

LIMIT_REQUESTS = Metric(
    "smg_node_limit_requests_total",
    "counter",
    "Requests that a limit applied to, by outcome: admitted (and over), refused, or waited for rights first;"
    " the first 100 limits, then `other`.",
    ("limit", "outcome"),
    pulled=True,
)
LIMIT_CHARGED = Metric(
    "smg_node_limit_charged_total",
    "counter",
    "What requests that are over were charged of a limit, in its own unit.",
    ("limit",),
    pulled=True,
)
LIMIT_OWED = Metric(
    "smg_node_limit_owed_total",
    "counter",
    "The part of it that was used without a right, and is paid from the windows to come.",
    ("limit",),
    pulled=True,
)
LIMITED_OPEN = Metric(
    "smg_node_limited_requests_open",
    "gauge",
    "Requests under way that limits apply to, and that are not settled yet.",
    pulled=True,
)

LIMIT_METRICS: Final[tuple[Metric, ...]] = (
    LIMIT_REQUESTS,
    LIMIT_CHARGED,
    LIMIT_OWED,
    LIMITED_OPEN,
)
