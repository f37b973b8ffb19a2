"""Dashboards: the list of all, and every metric that is in none of them, with the reason."""

from typing import Final

from smg_node.telemetry.grafana.cluster import LIMITS, MESH
from smg_node.telemetry.grafana.node import HISTORY, PROCESSES
from smg_node.telemetry.grafana.panels import Board
from smg_node.telemetry.grafana.requests import OVERVIEW
from smg_node.telemetry.grafana.routing import ROUTING
from smg_node.telemetry.metrics.metric import Metric

BOARDS: Final[tuple[Board, ...]] = (OVERVIEW, ROUTING, LIMITS, MESH, HISTORY, PROCESSES)
UNSHOWN: Final[dict[Metric, str]] = {}
"""Metrics that stand in no panel, and why not."""
