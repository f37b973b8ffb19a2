"""MCP parts of a process: the servers of tools that it calls, and the service of their definitions."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from smg_node.cluster.mcp.lazy_servers import DefinitionState, LazyToolServers
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock
from smg_node.wiring.base import Base

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.admission.admission import Admission
    from smg_node.admission.usage.usage_book import UsageBook
    from smg_node.cluster.mcp.definitions import Definitions
    from smg_node.cluster.mcp.run_accounts import RunAccounts
    from smg_node.cluster.mcp.server_service import ClusterServers
    from smg_node.cluster.mcp.tool_servers import ClusterToolServers, OpenPool
    from smg_node.mcp.doors.address_guard import AddressGuard
    from smg_node.mcp.limits import McpLimits
    from smg_node.mcp.pool import ServerPool
    from smg_node.mcp.tool_servers import ToolServers


def tool_servers(settings: Settings, base: Base, shared: DefinitionState) -> LazyToolServers:
    """Return the servers of tools of a process. ConfigurationError for a file of definitions that cannot be used.

    `get` of it returns the servers, None while there are none, `has` whether there are any. Its `run` is to run as long
    as the process does, and ends what it started: connections, and programs with all their children.
    """
    mcp = settings.mcp
    servers = LazyToolServers(
        mcp.definitions,
        shared,
        _Maker(settings, base),
        base.clock.monotonic_s,
        dynamic=mcp.dynamic != "off",
    )
    servers.check()
    return servers


def tool_server_access(
    shared: "Shared", clock: Clock, servers: LazyToolServers
) -> "ClusterServers":
    """Return the service of definitions; its first request imports what it needs."""
    from smg_node.cluster.mcp.server_service import ClusterServers

    return ClusterServers(servers, shared.providers, shared.seal, clock)


def offered_servers(
    servers: LazyToolServers | None, admission: "Admission | None", book: "UsageBook", clock: Clock
) -> "Callable[[], ToolServers | None]":
    """Return what returns the servers whose tools run on this side, None while there are none.

    Runs of them are charged to limits and counted in the usage book, by what is imported with the first server.
    """
    if servers is None:
        return _none_offered

    def make() -> "RunAccounts":
        from smg_node.cluster.mcp.run_accounts import RunAccounts

        return RunAccounts(admission, book, clock)

    servers.accounts = make
    return servers.get


def _none_offered() -> None:
    """Return no servers of tools."""


def mcp_limits(settings: Settings) -> "McpLimits":
    """Return the limits of calls as settings have them."""
    from smg_node.mcp.limits import McpLimits

    mcp = settings.mcp
    return McpLimits(
        connect_s=mcp.connect_s,
        list_s=mcp.list_s,
        call_idle_s=mcp.call_idle_s,
        call_total_s=mcp.call_total_s,
        answer_bytes_max=mcp.answer_bytes_max,
        output_bytes_max=mcp.output_bytes_max,
        list_ttl_s=mcp.list_ttl_s,
        session_idle_s=mcp.session_idle_s,
    )


class _Maker:
    """Maker of the servers of a process; nothing of them is imported before."""

    def __init__(self, settings: Settings, base: Base) -> None:
        self._settings = settings
        self._base = base

    def servers(
        self, read: "Callable[[], Definitions]", pool: "OpenPool", sessions: Callable[[], int]
    ) -> "ClusterToolServers":
        """See `ServersMaker`."""
        from smg_node.cluster.mcp.client_tokens import ClientTokens
        from smg_node.cluster.mcp.mcp_metrics import McpMetrics
        from smg_node.cluster.mcp.server_secrets import ServerSecrets
        from smg_node.cluster.mcp.server_targets import ServerTargets
        from smg_node.cluster.mcp.token_fetch import token_fetch
        from smg_node.cluster.mcp.tool_servers import ClusterToolServers

        mcp, clock = self._settings.mcp, self._base.clock
        secrets = ServerSecrets(clock.monotonic_s)
        return ClusterToolServers(
            read,
            ServerTargets(secrets, mcp.dynamic, self._guard()),
            ClientTokens(token_fetch(mcp.proxy), clock.monotonic_s),
            pool,
            McpMetrics(self._base.meters, sessions),
            clock,
        )

    def pool(self) -> "AbstractAsyncContextManager[ServerPool]":
        """See `ServersMaker`. Servers of the older protocol may know requests of other processes by their ids."""
        from smg_node.mcp.pool import server_pool

        return server_pool(
            id_prefix=f"{self._settings.name}.{self._base.rng.getrandbits(32):x}",
            limits=mcp_limits(self._settings),
            proxy=self._settings.mcp.proxy,
            allowed=self._guard().allows,
        )

    def _guard(self) -> "AddressGuard":
        from smg_node.mcp.doors.address_guard import AddressGuard

        return AddressGuard(self._settings.mcp.dynamic_hosts)
