"""The desk that tells what a cluster counts, of a node whose inside is a script."""

from smg_node.cluster.asking import Asking
from smg_node.cluster.numbers import Numbers, own_numbers
from smg_node.http.ports import Cluster, HealthReport
from smg_node.telemetry.metrics import Meters
from smg_node.world import SystemClock


def numbers_of(
    name: str, meters: Meters, cluster: Cluster, mesh: Asking, health: HealthReport
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
