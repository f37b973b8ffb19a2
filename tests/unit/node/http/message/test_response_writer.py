"""What leaves at once leaves at once, whole and in order, on the loop of a node and on asyncio's own."""

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Any, cast

import pytest
import uvloop

from smg_node.http.message.reply import HeadWriter
from smg_node.http.message.response_writer import Wire, write_at_once
from smg_node.system_clock import SystemClock

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


class Listening:
    """A connection, and the transport of one, that remembers what was written."""

    def __init__(self) -> None:
        self.written = b""
        self.sent_bytes = 0
        self.writing_paused = self.closing = False
        self.transport: Listening | None = self

    def is_closing(self) -> bool:
        return self.closing

    def write(self, data: bytes) -> None:
        self.written += data


def wire_on(line: Listening, *, http11: bool = True) -> Wire:
    return Wire(cast(Any, line), HeadWriter(SystemClock()), http11, True)


@pytest.mark.parametrize("size", [1, 9, 10, 15, 16, 255, 256, 2_047, 2_048, 2_049, 70_000])
def test_a_chunk_says_how_long_it_is_and_is_counted(size: int) -> None:
    line, data = Listening(), b"x" * size
    wire = wire_on(line)
    assert not wire.chunk(data)
    assert line.written == f"{size:x}\r\n".encode() + data + b"\r\n"
    assert line.sent_bytes == wire.bytes_out == len(line.written)
    line.writing_paused = True
    assert wire.chunk(data)
    assert (
        line.sent_bytes
        == wire.bytes_out
        == len(line.written)
        == 2 * (len(data) + len(f"{size:x}") + 4)
    )


def test_before_chunks_were_known_a_stream_is_its_bytes() -> None:
    line = Listening()
    wire_on(line, http11=False).chunk(b"data: 1\n\n")
    assert line.written == b"data: 1\n\n"


def test_nothing_is_written_to_a_client_that_is_gone() -> None:
    line = Listening()
    wire = wire_on(line)
    line.closing = True
    with pytest.raises(ConnectionResetError, match="gone"):
        wire.chunk(b"x")
    line.transport = None
    with pytest.raises(ConnectionResetError, match="gone"):
        wire.chunk(b"x")
    assert (line.written, line.sent_bytes, wire.bytes_out) == (b"", 0, 0)
