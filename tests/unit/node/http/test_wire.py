"""What leaves at once leaves at once, whole and in order, on the loop of a node and on asyncio's own."""

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Any, cast

import pytest
import uvloop

from smg_node.http.wire import write_at_once

HIGH_BYTES = 256 * 1024
LARGE = bytes(range(256)) * 64 * 1024


class Writer(asyncio.Protocol):
    """Says what it is told to, and remembers whether it was asked to pause."""

    def __init__(self) -> None:
        self.made: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()
        self.paused: list[bool] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance: uvloop's transports do not inherit from asyncio's.
        made = cast("asyncio.Transport", transport)
        made.set_write_buffer_limits(high=HIGH_BYTES)
        self.made.set_result(made)

    def pause_writing(self) -> None:
        self.paused.append(True)

    def resume_writing(self) -> None:
        self.paused.append(False)


async def connected() -> tuple[Writer, asyncio.Transport, socket.socket]:
    loop = asyncio.get_running_loop()
    writer = Writer()
    server = await loop.create_server(lambda: writer, "127.0.0.1", 0)
    raw = socket.create_connection(server.sockets[0].getsockname())
    transport = await writer.made
    server.close()
    return writer, transport, raw


async def it_is_there_before_the_loop_comes_round() -> None:
    _, transport, raw = await connected()
    with raw:
        write_at_once(transport, b"first")
        # Nothing of the loop runs while this waits.
        readable, _, _ = select.select([raw], [], [], 10.0)
        assert readable
        assert raw.recv(100) == b"first"
        assert transport.get_write_buffer_size() == 0
        transport.close()


async def what_does_not_fit_follows_in_order() -> None:
    writer, transport, raw = await connected()
    with raw:
        write_at_once(transport, LARGE)
        transport.write(b"end")
        assert writer.paused == [True]
        got = await asyncio.to_thread(_all_of, raw, len(LARGE) + 3)
        assert got == LARGE + b"end"
        assert writer.paused == [True, False]
        # What may wait is what it was.
        transport.write(bytes(HIGH_BYTES // 2))
        assert writer.paused == [True, False]
        transport.abort()


async def it_comes_after_what_waits() -> None:
    _, transport, raw = await connected()
    with raw:
        transport.write(b"before ")
        write_at_once(transport, b"after")
        assert await asyncio.to_thread(_all_of, raw, 12) == b"before after"
        transport.close()


def _all_of(raw: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        got += raw.recv(65536)
    return bytes(got)


@pytest.mark.parametrize("run", [uvloop.run, asyncio.run], ids=["uvloop", "asyncio"])
@pytest.mark.parametrize(
    "holds",
    [
        it_is_there_before_the_loop_comes_round,
        what_does_not_fit_follows_in_order,
        it_comes_after_what_waits,
    ],
    ids=lambda holds: holds.__name__,
)
def test_what_is_written_at_once(run: Callable[[Any], None], holds: Callable[[], Any]) -> None:
    run(holds())
