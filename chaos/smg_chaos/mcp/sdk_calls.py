"""SDK calls: the official Python SDK's client calls a tool many times, and says what that cost it.

Run as a program by an interpreter that has the SDK: URL or `stdio PROGRAM WORDS…`, after calls and mode. Prints the CPU
seconds of its process for all calls but the first ones.
"""

import asyncio
import sys
import time
from typing import Any


async def main(calls: int, warm: int, mode: str, where: list[str]) -> float:
    """Return the CPU seconds of `calls` calls."""
    from mcp import Client, StdioServerParameters

    server: Any = where[0]
    if where[0] == "stdio":
        server = StdioServerParameters(command=where[1], args=where[2:])
    async with Client(server, mode=mode) as client:
        await client.list_tools()
        for _ in range(warm):
            await client.call_tool("echo", {"text": "x" * 100})
        start_s = time.process_time()
        for _ in range(calls):
            await client.call_tool("echo", {"text": "x" * 100})
        return time.process_time() - start_s


if __name__ == "__main__":
    number, warming, era, *place = sys.argv[1:]
    print(asyncio.run(main(int(number), int(warming), era, place)))
