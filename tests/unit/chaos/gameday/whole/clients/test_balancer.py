"""The balancer of a game day: who is in, whose turn it is, and what may be tried again."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import cast

import pytest

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.whole.clients import balancer as module
from smg_chaos.gameday.whole.clients.balancer import Balancer

ADDRESSES = {"a": "127.0.0.1", "b": "127.0.0.2", "c": "127.0.0.3"}
LIMIT_S = 10.0
LOOK_S = 0.005


class Nodes:
    """Servers that answer every question with the status they are told; None: they hang up."""

    def __init__(self) -> None:
        self.statuses: dict[str, int | None] = dict.fromkeys(ADDRESSES, 200)
        self.asked = dict.fromkeys(ADDRESSES, 0)
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.writers.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.asked[name] += 1
                status = self.statuses[name]
                if status is None:
                    break
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: 0\r\n\r\n" % status)
        writer.close()


@asynccontextmanager
async def balanced(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[tuple[Balancer[SmgAgent], Nodes]]:
    nodes, servers, port = Nodes(), [], 0
    for name, address in ADDRESSES.items():

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = name
        ) -> None:
            await nodes.serve(name, reader, writer)

        server = await asyncio.start_server(serve, address, port)
        port = server.sockets[0].getsockname()[1]
        servers.append(server)
    monkeypatch.setattr(module, "HTTP_PORT", port)
    monkeypatch.setattr(module, "_LOOK_S", LOOK_S)
    lab = cast(Lab, SimpleNamespace(socket=lambda _place: socket.socket()))
    agents = [SimpleNamespace(name=name, address=at) for name, at in ADDRESSES.items()]
    balancer = Balancer(lab, "clients", cast(list[SmgAgent], agents))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(balancer.run())
        yield balancer, nodes
        running.cancel()
    for server in servers:
        server.close()
    for writer in nodes.writers:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def comes(true: Callable[[], bool]) -> None:
    for _ in range(round(LIMIT_S / LOOK_S)):
        if true():
            return
        await asyncio.sleep(LOOK_S)
    raise AssertionError("it never comes")


def names(balancer: Balancer[SmgAgent], *tried: str) -> set[str]:
    found = [balancer.next(tried) for _ in range(6)]
    return {node.name for node in found if node is not None}


async def test_nobody_is_in_before_it_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with balanced(monkeypatch) as (balancer, _):
        assert balancer.next() is None
        await comes(lambda: len(balancer.up()) == 3)
        assert names(balancer) == {"a", "b", "c"}
        assert names(balancer, "a", "c") == {"b"}
        assert names(balancer, "a", "b", "c") == set()


@pytest.mark.parametrize("status", [503, None])
async def test_who_is_not_ready_or_hangs_up_is_out_until_it_answers_again(
    monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    async with balanced(monkeypatch) as (balancer, nodes):
        await comes(lambda: len(balancer.up()) == 3)
        asked = nodes.asked["b"]
        nodes.statuses["b"] = status
        await comes(lambda: "b" not in balancer.up())
        assert nodes.asked["b"] >= asked + 2
        assert names(balancer) == {"a", "c"}
        nodes.statuses["b"] = 200
        await comes(lambda: "b" in balancer.up())


async def test_an_attempt_knows_whether_it_reached_anybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with balanced(monkeypatch) as (balancer, _):
        node = SimpleNamespace(name="a", address=ADDRESSES["a"])
        attempt = balancer.attempt(cast(SmgAgent, node))
        _, writer = await attempt.connect()
        writer.close()
        await writer.wait_closed()
        assert attempt.reached
        nowhere = balancer.attempt(cast(SmgAgent, SimpleNamespace(name="x", address="127.9.9.9")))
        with pytest.raises(OSError, match="Connect call failed"):
            await nowhere.connect()
        assert not nowhere.reached
