"""Client process of the load generator (`python -m smg_chaos.bench.load.client`): commands on
stdin, tallies on stdout.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec
import uvloop

from smg_chaos.bench.load.corpus import standard_library
from smg_chaos.bench.load.flash.flash_run import FlashRun
from smg_chaos.bench.load.job import Command, Job, Reply, Tally
from smg_chaos.bench.load.load_flows import FlowRun
from smg_chaos.bench.load.requests import requests_of

_LINE_MAX: Final = 16 * 1024 * 1024
_END_S: Final = 45.0


class Client:
    """Executes commands, one job after the other."""

    def __init__(self, reader: asyncio.StreamReader, say: Callable[[Reply], None]) -> None:
        self._reader = reader
        self._say = say
        self._corpus = cache(standard_library)

    async def run(self) -> None:
        """Work until the commands end."""
        while command := await self._command():
            if command.do == "start" and command.job is not None:
                await self._work(command.job)

    async def _command(self) -> Command | None:
        line = await self._reader.readline()
        return msgspec.json.decode(line, type=Command) if line else None

    async def _work(self, job: Job) -> None:
        runs: list[FlowRun] = []
        for place, flow in enumerate(job.flows):
            requests = requests_of(job, flow, self._corpus)
            kind = FlashRun if flow.shape == "flash" else FlowRun
            runs.append(kind(job, flow, requests, seed=job.seed + place))
        gc.collect()
        gc.freeze()
        async with asyncio.TaskGroup() as group:
            for run in runs:
                for work in run.work():
                    group.create_task(work)
            self._say(Reply(did="start"))
            await self._obey(runs)

    async def _obey(self, runs: list[FlowRun]) -> None:
        while command := await self._command():
            tallies: dict[str, Tally] = {}
            if command.do == "open":
                for run in runs:
                    run.open()
            elif command.do == "close":
                tallies = {run.flow.name: run.close() for run in runs}
            elif command.do == "stop":
                # Not one after the other: while one ends, no other should go on asking.
                async with asyncio.TaskGroup() as group:
                    for run in runs:
                        group.create_task(run.stop(_END_S))
                tallies = {run.flow.name: run.tally() for run in runs}
                self._say(Reply(did="stop", tallies=tallies))
                return
            self._say(Reply(did=command.do, tallies=tallies))
        for run in runs:
            await run.stop(0)


async def work() -> None:
    """Serve commands on stdin, with answers on stdout."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def say(reply: Reply) -> None:
        content = msgspec.json.encode(reply) + b"\n"
        while content:
            content = content[os.write(sys.stdout.fileno(), content) :]

    await Client(reader, say).run()


def main() -> None:
    """Run until stdin ends."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())


if __name__ == "__main__":
    main()
