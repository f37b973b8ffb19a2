"""Discovery parts of a process: its sources by its settings, and the service that runs them.

What a kind of source needs is imported where one of that kind is configured.
"""

import asyncio
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smg_node.cluster.workers.discovered_workers import DiscoveredWorkers
from smg_node.cluster.workers.source_reports import SourceReports
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock, Rng
from smg_node.discovery.service import DiscoveryService
from smg_node.discovery.source import Source
from smg_node.wiring.base import Base
from smg_node.wiring.discovery.metrics import DiscoveryMetrics

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.config.sections.discovery import Discovery


def build_discovery(
    settings: Settings,
    base: Base,
    shared: "Shared",
    registry: ClusterRegistry,
    *,
    is_leaving: Callable[[], bool],
) -> DiscoveryService:
    """Return the discovery service of a node with at least one source; ConfigurationError for what a source cannot be."""

    clock = base.clock

    def now_ms() -> int:
        return int(1000 * clock.monotonic_s())

    workers = DiscoveredWorkers(
        shared.workers, registry, me=shared.name, is_held=lambda: shared.held, now_ms=now_ms
    )
    reports = SourceReports(shared)
    metrics = DiscoveryMetrics(base.meters)
    service = DiscoveryService(
        build_sources(settings.discovery, workers, clock=clock, rng=base.rng),
        me=shared.name,
        registry=workers,
        reports=reports,
        empty_confirm_s=settings.discovery.empty_confirm_s,
        monotonic_s=clock.monotonic_s,
        is_leaving=is_leaving,
        notes=metrics,
    )
    metrics.watch(service.states)
    shared.watch_members(lambda names: service.wake())
    shared.watch_held(service.wake)
    shared.workers.watch(lambda ids: service.wake())
    reports.watch(service.wake)
    return service


def build_sources(
    discovery: "Discovery", workers: DiscoveredWorkers, *, clock: Clock, rng: Rng
) -> Sequence[Source]:
    """Return the sources of these settings, by kind and name."""
    pods, names = {**_of_flags(discovery), **discovery.kubernetes}, discovery.dns
    return [
        *(_kubernetes(name, pods[name], discovery, clock, rng) for name in sorted(pods)),
        *(_dns(name, names[name], workers, clock, rng) for name in sorted(names)),
        *([_file(discovery, clock)] if discovery.lists_own else ()),
    ]


def _kubernetes(name: str, said: Any, discovery: "Discovery", clock: Clock, rng: Rng) -> Source:
    from smg_node.discovery.kubernetes.options import KubernetesOptions
    from smg_node.discovery.kubernetes.source import KubernetesSource

    fields = said if isinstance(said, Mapping) else dict(said)
    options = KubernetesOptions(
        **{**fields, "scheme": _scheme(fields.get("scheme", "any"))},
        kubeconfig="" if discovery.kubeconfig is None else str(discovery.kubeconfig),
    )
    return KubernetesSource(
        name, options, monotonic_s=clock.monotonic_s, rng=rng, sleep=asyncio.sleep
    )


def _of_flags(discovery: "Discovery") -> dict[str, Any]:
    """Return the sources that flags of other gateways describe, one for each role."""
    pods = discovery.pods
    if not pods.names:
        return {}
    return {
        f"pods-{role}": {
            "selector": ",".join(pairs),
            "namespace": pods.namespace,
            "port": str(pods.port),
            "role": role,
            "model_from": pods.model_from,
            "connector_annotation": pods.connector_annotation,
            "engine_id_annotation": pods.engine_id_annotation,
        }
        for role, pairs in pods.selections.items()
        if pairs
    }


def _dns(name: str, said: Any, workers: DiscoveredWorkers, clock: Clock, rng: Rng) -> Source:
    from smg_node.discovery.dns.options import DnsOptions
    from smg_node.discovery.dns.source import DnsSource

    options = DnsOptions(
        name=said.name,
        port=int(said.port or "0"),
        servers=tuple(said.servers),
        scheme=_scheme(said.scheme),
        role=said.role,
        spec=said.spec,
    )
    return DnsSource(
        name,
        options,
        monotonic_s=clock.monotonic_s,
        rng=rng,
        sleep=asyncio.sleep,
        down=lambda endpoint: workers.called_down("dns", endpoint),
        known=lambda: workers.urls_of("dns", name),
    )


def _file(discovery: "Discovery", clock: Clock) -> Source:
    from smg_node.discovery.file.options import FileOptions
    from smg_node.discovery.file.source import FileSource

    options = FileOptions(
        path="" if discovery.file is None else str(discovery.file),
        command=tuple(shlex.split(discovery.command)),
        check_interval_s=discovery.check_interval_s,
    )
    return FileSource(options, monotonic_s=clock.monotonic_s, sleep=asyncio.sleep)


def _scheme(said: str) -> str:
    return "" if said == "any" else said
