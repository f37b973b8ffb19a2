"""What an HTTP worker behind TLS has to show, over real connections."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.engines.engine_options import EngineOptions, unobserved
from smg_node.engines.http import aiohttp_client
from smg_node.engines.http.aiohttp_client import AiohttpTransport, trusting
from smg_node.engines.http.transport import HttpCall
from smg_node.engines.transport.tls_trust import Trust
from smg_node.engines.transport.transport import StatusCode, TransportError
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.engine_connect import engine_opener
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


async def test_a_worker_over_https_is_called_with_the_files_for_engines_and_by_another_name(
    tmp_path: Path,
) -> None:
    authority = Authority("mine")
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    options = EngineOptions(trust=Trust(more=(str(tmp_path / "ca.pem"),)))
    opened = engine_opener(options, Networks(()), unobserved)
    async with secured(authority, tmp_path, "worker.internal") as base:
        for asked, well in ((f"{base}?tls_name=worker.internal", True), (base, False)):
            engine = await opened(parse_worker_url(asked), None)
            try:
                if well:
                    await engine.serving(5)
                else:
                    with pytest.raises(SmgError, match="not trusted"):
                        await engine.serving(5)
            finally:
                await engine.close()


async def test_certificates_that_change_count_for_connections_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiohttp_client, "_TRUSTED_S", 0.0)
    old, new = Authority("old"), Authority("new")
    known = tmp_path / "ca.pem"
    known.write_bytes(old.certificate)
    trust = Trust(known)
    async with secured(new, tmp_path, "localhost") as base:
        transport = AiohttpTransport(base, connect_s=5, trust=trust.http_context, renewed=True)
        assert "not trusted" in str(await refused(transport))
        known.write_bytes(new.certificate)
        assert await hear(transport) == b"hi"
        known.unlink()
        assert await hear(transport) == b"hi", "the old ones are kept"
        await transport.close()


async def test_files_that_cannot_be_read_are_a_failure_of_the_call(tmp_path: Path) -> None:
    trust = Trust(tmp_path / "none.pem")
    transport = AiohttpTransport(
        "https://127.0.0.1:1", connect_s=5, trust=trust.http_context, renewed=True
    )
    assert "certificates cannot be used" in str(await refused(transport))
    await transport.close()
