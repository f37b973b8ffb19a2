"""Live discovery: the sources of workers that count on this node by now, its own and those of the cluster.

A node without any source imports nothing of them, and one task of it waits.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.cluster.discovery.discovery_service import ClusterSources
    from smg_node.cluster.discovery.source_definitions import Key
    from smg_node.cluster.settings.live_settings import LiveSettings
    from smg_node.cluster.workers.worker_registry import ClusterRegistry
    from smg_node.config.frozen_settings import Settings
    from smg_node.http.http_parts import HttpParts
    from smg_node.wiring.base import Base
    from smg_node.wiring.discovery.parts import DiscoveryParts

_log: Final = logging.getLogger("smg_node.discovery")


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
        self._settings = settings
        self._discovery: Final = settings.discovery
        self._base: Final = base
        self._shared: Final = shared
        self._registry: Final = registry
        self._is_leaving: Final = is_leaving
        self._parts: DiscoveryParts | None = None
        self._changed: Final = asyncio.Event()
        self.unreadable: Mapping[str, str] = {}
        """Definitions of the cluster that are not followed here, by KIND/NAME, and why."""
        if self._discovery.configured:
            self._follow(cluster=False)
        shared.discovery.watch(lambda keys: self._changed.set())

    def connect(self, parts: "HttpParts", live: "LiveSettings") -> "LiveDiscovery":
        """Let operators see and define sources, follow the cluster's settings, and return this."""
        parts.discovery = self.service
        live.watch(("discovery",), self.retune)
        return self

    def own(self) -> "Collection[Key]":
        """Return the kinds and names of the sources in this node's own settings."""
        if not self._discovery.configured:
            return ()
        from smg_node.wiring.discovery.parts import own_sources

        return own_sources(self._discovery).keys()

    def service(self) -> "ClusterSources":
        """Return what tells of sources, and defines them; imported with the first request for it."""
        from smg_node.cluster.discovery.discovery_service import ClusterSources

        return ClusterSources(self, self._shared)

    def retune(self, settings: "Settings") -> None:
        """Take over changed settings of the cluster."""
        self._settings = settings
        if self._parts is not None:
            self._parts.service.confirm(settings.discovery.empty_confirm_s)

    async def run(self) -> None:
        """Follow what is defined, and see to it, until cancelled."""
        async with asyncio.TaskGroup() as group:
            running = None
            while True:
                self._changed.clear()
                shared = self._shared.discovery
                if self._parts is not None or len(shared):
                    self._follow(cluster=True)
                if self._parts is not None and running is None:
                    running = group.create_task(self._parts.service.run(), name="sources")
                await self._changed.wait()

    def _follow(self, *, cluster: bool) -> None:
        from smg_node.cluster.discovery.source_definitions import merged
        from smg_node.wiring.discovery.parts import DiscoveryParts, kubeconfig_of, own_sources

        shared = self._shared.discovery
        now = merged(
            own_sources(self._discovery),
            shared.all() if cluster else (),
            shared.unreadable() if cluster else (),
            kubeconfig=kubeconfig_of(self._discovery),
        )
        if self._parts is None:
            self._parts = DiscoveryParts(
                self._discovery,
                self._base,
                self._shared,
                self._registry,
                is_leaving=self._is_leaving,
            )
            self.retune(self._settings)
        self._complain(now.unreadable)
        self._parts.follow({key: one.options for key, one in now.sources.items()})

    def _complain(self, unreadable: Mapping[str, str]) -> None:
        """Log what of the cluster's definitions is not followed, once for each reason."""
        for key, why in unreadable.items():
            if self.unreadable.get(key) != why:
                _log.warning("discovery: %s is not followed here: %s", key, why)
        self.unreadable = dict(unreadable)
