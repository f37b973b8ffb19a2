import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_chaos.bench.children import fetch
from smg_chaos.bench.gateways.http_engine import Face, Said, Wheel, Words
from smg_chaos.bench.load.answer_forms import dechunked, read_stream, read_whole

PIECES = ("One", " word", ' "after"', "\n", "the other", ".")


@asynccontextmanager
async def engine(step_s: float = 0.0) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    words = Words(Said(model="m", pieces=PIECES, step_s=step_s))
    wheel = Wheel(loop, step_s)
    server = await loop.create_server(lambda: Face(words, wheel), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def body(tokens: int, *, stream: bool = False, usage: bool = True) -> bytes:
    asked: dict[str, object] = {"model": "m", "max_tokens": tokens, "messages": []}
    if stream:
        asked |= {"stream": True, "stream_options": {"include_usage": usage}}
    return json.dumps(asked).encode()


def request(content: bytes, method: bytes = b"POST") -> bytes:
    return b"%b /v1/x HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (method, len(content), content)


async def answer_of(port: int, sent: list[bytes], stops: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in sent:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(10):
            return await reader.readuntil(stops)
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("tokens", [1, 3, len(PIECES)])
@pytest.mark.parametrize("step_s", [0.0, 0.001])
async def test_it_streams_its_script(tokens: int, step_s: float) -> None:
    async with engine(step_s) as port:
        content = await answer_of(port, [request(body(tokens, stream=True))], b"0\r\n\r\n")
    answer = read_stream(dechunked(content.partition(b"\r\n\r\n")[2]))
    assert answer.text == "".join(PIECES[:tokens])
    assert (answer.finish, answer.completion_tokens) == ("length", tokens)


async def test_a_paced_stream_comes_token_by_token() -> None:
    async with engine(0.03) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(body(3, stream=True)))
        async with asyncio.timeout(10):
            first = await reader.readuntil(b'"One"')
            assert b"word" not in first
            rest = await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    assert rest.index(b" word") < rest.index(b"after")


async def test_it_answers_whole_too() -> None:
    async with engine() as port:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(body(4)))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2])
            answer = read_whole(await reader.readexactly(length))
            writer.close()
            await writer.wait_closed()
    assert answer.text == "".join(PIECES[:4])
    assert answer.completion_tokens == 4


async def test_requests_may_come_in_pieces_and_before_the_last_answer_ended() -> None:
    both = request(body(2, stream=True)) + request(body(1, stream=True))
    for step_s in (0.0, 0.002):
        async with engine(step_s) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for at in range(0, len(both), 7):
                writer.write(both[at : at + 7])
                await asyncio.sleep(0)
            async with asyncio.timeout(10):
                answers = [await reader.readuntil(b"\r\n0\r\n\r\n") for _ in range(2)]
            writer.close()
            await writer.wait_closed()
        said = [read_stream(dechunked(one.partition(b"\r\n\r\n")[2])).text for one in answers]
        assert said == ["One word", "One"]


async def test_a_request_for_usage_is_needed_for_usage() -> None:
    async with engine() as port:
        sent = request(body(1, stream=True, usage=False))
        content = await answer_of(port, [sent], b"0\r\n\r\n")
    assert b'"usage"' not in content


async def test_more_tokens_than_there_are_is_all_there_are() -> None:
    async with engine() as port:
        content = await answer_of(port, [request(body(99, stream=True))], b"0\r\n\r\n")
    assert read_stream(dechunked(content.partition(b"\r\n\r\n")[2])).completion_tokens == len(
        PIECES
    )


async def test_bodies_that_are_no_requests_are_refused_and_odd_framing_ends_the_connection() -> (
    None
):
    async with engine() as port:
        assert b" 400 " in await answer_of(port, [request(b"{")], b"\r\n\r\n")
        for sent in (
            b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
            b"A\r\ntransfer-encoding: chunked\r\n\r\n",
        ):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await answer_of(port, [sent], b"\r\n\r\n")


async def test_models_are_listed() -> None:
    async with engine() as port:
        answer = await answer_of(port, [request(b"", b"GET")], b"]}")
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'\r\n\r\n{"object":"list","data":[]}')


async def test_a_client_that_goes_stops_its_stream() -> None:
    async with engine(0.001) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(body(6, stream=True)))
        await reader.readuntil(b"One")
        writer.transport.abort()
        content = await answer_of(port, [request(body(2, stream=True))], b"0\r\n\r\n")
    assert b" word" in content


async def test_fetch_reads_a_whole_answer_and_says_when_nobody_answers() -> None:
    async with engine() as port, asyncio.timeout(10):
        with pytest.raises(TimeoutError):
            await fetch("127.0.0.1", port, "POST", "/v1/x", body(1), timeout_s=0.3)
    with pytest.raises(OSError):  # noqa: PT011  the message is the system's
        await fetch("127.0.0.1", port, "GET", "/")
