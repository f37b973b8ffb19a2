"""Host of several stand-ins in one process, each on its own port."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence

import uvloop

from smg_chaos.vendor.server import VendorServer
from smg_chaos.vendor.settings import VendorSettings
from smg_node.core.ports import Clock


def serve(
    stand_ins: Sequence[VendorSettings],
    host: str,
    port: int,
    clock: Clock,
    tell: Callable[[str], None],
    *,
    until_input_ends: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, with a line for each stand-in once it listens; OSError if a port is taken."""

    async def run() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        if until_input_ends:
            loop.add_reader(sys.stdin, _read_on, loop, ended)
        servers: list[VendorServer] = []
        try:
            for at, settings in enumerate(stand_ins):
                server = VendorServer(settings, clock)
                servers.append(server)
                bound = await server.listen(host, port and port + at)
                base = f"http://{host}:{bound}{server.vendor.hosting.base}"
                tell(f"listening on {host}:{bound} kind={settings.kind} base={base}")
            await ended.wait()
        finally:
            for server in servers:
                await server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def _read_on(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Discard stdin; end the process at its end."""
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin)
        ended.set()
