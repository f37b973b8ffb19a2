"""Pods of peers: what the API server says of the pods of this cluster's nodes → where their mesh may be found.

A pod counts from the moment that it has an address, whether it is ready or not: a node is not ready before it has found
its peers. One whose deletion is ordered, or that has ended, leads to nobody for long, and does not count. Whether a
member lives is judged by members and never by this.
"""

from dataclasses import dataclass
from typing import Final

from smg_node.discovery.kubernetes.objects import (
    NotUnderstoodError,
    Page,
    Pod,
    read_pod,
    shown,
)
from smg_node.discovery.kubernetes.pods import has_ended, is_ready, pod_address, port_list

_WRONG_MAX: Final = 16
"""What operators read of; more pods are wrong in the same way."""


@dataclass(frozen=True, slots=True)
class PeerPods:
    """Where peers may be, those that are ready first, and what could not be understood."""

    places: tuple[tuple[str, int], ...]
    """Numeric host and port, each once."""
    wrong: tuple[str, ...] = ()


def peer_pods(page: Page, *, port_annotation: str, port: int) -> PeerPods:
    """Return the peers of a page of pods. `port` is that of pods without the annotation, or with one that is no port."""
    found: dict[tuple[str, int], bool] = {}
    wrong: list[str] = []
    for item in page.items or ():
        try:
            pod = read_pod(item)
        except NotUnderstoodError as error:
            wrong.append(str(error))
            continue
        host = _host(pod, wrong)
        if host:
            place = host, _port(pod, port_annotation, port, wrong)
            found[place] = found.get(place, False) or is_ready(pod)
    places = sorted(found, key=lambda place: (not found[place], place))
    return PeerPods(tuple(places), tuple(wrong[:_WRONG_MAX]))


def _host(pod: Pod, wrong: list[str]) -> str:
    """Return the pod's first address, empty where it has none, ends or has ended."""
    if has_ended(pod) or pod.metadata.deletion_timestamp is not None:
        return ""
    try:
        return pod_address(pod)
    except ValueError as error:
        wrong.append(f"{_origin(pod)}: {error}")
        return ""


def _port(pod: Pod, annotation: str, port: int, wrong: list[str]) -> int:
    said = (pod.metadata.annotations or {}).get(annotation)
    if said is None:
        return port
    ports = port_list(said)
    if len(ports) == 1:
        return ports[0]
    wrong.append(
        f"{_origin(pod)}: its annotation {annotation} is {shown(said)[:60]!r}, and no port: {port} is taken"
    )
    return port


def _origin(pod: Pod) -> str:
    return shown(f"pod {pod.metadata.namespace}/{pod.metadata.name}")
