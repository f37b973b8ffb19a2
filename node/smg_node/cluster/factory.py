"""Factory of a node's part in the cluster: a mesh member where a mesh is configured, else
standalone.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smg_mesh.shared import Shared
from smg_node.cluster.cluster_meters import watch_mesh, watch_state
from smg_node.cluster.membership.cluster_interface import ClusterInterface
from smg_node.cluster.membership.mesh_options import mesh_options, state_homes, state_options
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.cluster.membership.standalone import StandaloneNode
from smg_node.cluster.prefix_hints.prefix_sharing import PrefixSharing
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock, Rng
from smg_node.fleet.fleet import Fleet
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.telemetry.metrics.meters import Meters

if TYPE_CHECKING:
    from smg_mesh.mesh import SeedFinder


def build_shared(settings: Settings, *, clock: Clock, rng: Rng, meters: Meters) -> Shared:
    """Return what this node shares, or would share; nothing is opened yet."""
    data_dir, before = state_homes(settings)
    shared = Shared(
        settings.name,
        data_dir=data_dir,
        before=before,
        options=state_options(settings),
        rng=rng,
        wall_ms=clock.now_ms,
        monotonic_s=clock.monotonic_s,
    )
    watch_state(meters, shared)
    return shared


def build_cluster(
    settings: Settings,
    farewell: Shutdown,
    *,
    shared: Shared,
    version: str,
    clock: Clock,
    rng: Rng,
    meters: Meters,
    finders: Sequence["SeedFinder"] = (),
) -> ClusterInterface:
    """Return this node's part; nothing is opened yet. It starts and stops `shared`, and asks `finders` for peers."""
    if not settings.mesh.enabled:
        return StandaloneNode(settings.name, farewell, clock, shared)
    # Imported here: a node alone does not hold the transport and the ciphers for peers it cannot have.
    from smg_mesh.mesh import Mesh
    from smg_node.cluster.membership.member import Member

    mesh = Mesh(
        mesh_options(settings, version=version),
        rng=rng,
        wall_ms=clock.now_ms,
        monotonic_s=clock.monotonic_s,
        shared=shared,
        finders=finders,
    )
    watch_mesh(meters, mesh)
    security = "in PLAIN TEXT" if settings.mesh.insecure else "encrypted"
    return Member(mesh, farewell, security=security)


def build_sharing(
    settings: Settings,
    shared: Shared,
    prefixes: Prefixes,
    fleet: Fleet,
    *,
    monotonic_s: Callable[[], float],
    meters: Meters,
) -> PrefixSharing | None:
    """Return the prefix sharing between nodes; None without other nodes, or where it is switched
    off.
    """
    if not (settings.mesh.enabled and settings.kv.enabled and settings.kv.share):
        return None
    sharing = PrefixSharing(
        prefixes.index,
        shared.hints,
        fleet,
        living=shared.living,
        all_follow=lambda: fleet.listening.options.subscribers == "all",
        registered=lambda: len(shared.workers),
        monotonic_s=monotonic_s,
    )
    prefixes.tell_assumed(sharing.assumed)
    sharing.watched(meters)
    return sharing
