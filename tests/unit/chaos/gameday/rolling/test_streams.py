"""Streams that are open all the time: what is refused, cut or wrong is an error, and nothing is tried twice."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.rolling.streams import Streams, questions
from smg_chaos.gameday.whole.clients.balancer import Attempt, Balancer
from support.http.raw_http import until

COUNT = 3


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Node:
    """One that answers each question with so many words, until it is told to do otherwise."""

    def __init__(self) -> None:
        self.refuses = self.breaks = self.lies = False
        self.asked = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        self.asked += 1
        if self.refuses:
            writer.write(b"HTTP/1.1 503 X\r\ncontent-length: 2\r\n\r\n{}")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            self._say(writer, asked["max_tokens"])
        await writer.drain()
        await asyncio.sleep(0.005)
        writer.close()

    def _say(self, writer: asyncio.StreamWriter, words: int) -> None:
        for number in range(words):
            text = "no " if self.lies and number == 2 else f"{number} "
            writer.write(chunk(event(choices=[{"index": 0, "delta": {"content": text}}])))
        if self.breaks:
            return
        writer.write(chunk(event(choices=[{"index": 0, "delta": {}, "finish_reason": "length"}])))
        used = {"prompt_tokens": 1, "completion_tokens": words, "total_tokens": words + 1}
        writer.write(chunk(event(choices=[], usage=used)))
        writer.write(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


class OneNode:
    """A balancer in front of it; None is in while it is `out`."""

    def __init__(self, port: int) -> None:
        self.out = False
        self._port = port

    def next(self) -> Any:
        return None if self.out else SimpleNamespace(name="n0")

    def attempt(self, _node: Any) -> Attempt:
        return Attempt(lambda: asyncio.open_connection("127.0.0.1", self._port))


@asynccontextmanager
async def streaming() -> AsyncIterator[tuple[Streams, Node, OneNode]]:
    node = Node()
    server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
    balancer = OneNode(server.sockets[0].getsockname()[1])
    now_s = asyncio.get_running_loop().time
    yield Streams(cast(Balancer[SmgAgent], balancer), COUNT, 1.0, now_s=now_s), node, balancer
    server.close()


async def ran(streams: Streams, least: int) -> None:
    """Let them run until so many have ended."""
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(streams.run())
        await until(lambda: len(streams.ended) >= least)
        streams.stop()


def test_questions_are_all_different_and_the_longest_takes_as_long_as_it_should() -> None:
    asked = questions(10.0)
    lengths = [one["max_tokens"] for one in asked]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (30, 100)
    assert len({one["messages"][0]["content"] for one in asked}) == len(asked)


async def test_undisturbed_streams_are_exact_and_all_clients_go_on_asking() -> None:
    async with streaming() as (streams, node, _):
        await streams.learn()
        before = node.asked
        await ran(streams, 4 * COUNT)
    assert node.asked - before == len(streams.ended) >= 4 * COUNT
    assert [one.problem for one in streams.ended] == [""] * len(streams.ended)
    assert streams.open_now == 0


@pytest.mark.parametrize(
    ("how", "words"),
    [("refuses", "503"), ("breaks", "broke"), ("lies", "comes 'no"), ("out", "no node is in")],
)
async def test_what_a_client_should_not_see_is_told(how: str, words: str) -> None:
    async with streaming() as (streams, node, balancer):
        await streams.learn()
        before = node.asked
        setattr(balancer if how == "out" else node, how, True)
        await ran(streams, COUNT)
    assert all(words in one.problem for one in streams.ended), streams.ended
    assert node.asked - before == (0 if how == "out" else len(streams.ended)), (
        "nothing is tried twice"
    )


async def test_answers_that_are_never_right_are_not_learned() -> None:
    async with streaming() as (streams, node, _):
        node.breaks = True
        with pytest.raises(ClusterError, match="not right"):
            await streams.learn()
