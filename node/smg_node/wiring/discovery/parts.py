"""Discovery parts of a process: the service that runs its sources, and sources by what was said of them.

What a kind of source needs is imported where one of that kind is there.
"""

import asyncio
import logging
import shlex
from collections.abc import Callable, Collection, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from smg_node.cluster.discovery.source_definitions import Key, Options, merged, options_of
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

_log: Final = logging.getLogger("smg_node.discovery")


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
        self._definitions = shared.discovery
        self._own = _own_sources(discovery)
        self.unreadable: Mapping[str, str] = {}
        """Definitions of the cluster that are not followed here, by KIND/NAME, and why."""
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

    @property
    def own(self) -> Collection[Key]:
        """The kinds and names of the sources in the node's own settings."""
        return self._own.keys()

    async def run(self, changed: asyncio.Event) -> None:
        """See to the sources there are until cancelled; `changed`: others are defined."""
        async with asyncio.TaskGroup() as group:
            self.follow(cluster=True)
            group.create_task(self.service.run(), name="sources of workers")
            while True:
                await changed.wait()
                changed.clear()
                self.follow(cluster=True)

    def follow(self, *, cluster: bool) -> None:
        """See to the node's own sources from now on, and to the cluster's; SmgError for what a source cannot be."""
        now = merged(
            self._own,
            self._definitions.all() if cluster else (),
            self._definitions.unreadable() if cluster else (),
            kubeconfig=_kubeconfig(self._discovery),
        )
        self._complain(now.unreadable)
        plans = [
            Plan(self._source(*key, one.options), one.options, keep=one.options.keep)
            for key, one in sorted(now.sources.items(), key=itemgetter(0))
        ]
        if self._discovery.lists_own:
            plans.append(Plan(_file(self._discovery, self._base.clock), "own"))
        self.service.follow(plans)

    def _complain(self, unreadable: Mapping[str, str]) -> None:
        """Log what of the cluster's definitions is not followed, once for each reason."""
        for key, why in unreadable.items():
            if self.unreadable.get(key) != why:
                _log.warning("discovery: %s is not followed here: %s", key, why)
        self.unreadable = dict(unreadable)

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


def _own_sources(discovery: "Discovery") -> Mapping[Key, Options]:
    """Return the sources of a node's own settings that all nodes could watch, by kind and name."""
    pods: dict[str, Any] = {**_of_flags(discovery), **discovery.kubernetes}
    kubeconfig = _kubeconfig(discovery)
    return {
        **{
            ("kubernetes", name): options_of("kubernetes", dict(said), kubeconfig=kubeconfig)
            for name, said in pods.items()
        },
        **{("dns", name): options_of("dns", dict(said)) for name, said in discovery.dns.items()},
    }


def _kubeconfig(discovery: "Discovery") -> str:
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
