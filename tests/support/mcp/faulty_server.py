"""A faulty MCP server inside a test, and a pool of connections to it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from smg_chaos.mcp.faults import parse_fault
from smg_chaos.mcp.http_server import HttpServer
from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, Target, server_pool


@asynccontextmanager
async def served(
    era: str = "both", *faults: str, answers: str = "json", token: str = "", page: int = 100
) -> AsyncIterator[HttpServer]:
    """Yield a server on the loopback."""
    async with asyncio.TaskGroup() as group:
        server = HttpServer(
            group,
            era,
            faults=list(map(parse_fault, faults)),
            answers=answers,
            token=token,
            page=page,
        )
        await server.listen("127.0.0.1", 0)
        try:
            yield server
        finally:
            await server.close()


@asynccontextmanager
async def pooled(limits: McpLimits | None = None) -> AsyncIterator[ServerPool]:
    """Yield a pool."""
    async with server_pool(id_prefix="test.1", limits=limits or McpLimits()) as pool:
        yield pool


def target(server: HttpServer, **fields: Any) -> Target:
    """Return the target of a server."""
    return Target(checked(ServerDefinition("s", url=server.url, **fields)))


def process_target(era: str, *faults: str, counts: Path | None = None, **fields: Any) -> Target:
    """Return the target of a server that runs as a child process."""
    args = ["-m", "smg_chaos.cli", "mcp-server", "--transport", "stdio", "--era", era]
    args += [word for fault in faults for word in ("--fault", fault)]
    args += ["--count-file", str(counts)] if counts is not None else []
    definition = ServerDefinition("s", command=sys.executable, args=tuple(args), **fields)
    return Target(checked(definition))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; TimeoutError if it never does."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110  # a server's counters are no events
            await asyncio.sleep(0.01)
