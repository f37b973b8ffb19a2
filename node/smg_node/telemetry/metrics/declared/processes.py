"""Processes metrics of a node that has several: linked and lost ones; read at scrape time."""

from typing import Final

from smg_node.telemetry.metrics.metric import Metric

PROCESSES_LINKED = Metric(
    "smg_node_processes_linked",
    "gauge",
    "Data processes that are linked with the one that controls.",
    pulled=True,
    merge="control",
)
PROCESSES_LOST = Metric(
    "smg_node_processes_lost_total",
    "counter",
    "Data processes that ended without having been told to, since the control process began.",
    pulled=True,
    merge="control",
)

PROCESS_METRICS: Final = (PROCESSES_LINKED, PROCESSES_LOST)
