"""Own calls: this project's client calls a tool many times, and says what that cost it; the twin of `sdk_calls`.

Arguments: calls, first calls that do not count, revision, event loop (`uvloop`, as nodes have it, or `asyncio`), place.
"""

import asyncio
import sys
import time

import uvloop

from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.pool import Target, server_pool
from smg_node.mcp.tools.tool_result import CallResult


async def main(calls: int, warm: int, protocol: str, where: list[str]) -> float:
    """Return the CPU seconds of `calls` calls."""
    if where[0] == "stdio":
        definition = ServerDefinition(
            "s", command=where[1], args=tuple(where[2:]), protocol=protocol
        )
    else:
        definition = ServerDefinition("s", url=where[0], protocol=protocol)
    target = Target(checked(definition))
    arguments = '{"text": "' + "x" * 100 + '"}'
    async with server_pool(id_prefix="cost.1") as pool:
        await pool.list_tools(target)
        for _ in range(warm):
            await pool.call(target, "echo", arguments)
        start_s = time.process_time()
        for _ in range(calls):
            called = await pool.call(target, "echo", arguments)
            assert isinstance(called, CallResult), called
        return time.process_time() - start_s


if __name__ == "__main__":
    number, warming, era, loop, *place = sys.argv[1:]
    made = uvloop.new_event_loop if loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=made) as runner:
        print(runner.run(main(int(number), int(warming), era, place)))
