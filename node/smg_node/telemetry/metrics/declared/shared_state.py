"""Shared state metrics: entries, documents, saves, upkeep; and what sources of workers show."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

STATE_HELD = Metric(
    "smg_node_state_held",
    "gauge",
    "1 once this node holds the cluster's state, 0 while it is joining.",
    pulled=True,
)
STATE_ENTRIES = Metric(
    "smg_node_state_entries",
    "gauge",
    "Live entries of shared state, by kind.",
    ("kind",),
    pulled=True,
)
STATE_BYTES = Metric(
    "smg_node_state_bytes",
    "gauge",
    "What the documents of shared state hold, history included, by kind.",
    ("kind",),
    pulled=True,
)
STATE_DOCUMENTS = Metric(
    "smg_node_state_documents",
    "gauge",
    "Documents of shared state that are in use, by kind.",
    ("kind",),
    pulled=True,
)
STATE_UNSAVED = Metric(
    "smg_node_state_unsaved",
    "gauge",
    "Documents that are not on disk as they are now; above zero for long, the disk does not take them.",
    pulled=True,
)
STATE_SAVES = Metric(
    "smg_node_state_saves_total",
    "counter",
    "Times shared state was written to disk (saved), could not be (failed), or a file was set aside"
    " (damaged).",
    ("outcome",),
    pulled=True,
)
STATE_FULL = Metric(
    "smg_node_state_full_total",
    "counter",
    "Writes that were refused because their document is full.",
    pulled=True,
)
STATE_LEARNED = Metric(
    "smg_node_state_learned_total",
    "counter",
    "Documents and tables that an exchange with another node changed, by kind.",
    ("kind",),
    pulled=True,
)
STATE_REFUSED = Metric(
    "smg_node_state_refused_total",
    "counter",
    "Gossip of shared state that made no sense, by what it claimed to be.",
    ("what",),
    pulled=True,
)
STATE_UPKEEP = Metric(
    "smg_node_state_upkeep_total",
    "counter",
    "What keeps shared state whole: gap (a lost update was fetched), epoch (a document was begun anew),"
    " resealed (a secret got the new key), forgotten (all was dropped after too long an absence),"
    " left_out (a row that may be lost was left to the next exchange, for want of room in packets).",
    ("what",),
    pulled=True,
)
STATE_FAULTS = Metric(
    "smg_node_state_faults_total",
    "counter",
    "Inputs that failed because of a mistake of ours.",
    pulled=True,
)
STATE_OTHER = Metric(
    "smg_node_state_other_total",
    "counter",
    "Whatever else shared state counts, by its own name for it.",
    ("what", "detail"),
    pulled=True,
)

STATE_METRICS: Final[tuple[Metric, ...]] = (
    STATE_HELD,
    STATE_ENTRIES,
    STATE_BYTES,
    STATE_DOCUMENTS,
    STATE_UNSAVED,
    STATE_SAVES,
    STATE_FULL,
    STATE_LEARNED,
    STATE_REFUSED,
    STATE_UPKEEP,
    STATE_FAULTS,
    STATE_OTHER,
)
DISCOVERY_SIGHTINGS = Metric(
    "smg_node_discovery_sightings",
    "gauge",
    "Endpoints that a source shows this node now: `kubernetes/NAME`, `dns/NAME`, its own `file@NODE`, `command@NODE`.",
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
    "1 where this node writes what the source shows: one node of the cluster. Not of lists, which are each node's own.",
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
    "Workers that this node wrote into the cluster's state for a source: `add`, `change`, `flip` (ready or not), "
    "`release` (to another source that shows it) or `drop`.",
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
