"""A client of the Python SDK, run by the interpreter that has it: arguments are a URL, a mode and a tool's name.

It prints in one JSON object what it was told: revision, tools, what the tool answered, progress, and what it was asked.
"""

import asyncio
import json
import sys
from typing import Any

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult


async def main(url: str, mode: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what a server said."""
    asked: list[str] = []
    steps: list[list[float | None]] = []

    async def elicited(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={})

    async def progressed(done: float, total: float | None, message: str | None) -> None:
        steps.append([done, total])

    async with Client(url, mode=mode, elicitation_callback=elicited) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += [one.name for one in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        told: dict[str, Any] = {"revision": client.protocol_version, "tools": tools}
        try:
            result = await client.call_tool(tool, arguments, progress_callback=progressed)
            told |= {"text": result.content[0].text, "is_error": bool(result.is_error)}
        except MCPError as error:
            told |= {"code": error.code, "message": error.message}
        return {**told, "steps": steps, "asked": asked}


if __name__ == "__main__":
    where, how, name, values = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(main(where, how, name, json.loads(values)))) + "\n")
