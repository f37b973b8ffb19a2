"""A client that speaks HTTP/1.1 by hand, so that tests can be as rude as the network is."""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

TLS: ssl.SSLContext | None = None
"""Context of the connections; None: they are plain. A test that runs over both replaces it."""
WAIT_S = 20.0
"""Long enough for a busy machine; nothing here measures time by it."""


async def until(condition: Callable[[], object]) -> None:
    """Wait for something to become true; an AssertionError if it does not."""
    for _ in range(round(WAIT_S / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to pass")


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: bytes
    interim: list[int] = field(default_factory=list)

    def json(self) -> Any:
        return json.loads(self.body)

    def error(self) -> Any:
        return self.json()["error"]


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        version: str = "1.1",
    ) -> None:
        lines = {"host": "127.0.0.1", **(headers or {})}
        if body or method in ("POST", "PATCH"):
            lines.setdefault("content-length", str(len(body)))
        head = f"{method} {path} HTTP/{version}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value != "-")
        self.writer.write(head.encode("latin-1") + b"\r\n" + body)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(WAIT_S):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = text.rstrip("\r\n").split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        return int(status.split(" ")[1]), {name.lower(): value for name, value in pairs}

    async def chunk(self) -> bytes:
        """Return the next chunk of a chunked body, b"" at its clean end."""
        async with asyncio.timeout(WAIT_S):
            size = int(await self.reader.readline(), 16)
            data = await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        return data

    async def response(self, *, bodiless: bool = False) -> Response:
        interim: list[int] = []
        status, headers = await self.head()
        while status < 200:
            interim.append(status)
            status, headers = await self.head()
        async with asyncio.timeout(WAIT_S):
            if bodiless or status in (204, 304):
                body = b""
            elif headers.get("transfer-encoding") == "chunked":
                parts = []
                while part := await self.chunk():
                    parts.append(part)
                body = b"".join(parts)
            elif "content-length" in headers:
                body = await self.reader.readexactly(int(headers["content-length"]))
            else:
                body = await self.reader.read()
        return Response(status, headers, body, interim)

    async def at_end(self) -> bool:
        """Whether the server has closed the connection, cleanly or not, and said nothing more."""
        try:
            async with asyncio.timeout(WAIT_S):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def vanish(self) -> None:
        """Go away without a word: a reset, as from a machine that lost its process."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()


@contextlib.asynccontextmanager
async def connect(port: int, receive_buffer: int | None = None) -> AsyncIterator[RawClient]:
    raw = socket.socket()
    if receive_buffer is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(raw, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(
            sock=raw,
            limit=2**16,
            ssl=TLS,
            server_hostname=None if TLS is None else "localhost",
        )
    except BaseException:
        raw.close()
        raise
    client = RawClient(reader, writer)
    try:
        yield client
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError, TimeoutError, ssl.SSLError):
            async with asyncio.timeout(WAIT_S):
                await writer.wait_closed()


async def ask(
    port: int,
    method: str,
    path: str,
    body: bytes | dict[str, Any] = b"",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Ask once on a connection of its own."""
    packed = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with connect(port) as client:
        await client.send(method, path, packed, headers)
        return await client.response(bodiless=method == "HEAD")
