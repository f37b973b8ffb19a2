"""Every dashboard, once, and every metric that is in none of them, with the reason."""

from typing import Final

from smg_node.telemetry.dashboard import Board
from smg_node.telemetry.dashboard_cluster import LIMITS, MESH
from smg_node.telemetry.dashboard_node import HISTORY, PROCESSES
from smg_node.telemetry.dashboard_requests import OVERVIEW
from smg_node.telemetry.dashboard_routing import ROUTING
from smg_node.telemetry.metric import Metric

BOARDS: Final[tuple[Board, ...]] = (OVERVIEW, ROUTING, LIMITS, MESH, HISTORY, PROCESSES)
UNSHOWN: Final[dict[Metric, str]] = {}
"""Metrics that stand in no panel, and why not."""
