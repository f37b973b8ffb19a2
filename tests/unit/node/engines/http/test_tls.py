"""What an HTTP worker behind TLS has to show, over real connections."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.engines.http.aiohttp_client import AiohttpTransport, trusting
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.http.certificate_authority import Authority

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
CALL = HttpCall("GET", "/")


@asynccontextmanager
async def secured(authority: Authority, folder: Path, *names: str) -> AsyncIterator[str]:
    """A server that proves to be one of `names`, and says hi once per connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    certificate, key = authority.issue(*names)
    (folder / "server.pem").write_bytes(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}"


def trust_in(authority: Authority, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this machine trust that authority and no other."""
    (folder / "trusted.pem").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "trusted.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder / "none"))


async def hear(transport: AiohttpTransport) -> bytes:
    answer = await transport.send(CALL)
    try:
        return await answer.read()
    finally:
        answer.close()


async def test_a_worker_whose_certificate_this_machine_trusts_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority("mine")
    trust_in(authority, tmp_path, monkeypatch)
    async with secured(authority, tmp_path, "localhost") as base:
        transport = AiohttpTransport(base, connect_s=5)
        assert await hear(transport) == b"hi"
        assert await hear(transport) == b"hi"
        await transport.close()


@pytest.mark.parametrize(("trusted", "name"), [("another", "localhost"), ("mine", "elsewhere")])
async def test_nobody_else_is(
    trusted: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorities = {"mine": Authority("mine"), "another": Authority("another")}
    trust_in(authorities[trusted], tmp_path, monkeypatch)
    async with secured(authorities["mine"], tmp_path, name) as base:
        transport = AiohttpTransport(base, connect_s=5)
        with pytest.raises(TransportError) as caught:
            await hear(transport)
        assert caught.value.status is StatusCode.UNAVAILABLE
        words = "failed to connect: its certificate is not trusted: "
        assert caught.value.message.startswith(words)
        await transport.close()


async def test_a_worker_that_speaks_no_tls_is_told_apart() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        base = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = AiohttpTransport(base, connect_s=5)
        with pytest.raises(TransportError) as caught:
            await hear(transport)
        assert caught.value.message.startswith("failed to connect: TLS cannot be spoken with it: ")
        await transport.close()


async def test_certificates_are_read_with_the_first_call_and_not_in_the_loops_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, readers = Authority("mine"), list[threading.Thread]()
    trust_in(authority, tmp_path, monkeypatch)

    def trust() -> ssl.SSLContext:
        readers.append(threading.current_thread())
        return trusting()

    plain = AiohttpTransport("http://127.0.0.1:1", connect_s=5, trust=trust)
    with pytest.raises(TransportError):
        await hear(plain)
    await plain.close()
    assert readers == []
    async with secured(authority, tmp_path, "localhost") as base:
        transport = AiohttpTransport(base, connect_s=5, trust=trust)
        assert await hear(transport) == b"hi"
        assert await hear(transport) == b"hi"
        await transport.close()
    assert len(readers) == 1
    assert readers[0] is not threading.main_thread()


async def test_what_is_closed_while_certificates_are_read_calls_nobody() -> None:
    begun, closed = threading.Event(), threading.Event()

    def trust() -> ssl.SSLContext:
        begun.set()
        assert closed.wait(30)
        return trusting()

    transport = AiohttpTransport("https://127.0.0.1:1", connect_s=5, trust=trust)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(refused(transport))
        assert await asyncio.to_thread(begun.wait, 30)
        await transport.close()
        closed.set()
    assert "closed" in str(call.result())


async def refused(transport: AiohttpTransport) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await transport.send(CALL)
    return caught.value
