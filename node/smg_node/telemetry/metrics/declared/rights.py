"""Rights metrics: packets, saves and refusals of rights to spend limits; all are read at scrape
time.
"""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

RIGHTS_PACKETS = Metric(
    "smg_node_rights_packets_total",
    "counter",
    "Datagrams between nodes about rights to spend limits, in and out; none while nothing is limited.",
    ("direction",),
    pulled=True,
)
RIGHTS_SAVES = Metric(
    "smg_node_rights_saves_total",
    "counter",
    "Times that what was minted was written to disk (saved), could not be (failed: then this node gave no"
    " vote), waited in vain (dropped), or was found damaged.",
    ("outcome",),
    pulled=True,
)
RIGHTS_REFUSED = Metric(
    "smg_node_rights_refused_total",
    "counter",
    "What other nodes said of rights and was not heard: no message (wire), under another's name (name), or"
    " more than the disk could take (disk).",
    ("why",),
    pulled=True,
)

RIGHTS_DIFFERENCES = Metric(
    "smg_node_rights_differences_total",
    "counter",
    "Units that nodes spent beyond a limit, as the owner of its rights found when a window was over. Always 0, or"
    " there is a mistake in this software: the log has the rows of both sides (admission.audit).",
    pulled=True,
)

RIGHTS_METRICS: Final[tuple[Metric, ...]] = (
    RIGHTS_PACKETS,
    RIGHTS_SAVES,
    RIGHTS_REFUSED,
    RIGHTS_DIFFERENCES,
)
