"""Remote clients: the bench's handle on its client processes; each command goes to all of them."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from smg_chaos.bench.children import BenchError, Child, spawn
from smg_chaos.bench.load.job import Command, Flow, Job, Reply, Tally
from smg_chaos.bench.load.workload import ROUND

_REPLY_S: Final = 90.0
_REPLY_MAX: Final = 64 * 1024 * 1024


class Clients:
    """One or more client processes that share every job."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        """The processes that were started."""
        self._readers: list[asyncio.StreamReader] = []
        self._pipes: list[asyncio.ReadTransport] = []

    async def start(self, count: int, folder: Path) -> None:
        """Start the processes."""
        loop = asyncio.get_running_loop()
        for number in range(count):
            command = [sys.executable, "-m", "smg_chaos.bench.load.client"]
            child = spawn("the client", command, folder / f"client-{number}.log", pipes=True)
            self.children.append(child)
            reader = asyncio.StreamReader(limit=_REPLY_MAX)
            self._readers.append(reader)
            stdout = child.process.stdout
            pipe, _ = await loop.connect_read_pipe(
                lambda reader=reader: asyncio.StreamReaderProtocol(reader),  # type: ignore[misc]  # a lambda with a default has no type of its own
                stdout,
            )
            self._pipes.append(pipe)

    @property
    def pids(self) -> list[int]:
        """The processes' ids."""
        return [child.pid for child in self.children]

    async def begin(self, job: Job) -> None:
        """Let all clients begin their shares of a job."""
        count = len(self.children)
        shares = [share_of(job, number, count) for number in range(count)]
        await self._tell([Command(do="start", job=share) for share in shares])

    async def open(self) -> None:
        """Let counting begin."""
        await self._tell([Command(do="open")] * len(self.children))

    async def close(self) -> dict[str, Tally]:
        """Let counting end; return what came."""
        return merged(await self._tell([Command(do="close")] * len(self.children)))

    async def stop(self) -> dict[str, Tally]:
        """End the job; return what came of all of it."""
        return merged(await self._tell([Command(do="stop")] * len(self.children)))

    async def _tell(self, commands: Sequence[Command]) -> list[Reply]:
        for child, command in zip(self.children, commands, strict=True):
            assert child.process.stdin is not None, "the client was started with pipes"
            try:
                child.process.stdin.write(msgspec.json.encode(command) + b"\n")
                child.process.stdin.flush()
            except OSError as error:
                raise BenchError(f"the client is gone: {error}\n{child.last_words()}") from error
        return [await self._reply(number) for number in range(len(commands))]

    async def _reply(self, number: int) -> Reply:
        child = self.children[number]
        try:
            async with asyncio.timeout(_REPLY_S):
                line = await self._readers[number].readline()
        except TimeoutError:
            raise BenchError(f"the client says nothing\n{child.last_words()}") from None
        if not line:
            raise BenchError(f"the client is gone\n{child.last_words()}")
        return msgspec.json.decode(line, type=Reply)

    async def end(self) -> None:
        """Stop the processes."""
        for child in self.children:
            await child.stop()
        for pipe in self._pipes:
            pipe.close()


def share_of(job: Job, number: int, count: int) -> Job:
    """Return the part of client `number` of `count` in a job: its connections, rate and prompts."""
    if count == 1:
        return job
    flows = []
    for flow in job.flows:
        if flow.process is not None:
            flows += [flow] if flow.process % count == number else []
            continue
        connections = flow.connections // count + (number < flow.connections % count)
        if connections:
            flows.append(_part(flow, connections, number, count))
    return msgspec.structs.replace(job, flows=tuple(flows), seed=job.seed + 1000 * number)


def _part(flow: Flow, connections: int, number: int, count: int) -> Flow:
    first = flow.prompt.first + number * (ROUND // 2 // count)
    parts = min(count, flow.connections)
    return msgspec.structs.replace(
        flow,
        connections=connections,
        rate_per_s=flow.rate_per_s * connections / flow.connections,
        most=flow.most // parts + (number < flow.most % parts),
        prompt=msgspec.structs.replace(flow.prompt, first=first),
    )


def merged(replies: Sequence[Reply]) -> dict[str, Tally]:
    """Return the sums of all clients' tallies."""
    sums: dict[str, Tally] = {}
    for reply in replies:
        for name, tally in reply.tallies.items():
            total = sums.setdefault(name, Tally())
            for what in (
                "requests",
                "tokens",
                "errors",
                "prompt_tokens",
                "careful",
                "unsent",
                "crowds",
            ):
                setattr(total, what, getattr(total, what) + getattr(tally, what))
            total.gap = max(total.gap, tally.gap)
            for what in ("problems", "ttft", "tpot", "latency", "gaps", "asking"):
                setattr(total, what, [*getattr(total, what), *getattr(tally, what)])
    return sums
