"""Finder of peers by the settings: the pods of this cluster's nodes, as seeds of the mesh."""

from smg_mesh.config import DEFAULT_PORT
from smg_node.config.address import split_peer
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock
from smg_node.discovery.kubernetes.api_server import ApiServer, access_reader
from smg_node.discovery.kubernetes.peer_finder import PeerFinder, PeerOptions


def build_peer_finder(settings: Settings, clock: Clock) -> PeerFinder:
    """Return the finder of a node that is told a selection of its peers' pods."""
    selector, namespace = settings.peer_pods
    mesh, kubeconfig = settings.mesh, settings.discovery.kubeconfig
    own = (split_peer(mesh.advertise)[1] if mesh.advertise else 0) or mesh.listen.port
    options = PeerOptions(
        selector=selector,
        namespace=namespace,
        port_annotation=mesh.kubernetes_port_annotation,
        port=own or DEFAULT_PORT,
    )
    reader = access_reader("" if kubeconfig is None else str(kubeconfig))
    return PeerFinder(options, ApiServer(reader), monotonic_s=clock.monotonic_s)
