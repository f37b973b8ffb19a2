"""A client of FastMCP, run by the interpreter that has it: arguments are a URL, a key, a tool's name and its arguments.

It prints in one JSON object what it was told: tools, what the tool answered, and progress.
"""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import McpError, ToolError


async def main(url: str, key: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a server said."""
    steps: list[list[float | None]] = []

    async def progressed(done: float, total: float | None, message: str | None) -> None:
        steps.append([done, total])

    transport = StreamableHttpTransport(url, headers={"authorization": f"Bearer {key}"})
    async with Client(transport, progress_handler=progressed) as client:
        told: dict[str, Any] = {"tools": [one.name for one in await client.list_tools()]}
        try:
            result = await client.call_tool(tool, arguments)
            told["text"] = result.content[0].text
        except ToolError as error:
            told["tool_error"] = str(error)
        except McpError as error:
            told["code"] = error.error.code
        return {**told, "steps": steps}


if __name__ == "__main__":
    where, secret, name, values = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(main(where, secret, name, json.loads(values)))) + "\n")
