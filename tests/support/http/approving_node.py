"""A node over HTTP whose tools run here, after it has asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from support.history.approving_nodes import ApprovingNodes
from support.history.history_world import no_store
from support.http.history_routes import Here
from support.http.http_node import Node, node


@asynccontextmanager
async def approving_node() -> AsyncIterator[tuple[Node, ApprovingNodes, Here]]:
    """Serve it; with it, what it runs and what it remembers."""
    nodes, here = ApprovingNodes(no_store()), Here()
    async with node(nodes.script, history=here) as running:
        parts = running.parts
        reading = replace(parts.reading, tool_servers=True)
        parts.retune(parts.options, reading, parts.dialects)
        yield running, nodes, here
