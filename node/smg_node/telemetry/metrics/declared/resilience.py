"""Resilience metrics: breakers, retries, overload, wait queue; all are read at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

BREAKER_STATE = Metric(
    "smg_node_worker_breaker_state",
    "gauge",
    "Whether this node passes a worker over because its calls there failed: 0 closed, 1 half open, 2 open.",
    ("worker",),
    pulled=True,
    merge="max",
)
BREAKER_OPENED = Metric(
    "smg_node_worker_breaker_opened_total",
    "counter",
    "Times the breaker of a worker opened.",
    ("worker",),
    pulled=True,
)
WORKER_PRESSURE = Metric(
    "smg_node_worker_pressure_total",
    "counter",
    "Calls that a worker turned away because it is full.",
    ("worker",),
    pulled=True,
)
RETRIES = Metric(
    "smg_node_retries_total",
    "counter",
    "Calls to engines that were to be made once more, by outcome: made, or refused because too many are.",
    ("model", "outcome"),
    pulled=True,
)
QUEUE_WAITING = Metric(
    "smg_node_queue_waiting",
    "gauge",
    "Requests that wait because all workers of their model are full.",
    ("model", "class"),
    pulled=True,
)
QUEUE_LEFT = Metric(
    "smg_node_queue_requests_total",
    "counter",
    "Requests that had to wait, by outcome: served, refused (no place), expired (time was up), left"
    " (the client went away).",
    ("model", "class", "outcome"),
    pulled=True,
)
QUEUE_SECONDS = Metric(
    "smg_node_queue_wait_seconds_total",
    "counter",
    "Seconds that the served ones waited.",
    ("model", "class"),
    pulled=True,
)

RESILIENCE_METRICS: Final[tuple[Metric, ...]] = (
    BREAKER_STATE,
    BREAKER_OPENED,
    WORKER_PRESSURE,
    RETRIES,
    QUEUE_WAITING,
    QUEUE_LEFT,
    QUEUE_SECONDS,
)
