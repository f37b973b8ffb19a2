"""Steps of tests about servers of tools on the nodes of a world: define, resolve, call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.cluster.mcp.tool_servers import ClusterToolServers
from smg_node.core.errors import SmgError
from smg_node.mcp.tool_servers import CallOptions, ResolvedServer
from support.mcp.tool_desks import Maker, asked, context, lazy_servers, service_of, serving
from support.state.fake_shared_state import SharedWorld


def world() -> SharedWorld:
    """Return three nodes that share a state."""
    return SharedWorld("a", "b", "c")


def define(world: SharedWorld, name: str, url: str, node: str = "a", **fields: Any) -> None:
    """Define a server on all nodes."""
    service_of(node, world).put(name, {"url": url, **fields}, version=None)


def remove(world: SharedWorld, name: str) -> None:
    """Take it away from all nodes."""
    service_of("a", world).remove(name, version=None)


@asynccontextmanager
async def on(
    world: SharedWorld, node: str = "c", maker: Maker | None = None, **options: Any
) -> AsyncIterator[ClusterToolServers]:
    """Serve on a node."""
    async with serving(lazy_servers(node, world, maker=maker, **options)) as servers:
        yield servers


async def resolved(
    servers: ClusterToolServers, label: str, tenant: str = "", **fields: Any
) -> ResolvedServer:
    """Return the server that a request names."""
    headers = fields.pop("headers_of_head", {})
    return await servers.resolve(asked(label, **fields), headers, context(tenant))


async def refusal(
    servers: ClusterToolServers, label: str, tenant: str = "", **fields: Any
) -> SmgError:
    """Return why a request may not have what it names."""
    with pytest.raises(SmgError) as caught:
        await resolved(servers, label, tenant, **fields)
    return caught.value


async def call(
    servers: ClusterToolServers, server: ResolvedServer, tool: str = "find", **options: Any
) -> Any:
    """Return what comes of a call."""
    return await servers.call(server, tool, "{}", context(), CallOptions(**options))
