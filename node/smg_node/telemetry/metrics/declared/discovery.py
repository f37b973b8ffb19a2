"""Discovery metrics: what sources of workers show, how old that is, and what was written of it."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

DISCOVERY_SIGHTINGS = Metric(
    "smg_node_discovery_sightings",
    "gauge",
    "Endpoints that a source shows this node now, `kubernetes/NAME`, `dns/NAME` or `file/…`.",
    ("source",),
    pulled=True,
)
DISCOVERY_AGE = Metric(
    "smg_node_discovery_view_age_seconds",
    "gauge",
    "Time since the source's view was known to be complete; not there before the first one.",
    ("source",),
    pulled=True,
)
DISCOVERY_FAILING = Metric(
    "smg_node_discovery_failing",
    "gauge",
    "1 while the source does not answer this node, or answers again for less than half a minute; its workers stay.",
    ("source",),
    pulled=True,
)
DISCOVERY_WRITER = Metric(
    "smg_node_discovery_writer",
    "gauge",
    "1 where this node writes what the source shows: one node of the cluster.",
    ("source",),
    pulled=True,
)
DISCOVERY_HELD = Metric(
    "smg_node_discovery_held",
    "gauge",
    "Workers that are kept although the source shows none any more, until discovery.empty_confirm_s is over.",
    ("source",),
    pulled=True,
)
DISCOVERY_REFUSED = Metric(
    "smg_node_discovery_refused",
    "gauge",
    "Endpoints that are shown and not registered: removed by an operator, shown by another source, too many.",
    ("source",),
    pulled=True,
)
DISCOVERY_UNUSABLE = Metric(
    "smg_node_discovery_unusable",
    "gauge",
    "What the source shows and what is no worker, or only in part, such as a pod with a wrong annotation.",
    ("source",),
    pulled=True,
)
DISCOVERY_WRITES = Metric(
    "smg_node_discovery_writes_total",
    "counter",
    "Workers that this node wrote into the cluster's state for a source: `add`, `change`, `flip` (ready or not) or `drop`.",
    ("source", "reason"),
)
DISCOVERY_METRICS: Final = (
    DISCOVERY_SIGHTINGS,
    DISCOVERY_AGE,
    DISCOVERY_FAILING,
    DISCOVERY_WRITER,
    DISCOVERY_HELD,
    DISCOVERY_REFUSED,
    DISCOVERY_UNUSABLE,
    DISCOVERY_WRITES,
)
