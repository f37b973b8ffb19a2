"""Servers of tools on nodes of a world: their definitions, the service of these, and connections while a test wants them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from smg_node.cluster.definition_ports import DefinitionState
from smg_node.cluster.mcp.client_tokens import ClientTokens
from smg_node.cluster.mcp.definitions import Definitions
from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.cluster.mcp.live_servers import LiveServers
from smg_node.cluster.mcp.mcp_metrics import McpMetrics
from smg_node.cluster.mcp.server_secrets import ServerSecrets
from smg_node.cluster.mcp.server_service import ClusterServers
from smg_node.cluster.mcp.server_targets import Dynamic, ServerTargets
from smg_node.cluster.mcp.token_fetch import token_fetch
from smg_node.cluster.mcp.tool_servers import ClusterToolServers, OpenPool
from smg_node.core.address_guard import AddressGuard
from smg_node.core.generation.tool_serving import AskedServer
from smg_node.core.request_context import RequestContext
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, server_pool
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.meters import Meters
from support.state.fake_shared_state import SharedWorld


class Maker:
    """Makes the servers of one node."""

    def __init__(
        self,
        dynamic: Dynamic = "off",
        listed: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        limits: McpLimits | None = None,
    ) -> None:
        self.meters = Meters(CollectorRegistry(), version="0")
        self._dynamic: Dynamic = dynamic
        self._guard = AddressGuard(listed)
        self._environment = environment or {}
        self._limits = limits or McpLimits()

    def servers(
        self, read: Callable[[], Definitions], pool: OpenPool, sessions: Callable[[], int]
    ) -> ClusterToolServers:
        clock = SystemClock()
        secrets = ServerSecrets(clock.monotonic_s, self._environment)
        return ClusterToolServers(
            read,
            ServerTargets(secrets, self._dynamic, self._guard),
            ClientTokens(token_fetch(), clock.monotonic_s),
            pool,
            McpMetrics(self.meters, sessions),
            clock,
        )

    def pool(self) -> AbstractAsyncContextManager[ServerPool]:
        return server_pool(id_prefix="test.1", limits=self._limits, allowed=self._guard.allows)


def lazy_servers(
    name: str,
    world: SharedWorld,
    own: str = "",
    maker: Maker | None = None,
    *,
    dynamic: bool = False,
) -> LazyToolServers:
    """Return the servers of a node; `own` is what its file says, as JSON."""
    return shared_servers(world.nodes[name], own, maker, dynamic=dynamic)


def shared_servers(
    shared: DefinitionState, own: str = "", maker: Maker | None = None, *, dynamic: bool = False
) -> LazyToolServers:
    """Return the servers of a process that has this state."""

    def make() -> LiveServers:
        monotonic_s = SystemClock().monotonic_s
        return LiveServers(own, shared, maker or Maker(), monotonic_s)

    return LazyToolServers(shared, make, own=bool(own), dynamic=dynamic)


def service_of(
    name: str, world: SharedWorld, servers: LazyToolServers | None = None
) -> ClusterServers:
    """Return the service of definitions on a node."""
    shared = world.nodes[name]
    lazy = lazy_servers(name, world) if servers is None else servers
    return ClusterServers(lazy, shared.providers, shared.seal, SystemClock())


@asynccontextmanager
async def serving(servers: LazyToolServers) -> AsyncIterator[ClusterToolServers]:
    """Let connections be made meanwhile; yield the servers."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(servers.run())
        try:
            yield servers.made()
        finally:
            running.cancel()


def context(tenant: str = "", key_id: str = "", request_id: str = "r1") -> RequestContext:
    """Return the context of a request."""
    return RequestContext(request_id, 0.0, 3600.0, tenant=tenant, key_id=key_id)


def asked(label: str, **fields: Any) -> AskedServer:
    """Return what a request asks for."""
    return AskedServer(label, **fields)
