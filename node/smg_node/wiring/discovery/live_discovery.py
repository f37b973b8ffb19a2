"""Live discovery: the sources of workers that count on this node by now, its own and those of the cluster.

A node without any source imports nothing of them, and one task of it waits.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.cluster.discovery.discovery_service import ClusterSources
    from smg_node.cluster.discovery.source_definitions import Key
    from smg_node.cluster.settings.live_settings import LiveSettings
    from smg_node.cluster.workers.orphaned_findings import OrphanedFindings
    from smg_node.cluster.workers.worker_registry import ClusterRegistry
    from smg_node.config.frozen_settings import Settings
    from smg_node.http.http_parts import HttpParts
    from smg_node.wiring.base import Base
    from smg_node.wiring.discovery.parts import DiscoveryParts


class LiveDiscovery:
    """Sources of one node. SmgError at once for one of its own settings that none can be."""

    def __init__(
        self,
        settings: "Settings",
        base: "Base",
        shared: "Shared",
        registry: "ClusterRegistry",
        *,
        is_leaving: Callable[[], bool],
    ) -> None:
        self.settings = settings
        self.base: Final = base
        self.shared: Final = shared
        self.registry: Final = registry
        self.is_leaving: Final = is_leaving
        self._parts: DiscoveryParts | None = None
        self._orphans: OrphanedFindings | None = None
        self._changed: Final = asyncio.Event()
        if settings.discovery.configured:
            self._built().follow(cluster=False)
        shared.discovery.watch(lambda keys: self._changed.set())

    def connect(self, parts: "HttpParts", live: "LiveSettings") -> "LiveDiscovery":
        """Let operators see and define sources, follow the cluster's settings, and return this."""
        parts.discovery = self.service
        live.watch(("discovery",), self.retune)
        return self

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Definitions of the cluster that are not followed here, by KIND/NAME, and why."""
        return {} if self._parts is None else self._parts.unreadable

    def own(self) -> "Collection[Key]":
        """Return the kinds and names of the sources in this node's own settings."""
        return () if self._parts is None else self._parts.own

    def service(self) -> "ClusterSources":
        """Return what tells of sources, and defines them; imported with the first request for it."""
        from smg_node.cluster.discovery.discovery_service import ClusterSources

        return ClusterSources(self, self.shared)

    def retune(self, settings: "Settings") -> None:
        """Take over changed settings of the cluster."""
        self.settings = settings
        if self._parts is not None:
            self._parts.service.confirm(settings.discovery.empty_confirm_s)

    async def tidy(self) -> None:
        """Give up what sources found that are in nobody's settings any more."""
        if self._orphans is None:
            if not self.shared.workers.shared():
                return
            from smg_node.cluster.workers.orphaned_findings import OrphanedFindings

            self._orphans = OrphanedFindings(self.shared, self.base.clock.monotonic_s)
        await self._orphans.tidy()

    async def run(self) -> None:
        """Follow what is defined, and see to it, until cancelled."""
        while self._parts is None and not len(self.shared.discovery):
            self._changed.clear()
            await self._changed.wait()
        await self._built().run(self._changed)

    def _built(self) -> "DiscoveryParts":
        if self._parts is None:
            from smg_node.wiring.discovery.parts import DiscoveryParts

            self._parts = DiscoveryParts(
                self.settings.discovery,
                self.base,
                self.shared,
                self.registry,
                is_leaving=self.is_leaving,
            )
        return self._parts
