"""Discovery parts of a process: the service that runs its sources, and sources by what was said of them.

What a kind of source needs is imported where one of that kind is there.
"""

import asyncio
import shlex
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from smg_node.cluster.discovery.source_definitions import Key, Options, options_of
from smg_node.cluster.workers.discovered_workers import DiscoveredWorkers
from smg_node.cluster.workers.source_reports import SourceReports
from smg_node.cluster.workers.worker_registry import ClusterRegistry
from smg_node.core.ports import Clock
from smg_node.discovery.dns.options import DnsOptions
from smg_node.discovery.service import DiscoveryService, Plan
from smg_node.discovery.source import Source
from smg_node.wiring.base import Base
from smg_node.wiring.discovery.metrics import DiscoveryMetrics

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.config.sections.discovery import Discovery


class DiscoveryParts:
    """The service of a node that has a source, and what its sources are made with."""

    def __init__(
        self,
        discovery: "Discovery",
        base: Base,
        shared: "Shared",
        registry: ClusterRegistry,
        *,
        is_leaving: Callable[[], bool],
    ) -> None:
        self._discovery = discovery
        self._base = base
        clock = base.clock

        def now_ms() -> int:
            return int(1000 * clock.monotonic_s())

        self._workers = DiscoveredWorkers(
            shared.workers, registry, me=shared.name, is_held=lambda: shared.held, now_ms=now_ms
        )
        reports = SourceReports(shared)
        metrics = DiscoveryMetrics(base.meters, shared.name)
        self.service = service = DiscoveryService(
            me=shared.name,
            registry=self._workers,
            reports=reports,
            empty_confirm_s=discovery.empty_confirm_s,
            monotonic_s=clock.monotonic_s,
            is_leaving=is_leaving,
            notes=metrics,
        )
        metrics.watch(service.states)
        shared.watch_members(lambda names: service.wake())
        shared.watch_held(service.wake)
        shared.workers.watch(lambda ids: service.wake())
        reports.watch(service.wake)

    def follow(self, sources: Mapping[Key, Options]) -> None:
        """See to these sources and to this node's own list, from now on; SmgError for what a source cannot be."""
        plans = [
            Plan(self._source(*key, options), options, keep=options.keep)
            for key, options in sorted(sources.items(), key=itemgetter(0))
        ]
        if self._discovery.lists_own:
            plans.append(Plan(_file(self._discovery, self._base.clock), "own"))
        self.service.follow(plans)

    def _source(self, kind: str, name: str, options: Options) -> Source:
        clock, rng = self._base.clock, self._base.rng
        if isinstance(options, DnsOptions):
            from smg_node.discovery.dns.source import DnsSource

            workers = self._workers
            return DnsSource(
                name,
                options,
                monotonic_s=clock.monotonic_s,
                rng=rng,
                sleep=asyncio.sleep,
                down=lambda endpoint: workers.called_down("dns", endpoint),
                known=lambda: workers.urls_of("dns", name),
            )
        from smg_node.discovery.kubernetes.source import KubernetesSource

        return KubernetesSource(
            name, options, monotonic_s=clock.monotonic_s, rng=rng, sleep=asyncio.sleep
        )


def own_sources(discovery: "Discovery") -> Mapping[Key, Options]:
    """Return the sources of a node's own settings that all nodes could watch, by kind and name."""
    pods: dict[str, Any] = {**_of_flags(discovery), **discovery.kubernetes}
    kubeconfig = kubeconfig_of(discovery)
    return {
        **{
            ("kubernetes", name): options_of("kubernetes", dict(said), kubeconfig=kubeconfig)
            for name, said in pods.items()
        },
        **{("dns", name): options_of("dns", dict(said)) for name, said in discovery.dns.items()},
    }


def kubeconfig_of(discovery: "Discovery") -> str:
    """Return where the API server is named, "" for the account of the node's own pod."""
    return "" if discovery.kubeconfig is None else str(discovery.kubeconfig)


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


def _file(discovery: "Discovery", clock: Clock) -> Source:
    from smg_node.discovery.file.options import FileOptions
    from smg_node.discovery.file.source import FileSource

    options = FileOptions(
        path="" if discovery.file is None else str(discovery.file),
        command=tuple(shlex.split(discovery.command)),
        check_interval_s=discovery.check_interval_s,
    )
    return FileSource(options, monotonic_s=clock.monotonic_s, sleep=asyncio.sleep)
