"""Pods as workers: what the API server says of a pod → its sightings.

A pod is one worker, or as many as its annotation names ports. It is ready where it runs and its condition `Ready` is
true, in which readiness gates are included; it leaves from the moment that its deletion is ordered. One that completed
or failed keeps its address for a while and is none any more. Of two addresses the first is taken: a pod of two families
is one worker.

What cannot be understood costs as little as possible: a wrong annotation its own meaning, a wrong port that pod.
"""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from smg_node.config.worker_url import (
    BOOTSTRAP_PORT_LABEL,
    CONNECTOR_LABEL,
    ENGINE_ID_LABEL,
    ROLES,
)
from smg_node.core.errors import SmgError
from smg_node.discovery.kubernetes.objects import Pod, shown
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.reading import Reading
from smg_node.discovery.kubernetes.url_form import (
    NAMESPACE_LABEL,
    NODE_LABEL,
    POD_LABEL,
    PORT_MAX,
    VALUE_MAX_CHARACTERS,
    ZONE_LABEL,
    UrlForm,
    named_port,
)
from smg_node.discovery.sighting import Sighting, SightingState, Unusable

_ZONE: Final = "topology.kubernetes.io/zone"
_ENDED: Final = ("Succeeded", "Failed")
_PORTS_MAX: Final = 64
"""Workers of one pod: engines that share a machine are at most as many as its accelerators are."""


class PodReader:
    """Reads pods as the workers that the options make of them."""

    def __init__(self, options: KubernetesOptions) -> None:
        """`options` may hold a spec that is none of a worker URL: SmgError then."""
        self._options = options
        self._form = UrlForm(options)

    def read(self, pod: Pod) -> Reading:
        """Return what a pod is as workers, and what of it could not be used."""
        return _PodOnce(pod, self._options, self._form).read()


class _PodOnce:
    """One pod while it is read; what is wrong with it is collected on the way."""

    def __init__(self, pod: Pod, options: KubernetesOptions, form: UrlForm) -> None:
        self._pod = pod
        self._options = options
        self._form = form
        self._labels = pod.metadata.labels or {}
        self._annotations = pod.metadata.annotations or {}
        self._origin = shown(f"pod {pod.metadata.namespace}/{pod.metadata.name}")
        self._wrong: list[str] = []

    def read(self) -> Reading:
        created = self._pod.metadata.creation_timestamp or ""
        is_leaving = self._pod.metadata.deletion_timestamp is not None
        if has_ended(self._pod):
            return Reading(created=created, ends=True)
        address = self._address()
        sightings = tuple(self._sightings(address)) if address else ()
        return Reading(
            sightings=sightings,
            unusable=tuple(Unusable(self._origin, why) for why in self._wrong),
            created=created,
            ends=is_leaving,
        )

    def _address(self) -> str:
        """Return the pod's first address, empty as long as it has none."""
        try:
            return pod_address(self._pod)
        except ValueError as error:
            self._wrong.append(str(error))
            return ""

    def _sightings(self, address: str) -> Iterator[Sighting]:
        state = self._state()
        role = self._role()
        ports = self._ports()
        bootstrap = self._bootstrap_ports(len(ports)) if role == "prefill" else ()
        model = self._model()
        labels = self._own_labels()
        for at, port in enumerate(ports):
            own = {**labels, BOOTSTRAP_PORT_LABEL: str(bootstrap[at])} if bootstrap else labels
            try:
                url = self._form.url(address, port, role=role, model=model, labels=own)
            except SmgError as error:
                self._wrong.append(error.message)
                continue
            yield Sighting(url, state, self._pod.metadata.uid, self._origin)

    def _state(self) -> SightingState:
        if self._pod.metadata.deletion_timestamp is not None:
            return SightingState.LEAVING
        return SightingState.READY if is_ready(self._pod) else SightingState.UNREADY

    def _ports(self) -> tuple[int, ...]:
        """Return the ports of the annotation, or the configured one; none where neither can be used."""
        said = self._annotations.get(self._options.ports_annotation)
        if said is not None:
            ports = port_list(said)
            if ports:
                return ports
            self._wrong.append(
                f"its annotation {self._options.ports_annotation} is {shown(said)[:60]!r}, and no list of ports"
                " such as 50051,50052"
            )
        port = self._configured_port()
        return () if port is None else (port,)

    def _configured_port(self) -> int | None:
        wanted = self._options.port
        if wanted.isascii() and wanted.isdigit():
            return int(wanted)
        named = [
            (port.name, port.container_port)
            for container in self._pod.spec.containers or ()
            for port in container.ports or ()
            if port.protocol == "TCP"
        ]
        try:
            return named_port(wanted, named, "container port")
        except ValueError as error:
            self._wrong.append(str(error))
            return None

    def _bootstrap_ports(self, wanted: int) -> tuple[int, ...]:
        """Return the bootstrap port of each worker, none where the pod names none or something else."""
        said = self._annotations.get(self._options.bootstrap_annotation)
        if said is None:
            return ()
        ports = port_list(said)
        if len(ports) == 1:
            return ports * wanted
        if len(ports) == wanted:
            return ports
        self._wrong.append(
            f"its annotation {self._options.bootstrap_annotation} is {shown(said)[:60]!r}, and neither one port"
            f" nor {wanted} of them"
        )
        return ()

    def _role(self) -> str:
        default = self._options.role
        kind, _, key = self._options.role_from.partition(":")
        said = self._labels.get(key) if kind == "label" else None
        if said is None or said in ROLES:
            return said or default
        self._wrong.append(
            f"its label {key} is {shown(said)[:60]!r}, and no role: {default} is taken"
        )
        return default

    def _model(self) -> str | None:
        kind, _, key = self._options.model_from.partition(":")
        said: str | None
        match kind:
            case "namespace":
                said = self._pod.metadata.namespace
            case "label":
                said = self._labels.get(key)
            case "annotation":
                said = self._annotations.get(key)
            case _:
                return None
        if not said:
            self._wrong.append(
                f"it has no {kind} {key}, so the engine is asked for its model".replace("  ", " ")
            )
        elif self._is_usable("model", said):
            return said
        return None

    def _own_labels(self) -> Mapping[str, str]:
        """Return the worker's labels that come from the pod."""
        found = {
            POD_LABEL: self._pod.metadata.name,
            NAMESPACE_LABEL: self._pod.metadata.namespace,
            NODE_LABEL: self._pod.spec.node_name,
            ZONE_LABEL: self._labels.get(_ZONE, ""),
            CONNECTOR_LABEL: self._annotations.get(self._options.connector_annotation, ""),
            ENGINE_ID_LABEL: self._annotations.get(self._options.engine_id_annotation, ""),
        }
        return {
            label: value
            for label, value in found.items()
            if value and self._is_usable(label, value)
        }

    def _is_usable(self, what: str, value: str) -> bool:
        """Return whether a worker's URL can hold that; it is noted as wrong otherwise."""
        if len(value) <= VALUE_MAX_CHARACTERS and value.isprintable():
            return True
        self._wrong.append(
            f"its {what} is not printable text of at most {VALUE_MAX_CHARACTERS} characters"
        )
        return False


def pod_address(pod: Pod) -> str:
    """Return a pod's first address, empty as long as it has none; ValueError where that is no address."""
    listed = pod.status.pod_ips or ()
    text = pod.status.pod_ip or (listed[0].ip if listed else "")
    try:
        return str(ip_address(text)) if text else ""
    except ValueError:
        raise ValueError(f"its address {shown(text)[:60]!r} is none") from None


def has_ended(pod: Pod) -> bool:
    """Return whether nothing runs in a pod any more: it keeps its address for a while."""
    return pod.status.phase in _ENDED


def is_ready(pod: Pod) -> bool:
    """Return whether a pod runs and says that it is ready."""
    conditions = pod.status.conditions or ()
    says_so = any(one.type == "Ready" and one.status == "True" for one in conditions)
    return says_so and pod.status.phase == "Running"


def port_list(text: str) -> tuple[int, ...]:
    """Return the ports in `text`, `50051,50052`, each once; none if it is anything else."""
    words = [word.strip() for word in text.split(",", _PORTS_MAX)]
    if len(words) > _PORTS_MAX:
        return ()
    if not all(word.isascii() and word.isdigit() and len(word) <= 5 for word in words):
        return ()
    ports = tuple(int(word) for word in words)
    are_ports = all(0 < port <= PORT_MAX for port in ports)
    return ports if are_ports and len(set(ports)) == len(ports) else ()
