"""URL form: the parts of a worker's URL that the options give, filled with an address and what else an object says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.discovery.kubernetes.options import KubernetesOptions

POD_LABEL: Final = "k8s.pod"
NAMESPACE_LABEL: Final = "k8s.namespace"
NODE_LABEL: Final = "k8s.node"
ZONE_LABEL: Final = "zone"

PORT_MAX: Final = 65_535
VALUE_MAX_CHARACTERS: Final = 256
"""Of a parameter of a worker's URL."""


class UrlForm:
    """What all workers of a source have in common."""

    def __init__(self, options: KubernetesOptions) -> None:
        """SmgError where the options hold a spec that is none of a worker URL."""
        self._scheme = options.scheme
        self._base = parse_worker_url(f"worker:1?{options.spec.lstrip('?&')}")

    def url(
        self, host: str, port: int, *, role: str, model: str | None, labels: Mapping[str, str]
    ) -> WorkerUrl:
        """Return a worker's URL; what is given here goes before the spec. SmgError if there can be no such URL."""
        both = {**self._base.labels, **labels}
        filled = replace(
            self._base,
            scheme=self._scheme,
            host=host,
            port=port,
            role=role,
            model=model or self._base.model,
            labels=MappingProxyType(dict(sorted(both.items()))),
        )
        return parse_worker_url(str(filled))


def named_port(wanted: str, named: Sequence[tuple[str, int]], what: str) -> int:
    """Return the port that is wanted by number or name, or the only one; ValueError in words about the object."""
    if wanted.isascii() and wanted.isdigit():
        return int(wanted)
    for name, port in named:
        if wanted and name == wanted:
            return port
    if wanted:
        raise ValueError(f"none of its {what}s is called {wanted!r}")
    ports = {port for _, port in named}
    if len(ports) == 1:
        return ports.pop()
    raise ValueError(
        f"it names {len(ports) or 'no'} {what}s, so `port` must say which is the engine's"
    )
