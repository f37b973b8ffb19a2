"""A client of a streamed chat, against a server that says what it is told to."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from smg_chaos.gameday.clients import stream_client as listener
from smg_chaos.gameday.clients.stream_check import Hearing
from smg_chaos.gameday.lab.lab import Lab

Said = Sequence[bytes | float]
"""Bytes to send, and seconds to wait."""

HEAD = b"HTTP/1.1 200 OK\r\nX-Request-Id: req_1\r\nX-Smg-Routed-Worker-Id: w-1\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}\n\n'


class Loopback(Lab):
    """A lab whose only place is this machine."""

    def __init__(self) -> None:
        """Have nothing."""

    def socket(self, place: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
        return socket.socket()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


@asynccontextmanager
async def server(said: Said, patch: pytest.MonkeyPatch) -> AsyncIterator[list[bytes]]:
    heads: list[bytes] = []
    served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            length = int(heads[0].split(b"content-length: ")[1].split(b"\r\n")[0])
            heads.append(await reader.readexactly(length))
            for one in said:
                if isinstance(one, float):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1), one)  # or until the client goes
                else:
                    writer.write(one)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            served.set()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        patch.setattr(listener, "HTTP_PORT", listening.sockets[0].getsockname()[1])
        yield heads
        await asyncio.wait_for(served.wait(), 20.0)


async def asked(patch: pytest.MonkeyPatch, *said: bytes | float, limit_s: float = 20.0) -> Hearing:
    hearing = Hearing(0.0)
    now_s = asyncio.get_running_loop().time
    async with server(said, patch) as heads:
        await listener.listen(
            listener.at_place(Loopback(), "n0"),
            {"q": 1},
            now_s=now_s,
            limit_s=limit_s,
            hearing=hearing,
        )
    assert heads[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert json.loads(heads[1]) == {"q": 1}
    assert hearing.ended_s > 0
    return hearing


async def test_a_stream_is_heard_to_its_end_with_the_worker_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = EVENT + b"data: [DONE]\n\n"
    heard = await asked(
        monkeypatch, HEAD, chunk(content[:20]), 0.01, chunk(content[20:]), b"0\r\n\r\n"
    )
    assert (heard.status, heard.worker, heard.texts, heard.ends) == (200, "w-1", {0: "Hi"}, 1)
    assert (heard.errors, heard.broken, heard.request) == ([], "", "req_1")


async def test_a_refusal_is_heard_with_its_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = await asked(monkeypatch, b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy")
    assert (heard.status, heard.errors) == (503, ["503 busy"])


@pytest.mark.parametrize(
    "said",
    [
        (),
        (HEAD, chunk(EVENT)),
        (HEAD, chunk(EVENT)[:-9]),
        (HEAD, b"what?\r\n"),
        (b"HTTP/1.1\r\n\r\n",),
        (b"x" * (1 << 17),),
    ],
)
async def test_whatever_else_comes_is_a_broken_connection(
    monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    heard = await asked(monkeypatch, *said)
    assert heard.broken.startswith("the connection broke: ")


async def test_one_that_never_ends_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = await asked(monkeypatch, HEAD, chunk(EVENT), 20.0, limit_s=0.2)
    assert heard.broken == "no end within 0 s"
    assert heard.texts == {0: "Hi"}
