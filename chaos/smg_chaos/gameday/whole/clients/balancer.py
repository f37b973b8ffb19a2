"""Balancer: HTTP readiness checks of every node each second, round robin over those that are in.

A node is out after two questions without a 200 in time, and in again after one. What was refused before anything was
asked, or with 503, may be tried at another node; nothing else is ever sent twice.
"""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.agents.smg_agent import HTTP_PORT
from smg_chaos.gameday.clients.stream_client import Connect
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.lab.lab import Lab

TRIES: Final = 3
_LOOK_S: Final = 1.0
_ANSWER_S: Final = 1.0
_CONNECT_S: Final = 2.0
_FALLS: Final = 2
_HEAD_BYTES_MAX: Final = 1 << 16
Gateway = TypeVar("Gateway", bound=Agent)


class Attempt:
    """One try at one node. `reached`: there was a connection, so that something may have been asked."""

    def __init__(self, connect: Connect) -> None:
        self.reached = False
        self._connect = connect

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the node; OSError if it cannot be reached."""
        made = await self._connect()
        self.reached = True
        return made


class Balancer(Generic[Gateway]):
    """The nodes that are in, and the turn among them. It lies at `place`, and so do its clients."""

    def __init__(self, lab: Lab, place: str, nodes: Sequence[Gateway]) -> None:
        self._lab = lab
        self._place = place
        self._nodes = tuple(nodes)
        self._missed = dict.fromkeys((node.name for node in nodes), _FALLS)
        self._turn = 0

    def up(self) -> list[str]:
        """Return the names of the nodes that are in."""
        return [name for name, missed in self._missed.items() if missed < _FALLS]

    def next(self, tried: Collection[str] = ()) -> Gateway | None:
        """Return the node whose turn it is, of those that are in and were not tried; None if there is none."""
        self._turn += 1
        up = self.up()
        able = [node for node in self._nodes if node.name in up and node.name not in tried]
        return able[self._turn % len(able)] if able else None

    def attempt(self, node: Gateway) -> Attempt:
        """Return a try at a node, over the network."""
        return Attempt(partial(self._connected, node))

    async def run(self) -> None:
        """Ask all nodes each second until cancelled."""
        async with asyncio.TaskGroup() as group:
            for node in self._nodes:
                group.create_task(self._watch(node))

    async def _watch(self, node: Gateway) -> None:
        talk = Talk(partial(self._lab.socket, self._place), node.address, HTTP_PORT)
        try:
            while True:
                try:
                    status, _ = await talk.ask("GET", "/readiness", timeout_s=_ANSWER_S)
                except ConnectionError:
                    status = 0
                missed = self._missed[node.name]
                self._missed[node.name] = 0 if status == 200 else missed + 1
                await asyncio.sleep(_LOOK_S)
        finally:
            talk.close()

    async def _connected(self, node: Gateway) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = self._lab.socket(self._place)
        try:
            made.setblocking(False)
            async with asyncio.timeout(_CONNECT_S):
                loop = asyncio.get_running_loop()
                await loop.sock_connect(made, (node.address, HTTP_PORT))
            return await asyncio.open_connection(sock=made, limit=_HEAD_BYTES_MAX)
        except TimeoutError as error:
            made.close()
            raise ConnectionError(f"{node.name} takes no connection") from error
        except BaseException:
            made.close()
            raise
