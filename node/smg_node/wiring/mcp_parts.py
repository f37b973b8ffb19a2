"""MCP parts of a process: the servers of tools that it calls, and services that are imported by their first request."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock
from smg_node.wiring.base import Base

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.admission.admission import Admission
    from smg_node.admission.usage.usage_book import UsageBook
    from smg_node.cluster.mcp.live_servers import LiveServers
    from smg_node.cluster.mcp.run_accounts import RunAccounts
    from smg_node.cluster.mcp.server_service import ClusterServers
    from smg_node.cluster.mcp.session_records import SessionState
    from smg_node.mcp.tool_servers import ToolServers


def tool_servers(settings: Settings, base: Base, shared: "SessionState") -> LazyToolServers:
    """Return the servers of tools of a process. ConfigurationError for a file of definitions that cannot be used.

    Its `run` is to run as long as the process does, and ends what it started: connections, and programs with all their
    children.
    """

    def make() -> "LiveServers":
        from smg_node.wiring.mcp_servers import live_servers

        return live_servers(settings, base, shared, accounts)

    def accounts() -> "RunAccounts | None":
        # Looked up late: a node's own file is read before anything is charged.
        return None if servers.accounts is None else servers.accounts()

    mcp = settings.mcp
    servers = LazyToolServers(shared, make, own=mcp.file is not None, dynamic=mcp.dynamic != "off")
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
