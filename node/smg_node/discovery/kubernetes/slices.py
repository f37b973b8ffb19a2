"""Endpoint slices as workers: what the API server says of the endpoints of a service → their sightings.

Right for services without a selector, whose engines are no pods. A slice says nothing of annotations or models. What it
leaves out has a meaning: an endpoint is ready and serves unless it says that it does not, and ends only where it says so.

A service of two families has slices of both, with the same engines in them: those of IPv6 are spare, and are shown only
where there are no others.
"""

from collections.abc import Iterator
from ipaddress import ip_address

from smg_node.core.errors import SmgError
from smg_node.discovery.kubernetes.objects import Endpoint, Slice, shown
from smg_node.discovery.kubernetes.options import KubernetesOptions
from smg_node.discovery.kubernetes.reading import Reading
from smg_node.discovery.kubernetes.url_form import (
    NAMESPACE_LABEL,
    NODE_LABEL,
    POD_LABEL,
    ZONE_LABEL,
    UrlForm,
    named_port,
)
from smg_node.discovery.sighting import Sighting, SightingState, Unusable


class SliceReader:
    """Reads slices as the workers that the options make of their endpoints."""

    def __init__(self, options: KubernetesOptions) -> None:
        """SmgError where the options hold a spec that is none of a worker URL."""
        self._options = options
        self._form = UrlForm(options)

    def read(self, slice_: Slice) -> Reading:
        """Return what a slice's endpoints are as workers, and what of it could not be used."""
        origin = shown(f"slice {slice_.metadata.namespace}/{slice_.metadata.name}")
        named = [
            (port.name or "", port.port)
            for port in slice_.ports or ()
            if port.protocol in ("TCP", None) and port.port is not None
        ]
        wrong: list[Unusable] = []
        sightings: list[Sighting] = []
        try:
            port = named_port(self._options.port, named, "port")
        except ValueError as error:
            wrong.append(Unusable(origin, str(error)))
        else:
            for endpoint in slice_.endpoints or ():
                sightings += self._sighting(slice_, endpoint, port, origin, wrong)
        return Reading(
            sightings=tuple(sightings),
            unusable=tuple(wrong),
            created=slice_.metadata.creation_timestamp or "",
            is_spare=slice_.address_type == "IPv6",
        )

    def _sighting(
        self, slice_: Slice, endpoint: Endpoint, port: int, origin: str, wrong: list[Unusable]
    ) -> Iterator[Sighting]:
        """Yield an endpoint's sighting, or note why there is none."""
        target = endpoint.target_ref
        if target is not None and target.kind == "Pod":
            origin = shown(f"pod {target.namespace}/{target.name}")
        try:
            # All addresses of an endpoint are the same engine.
            host = str(ip_address(endpoint.addresses[0] if endpoint.addresses else ""))
            url = self._form.url(
                host,
                port,
                role=self._options.role,
                model=slice_.metadata.namespace
                if self._options.model_from == "namespace"
                else None,
                labels=_labels(slice_, endpoint),
            )
        except SmgError as error:
            wrong.append(Unusable(origin, error.message))
        except ValueError:
            said = shown(endpoint.addresses[0])[:60] if endpoint.addresses else ""
            wrong.append(Unusable(origin, f"its address {said!r} is none"))
        else:
            yield Sighting(url, _state(endpoint), target.uid if target else "", origin)


def _state(endpoint: Endpoint) -> SightingState:
    conditions = endpoint.conditions
    if conditions is None:
        return SightingState.READY
    if conditions.terminating:
        return SightingState.LEAVING
    return SightingState.UNREADY if conditions.ready is False else SightingState.READY


def _labels(slice_: Slice, endpoint: Endpoint) -> dict[str, str]:
    """Return the worker's labels that come from its endpoint."""
    target = endpoint.target_ref
    found = {
        NAMESPACE_LABEL: slice_.metadata.namespace,
        POD_LABEL: target.name if target is not None and target.kind == "Pod" else "",
        NODE_LABEL: endpoint.node_name or "",
        ZONE_LABEL: endpoint.zone or "",
    }
    return {label: value for label, value in found.items() if value}
