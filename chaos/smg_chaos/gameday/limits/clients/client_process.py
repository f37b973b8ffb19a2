"""Client process of the limits gameday: reads a plan, then serves commands from one TCP peer.

    python -m smg_chaos.gameday.limits.clients.client_process PLAN

PLAN is a file with a `Plan` in JSON. Commands come in lines of JSON over the one TCP connection
that it takes; when that ends, so does the process.
"""

import asyncio
import gc
import sys
from pathlib import Path

import msgspec
import uvloop

from smg_chaos.gameday.limits.clients.client_messages import Plan
from smg_chaos.gameday.limits.clients.paced_client import Client
from smg_node.system_clock import SystemClock


async def work(plan: Plan) -> None:
    """Listen, report it, and serve the first connection."""
    come: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    come = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if come.done():
            writer.close()
        else:
            come.set_result((reader, writer))

    server = await asyncio.start_server(connected, plan.host, plan.port)
    print(f"listening on {plan.host}:{plan.port}", flush=True)
    async with server:
        reader, writer = await come
        gc.collect()
        gc.freeze()
        try:
            await Client(plan, SystemClock()).run(reader, writer)
        finally:
            writer.close()


def main() -> None:
    """Run the client process for a plan."""
    plan = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Plan)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work(plan))


if __name__ == "__main__":
    main()
