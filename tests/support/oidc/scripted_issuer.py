"""Scripted issuer: answers each path as a test says, in plain HTTP or with TLS, and keeps what it was asked."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

JSON = "application/json"


@dataclass
class Scripted:
    """One answer. `stalls`: its body never comes."""

    body: bytes = b"{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": JSON})
    stalls: bool = False


@dataclass
class ScriptedIssuer:
    """A server on this machine; `base` is its URL."""

    base: str = ""
    answers: dict[str, Scripted] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    """Method, path, headers by small names, body."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of one connection."""
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            pairs = (line.partition(": ") for line in lines[1:] if line)
            headers = {name.lower(): value for name, _, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.asked.append((method, path, headers, body))
            answer = self.answers.get(path, Scripted(b"", 404))
            named = {"content-length": str(len(answer.body)), **answer.headers}
            head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
            writer.write(f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode())
            if answer.stalls:
                await writer.drain()
                await reader.read()
            writer.write(answer.body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted_issuer(context: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedIssuer]:
    """Run one."""
    issuer = ScriptedIssuer()
    server = await asyncio.start_server(issuer.serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    issuer.base = f"http://127.0.0.1:{port}" if context is None else f"https://localhost:{port}"
    try:
        yield issuer
    finally:
        server.close()
