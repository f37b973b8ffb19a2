"""Prefix hints metrics: what nodes exchange about the engines' prefix caches."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

PREFIX_HINTS = Metric(
    "smg_node_prefix_hints_total",
    "counter",
    "Blocks of engines' caches that nodes told each other of. `what` is told (to some peer), unsaid (to one"
    " that was too far behind), heard, tell, untell or assume (taken into the index, out of it, or in as a"
    " guess), mentioned (own guesses), or lost (not taken in: too much waited, or the worker is gone).",
    ("what",),
    pulled=True,
)
PREFIX_HINT_CALLS = Metric(
    "smg_node_prefix_hint_calls_total",
    "counter",
    "Calls between nodes about prefixes: sent, failed or served.",
    ("outcome",),
    pulled=True,
)
PREFIX_HINT_BYTES = Metric(
    "smg_node_prefix_hint_bytes_total",
    "counter",
    "What this node sent to others about prefixes, answers included.",
    pulled=True,
)
PREFIX_HINT_TROUBLES = Metric(
    "smg_node_prefix_hint_troubles_total",
    "counter",
    "gap (something was missed), fetched (all that a peer knows of a worker was asked for), or refused (a"
    " word that made no sense, or came from a stranger).",
    ("what",),
    pulled=True,
)
PREFIX_TOLD_WORKERS = Metric(
    "smg_node_prefix_told_workers",
    "gauge",
    "Workers whose caches this node knows from another node.",
    pulled=True,
    merge="max",
)
PREFIX_STALE_SECONDS = Metric(
    "smg_node_prefix_stale_seconds",
    "gauge",
    "Since the last word of a node that is believed about prefixes; one at rest speaks every quarter of"
    " an hour, among more than 30 nodes after half a minute for each.",
    ("node",),
    pulled=True,
    merge="max",
)

HINT_METRICS: Final[tuple[Metric, ...]] = (
    PREFIX_HINTS,
    PREFIX_HINT_CALLS,
    PREFIX_HINT_BYTES,
    PREFIX_HINT_TROUBLES,
    PREFIX_TOLD_WORKERS,
    PREFIX_STALE_SECONDS,
)
