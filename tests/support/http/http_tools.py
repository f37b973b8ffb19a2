"""Servers of tools of a node in a test, and the people who allow their runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from smg_node.cluster.approvals.lazy_approvals import LazyApprovals
from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.http.http_parts import HttpParts
from support.http.fake_cluster import FakeCluster
from support.mcp.tool_desks import lazy_servers, service_of
from support.state.fake_shared_state import SharedWorld


def give_tools(parts: HttpParts, cluster: FakeCluster, world: SharedWorld) -> LazyToolServers:
    """Let node-a have servers of tools; return them, whose connections live while they run."""
    approvals = LazyApprovals("node-a", parts.ids, parts.clock, parts.meters)
    approvals.connect(cluster.members, world.meshes["node-a"], bool)
    parts.tool_approvals = approvals.service
    servers = lazy_servers("node-a", world)
    parts.tool_servers = lambda: service_of("node-a", world, servers)
    return servers


@contextlib.asynccontextmanager
async def connecting(servers: LazyToolServers) -> AsyncIterator[None]:
    """Let connections to servers of tools be made meanwhile; what fails meanwhile is raised as it is."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        running = group.create_task(servers.run())
        try:
            yield
        except Exception as error:  # a group of tasks would wrap it
            failure = error
        finally:
            running.cancel()
    if failure is not None:
        raise failure
