"""Memory of idle sessions: opens so many with a server, each of another tenant, and prints how many MB they take.

python -m support.mcp.session_memory URL COUNT
"""

import asyncio
import gc
import resource
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.pool import ServerPool, Target
from smg_node.mcp.tools.tool import ToolList
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.session_world import sharing

WARM: Final = 5
LET_GO_S: Final = 6.0
"""By then connections that nobody uses are closed."""


def resident_mb() -> float:
    """Return how much of this process is in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def used(pool: ServerPool, target: Target) -> None:
    """Open a session, list its tools and call one."""
    assert isinstance(await pool.list_tools(target), ToolList)
    assert isinstance(await pool.call(target, "echo", "{}"), CallResult)


async def main(url: str, count: int) -> None:
    """Print what the sessions take once they are idle."""
    target = Target(checked(ServerDefinition("s", url=url, protocol="2025-11-25")))
    async with sharing("a") as (world, (pool,)):
        for at in range(WARM):
            await used(pool, replace(target, tenant=f"warm {at}"))
        gc.collect()
        before_mb = resident_mb()
        for at in range(count):
            await used(pool, replace(target, tenant=f"tenant {at}"))
        await asyncio.sleep(LET_GO_S)
        gc.collect()
        assert len(pool) == len(world.rows) == WARM + count
        sys.stdout.write(f"{resident_mb() - before_mb:.2f}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
