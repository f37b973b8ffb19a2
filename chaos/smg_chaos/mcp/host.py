"""Host of an MCP server on purpose: runs it until it is told to end."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

from smg_chaos.mcp.faults import Fault
from smg_chaos.mcp.stdio_server import StdioServer


def serve_http(
    era: str, faults: Sequence[Fault], host: str, port: int, *, answers: str, token: str
) -> None:
    """Serve by HTTP until SIGTERM or SIGINT; OSError if the port is taken."""
    # A process that serves by its standard input starts in half the time without it.
    from smg_chaos.mcp.http_server import HttpServer

    async def run() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        async with asyncio.TaskGroup() as group:
            server = HttpServer(group, era, faults=faults, answers=answers, token=token)
            try:
                bound = await server.listen(host, port)
                print(f"listening on {host}:{bound} url=http://{host}:{bound}/mcp", flush=True)
                await ended.wait()
            finally:
                await server.close()

    asyncio.run(run())


def serve_stdio(era: str, faults: Sequence[Fault], count_file: Path | None) -> None:
    """Serve on standard input and output until the input ends."""
    asyncio.run(StdioServer(era, faults, count_file).serve())
