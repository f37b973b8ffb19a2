"""A server of the Python SDK, run by the interpreter that has it: argument 1 is its transport.

By HTTP it says where it listens. Its tools are those that servers of other SDKs are compared by.
"""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer


def echo(text: str) -> str:
    """Return the text."""
    return text


def big(n: int) -> str:
    """Return so many characters."""
    return "x" * n


async def slow(n: int, ctx: Context) -> str:
    """Take n tenths of a second, with progress."""
    for step in range(n):
        await asyncio.sleep(0.1)
        await ctx.report_progress(step + 1, n)
    return "done"


def main(transport: str) -> None:
    """Serve until somebody ends it."""
    server = MCPServer("python")
    for tool in (echo, big, slow):
        server.add_tool(tool)
    if transport == "stdio":
        server.run("stdio")
        return
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stderr.write(f"listening on 127.0.0.1:{listening.getsockname()[1]}\n")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])
