"""Servers that are none: whatever bytes come over HTTP, a call ends with one row of the table, and says no secret."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from smg_node.mcp.definition import ServerDefinition, bearer, checked
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import Target
from support.mcp.faulty_server import pooled

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
RESULT = b'{"jsonrpc":"2.0","id":"other","result":{}}'
TOKEN = "secret-token-1"


def sized(head: bytes, body: bytes) -> bytes:
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """Yield the URL of a server that says these bytes to everybody and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28", "auto"])
@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (b"", {FailureKind.LOST}),
        (b"\xff\x00garbage\r\n\r\n", {FailureKind.LOST}),
        (b"HTTP/1.1 200 OK\r\n", {FailureKind.LOST}),
        (HEAD + b"content-length: 900\r\n\r\n{", {FailureKind.LOST}),
        (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", {FailureKind.LOST}),
        (HEAD + b"x: " + b"y" * 40_000 + b"\r\n\r\n", {FailureKind.LOST}),
        (sized(HEAD, b""), {FailureKind.PROTOCOL}),
        (sized(HEAD, b"null"), {FailureKind.PROTOCOL}),
        (sized(HEAD, RESULT), {FailureKind.PROTOCOL}),
        (sized(HEAD, b"[" * 100_000), {FailureKind.PROTOCOL}),
        (
            sized(HEAD + b"content-encoding: gzip\r\n", gzip.compress(b"x" * 5_000_000)),
            {FailureKind.PROTOCOL},
        ),
        (sized(HEAD, b" " * 100_001), {FailureKind.PROTOCOL}),
        (sized(SSE, b""), {FailureKind.LOST}),
        (sized(SSE, b"data: [}\n\n"), {FailureKind.PROTOCOL}),
        (sized(SSE, b"data: " + RESULT + b"\n\n"), {FailureKind.LOST}),
        (sized(SSE, b"data: " + b"x" * 120_000 + b"\n\n"), {FailureKind.PROTOCOL}),
        (b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n", {FailureKind.HTTP}),
        (b"HTTP/1.1 101 Switching\r\nupgrade: h2\r\n\r\n", {FailureKind.LOST, FailureKind.HTTP}),
    ],
    ids=range(18),
)
async def test_any_answer_is_a_row_of_the_table(
    answer: bytes, kinds: set[FailureKind], protocol: str
) -> None:
    limits = McpLimits(answer_bytes_max=100_000, list_s=5.0)
    async with answering(answer) as url, pooled(limits) as pool:
        definition = checked(ServerDefinition("s", url=url, protocol=protocol))
        failed = await pool.call(Target(definition), "echo", "{}")
        assert isinstance(failed, Failure)
        assert failed.kind in kinds, failed


async def test_a_token_that_a_server_gives_back_is_not_told() -> None:
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"bad Bearer %s!"}}'
    answer = sized(HEAD, error % TOKEN.encode())
    async with answering(answer) as url, pooled() as pool:
        definition = checked(ServerDefinition("s", url=url, protocol="2026-07-28"))
        failed = await pool.call(Target(definition, bearer(TOKEN)), "echo", "{}")
        assert isinstance(failed, Failure)
        assert failed.message == "bad …!"


async def test_a_server_that_says_nothing_takes_no_longer_than_the_call_may() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, pooled() as pool:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        target = Target(checked(ServerDefinition("s", url=url)))
        began_s = time.monotonic()
        failed = await pool.call(target, "echo", "{}", total_s=0.3)
        assert isinstance(failed, Failure)
        assert (failed.kind, failed.sent) == (FailureKind.TIMEOUT, False)
        assert time.monotonic() - began_s < 8, "an opening may take 10 s and more"
