"""Host of an API server on purpose: runs it until it is told to end."""

import asyncio
import signal

from smg_chaos.kubernetes.faults import Faults
from smg_chaos.kubernetes.server import KubernetesServer


def serve(host: str, port: int, faults: Faults) -> None:
    """Serve until SIGTERM or SIGINT; OSError if the port is taken."""

    async def run() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ended.set)
        server = KubernetesServer(faults=faults)
        try:
            bound = await server.listen(host, port)
            print(f"listening on {host}:{bound} url=http://{host}:{bound}", flush=True)
            await ended.wait()
        finally:
            await server.close()

    asyncio.run(run())
