"""The desk that tells what a cluster counts, of a node whose inside is a script."""

from smg_node.cluster.membership.member_query import MemberQueries
from smg_node.cluster.reports.cluster_metrics import Numbers, own_numbers
from smg_node.http.ports.node import Cluster, HealthReport
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.meters import Meters


def numbers_of(
    name: str, meters: Meters, cluster: Cluster, mesh: MemberQueries, health: HealthReport
) -> Numbers:
    """Return what tells of these counts, and of what the mesh's members tell."""
    return Numbers(
        name,
        "1.2.3",
        own_numbers(meters),
        cluster.members,
        mesh,
        health=health.health,
        now_s=SystemClock().monotonic_s,
    )
