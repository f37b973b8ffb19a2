"""Process control: start, command and stop a process of clients in the lab, from the scenario."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import msgspec

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.smg_agent import HTTP_PORT
from smg_chaos.gameday.limits.clients.client_messages import Command, Plan, Reply

_FIRST_PORT: Final = 62000
_START_S: Final = 60.0
_LOOK_S: Final = 0.02
_LINE_BYTES_MAX: Final = 1 << 16


class Clients:
    """One process of clients, the `number`-th, at `place`; it sends to every node of the
    cluster.
    """

    def __init__(
        self, cluster: Cluster, place: str, number: int, *, seed: int, folder: Path
    ) -> None:
        self._cluster = cluster
        self._place = place
        self._folder = folder
        self.record = folder / f"clients-{number}.answers"
        self._plan = Plan(
            host=cluster.lab.address(place),
            port=_FIRST_PORT + number,
            nodes=[cluster.lab.address(name) for name in cluster.names],
            node_port=HTTP_PORT,
            number=number,
            seed=seed,
            record=str(self.record),
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        """Start it; return when it takes commands. ClusterError if it does not start."""
        plan = self._folder / f"clients-{self._plan.number}.json"
        plan.write_bytes(msgspec.json.encode(self._plan))
        log = self._folder / f"clients-{self._plan.number}.log"
        command: list[str | Path] = [
            sys.executable,
            *("-m", "smg_chaos.gameday.limits.clients.client_process", str(plan)),
        ]
        with log.open("wb") as output:
            program = self._cluster.lab.spawn(self._place, command, output, folder=self._folder)
        for _ in range(round(_START_S / _LOOK_S)):
            if b"listening on" in log.read_bytes():
                break
            if program.ended() is not None:
                raise ClusterError(f"the clients do not start:\n{log.read_text()[-2000:]}")
            await asyncio.sleep(_LOOK_S)
        made = self._cluster.lab.socket(self._place)
        made.setblocking(False)
        where = (self._plan.host, self._plan.port)
        await asyncio.get_running_loop().sock_connect(made, where)
        self._streams = await asyncio.open_connection(sock=made, limit=_LINE_BYTES_MAX)

    async def do(self, command: Command) -> Reply:
        """Send it a command; return its reply. ClusterError if it has ended."""
        assert self._streams is not None
        reader, writer = self._streams
        async with self._turn:
            try:
                writer.write(msgspec.json.encode(command) + b"\n")
                line = await reader.readline()
                return msgspec.json.decode(line, type=Reply)
            except (OSError, msgspec.DecodeError) as error:
                raise ClusterError(f"the clients have ended: {error}") from error

    def close(self) -> None:
        """End it."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
