"""Replicas of a real stateful server that know only their own sessions, behind a switch of connections or of requests."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import ClientSession, ClientTimeout, web

from support.mcp.real_servers import PROGRAMS, python
from support.processes.process import Process, running

_READY_S: Final = 60.0
_NOT_PASSED: Final = ("host", "transfer-encoding", "content-length", "connection")


@dataclass(frozen=True)
class Replica:
    """One server, as a process."""

    process: Process
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def said(self, word: str) -> list[str]:
        """Return what it said of sessions: the rest of each line that begins so."""
        lines = self.process.said().splitlines()
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]


def told(replicas: Sequence[Replica], word: str) -> Counter[str]:
    """Return what all of them said."""
    return Counter(line for one in replicas for line in one.said(word))


@contextmanager
def stateful_servers(folder: Path, count: int = 1) -> Iterator[list[Replica]]:
    """Run so many, each for itself."""
    command: list[str | Path] = [python(), PROGRAMS / "stateful_server.py"]
    with ExitStack() as stack:
        started = [
            stack.enter_context(running(command, folder=folder / str(at))) for at in range(count)
        ]
        yield [
            Replica(one, int(one.wait_for(r"listening on 127\.0\.0\.1:(\d+)", _READY_S)[1]))
            for one in started
        ]


@dataclass
class Switch:
    """A switch of connections: its URL, and how many it has handed on."""

    url: str = ""
    turn: int = 0
    open: set[asyncio.Task[None]] = field(default_factory=set)

    def cut(self) -> None:
        """End all connections that are open."""
        for task in tuple(self.open):
            task.cancel()


@asynccontextmanager
async def connection_switch(*ports: int) -> AsyncIterator[Switch]:
    """Yield a switch that hands each connection to the next port, for as long as it lasts."""
    switch = Switch()

    async def piped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            # Both ways end together, as one connection does.
            writer.close()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        switch.turn += 1
        there, back = await asyncio.open_connection("127.0.0.1", ports[switch.turn % len(ports)])
        async with asyncio.TaskGroup() as group:
            group.create_task(piped(reader, back))
            group.create_task(piped(there, writer))

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = tasks.create_task(passed(reader, writer))
        switch.open.add(task)
        task.add_done_callback(switch.open.discard)
        # A task that is cancelled before it began closes nothing.
        task.add_done_callback(lambda _task: writer.close())

    async with asyncio.TaskGroup() as tasks:
        server = await asyncio.start_server(accepted, "127.0.0.1", 0)
        async with server:
            switch.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            yield switch
        switch.cut()


@asynccontextmanager
async def request_switch(
    replicas: Sequence[Replica], chance: random.Random | None = None
) -> AsyncIterator[str]:
    """Yield the URL of a switch that hands each request to the next replica, or to any by `chance`."""
    turn = 0

    async def passed(request: web.Request) -> web.StreamResponse:
        nonlocal turn
        turn += 1
        at = turn % len(replicas) if chance is None else chance.randrange(len(replicas))
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _NOT_PASSED}
        body = await request.read()
        async with client.request(
            request.method, replicas[at].url, data=body, headers=headers
        ) as answer:
            kept = {k: v for k, v in answer.headers.items() if k.lower() not in _NOT_PASSED}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_route("*", "/mcp", passed)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    async with ClientSession(timeout=ClientTimeout(total=None)) as client:
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        finally:
            await runner.cleanup()
