"""Live MCP servers of a process, as settings have them: made with the first definition, or where clients may give some."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from smg_node.cluster.mcp.client_tokens import ClientTokens
from smg_node.cluster.mcp.definitions import Definitions
from smg_node.cluster.mcp.live_servers import LiveServers
from smg_node.cluster.mcp.mcp_metrics import McpMetrics
from smg_node.cluster.mcp.run_accounts import RunAccounts
from smg_node.cluster.mcp.server_secrets import ServerSecrets
from smg_node.cluster.mcp.server_targets import ServerTargets
from smg_node.cluster.mcp.session_records import ClusterSessions, SessionState
from smg_node.cluster.mcp.token_fetch import token_fetch
from smg_node.cluster.mcp.tool_servers import ClusterToolServers, OpenPool
from smg_node.config.frozen_settings import Settings
from smg_node.core.address_guard import AddressGuard
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, server_pool
from smg_node.wiring.base import Base


def live_servers(
    settings: Settings,
    base: Base,
    shared: SessionState,
    accounts: Callable[[], RunAccounts | None],
) -> LiveServers:
    """Return the servers of a process; nothing is opened yet."""
    maker = _Maker(settings, base, shared)
    return LiveServers(settings.mcp.definitions, shared, maker, base.clock.monotonic_s, accounts)


def mcp_limits(settings: Settings) -> McpLimits:
    """Return the limits of calls as settings have them."""
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
    """Maker of the servers of a process."""

    def __init__(self, settings: Settings, base: Base, shared: SessionState) -> None:
        self._settings = settings
        self._base = base
        self._shared = shared

    def servers(
        self, read: Callable[[], Definitions], pool: OpenPool, sessions: Callable[[], int]
    ) -> ClusterToolServers:
        """See `ServersMaker`."""

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

    def pool(self) -> AbstractAsyncContextManager[ServerPool]:
        """See `ServersMaker`. Servers of the older protocol may know requests of other processes by their ids."""

        me = f"{self._settings.name}.{self._base.rng.getrandbits(32):x}"
        several = self._settings.processes > 0
        return server_pool(
            id_prefix=me,
            limits=mcp_limits(self._settings),
            proxy=self._settings.mcp.proxy,
            allowed=self._guard().allows,
            records=ClusterSessions(me, self._shared, self._base.clock.now_ms, several=several),
        )

    def _guard(self) -> AddressGuard:

        return AddressGuard(self._settings.mcp.dynamic_hosts)
