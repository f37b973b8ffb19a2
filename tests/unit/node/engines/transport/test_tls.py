"""Engines behind TLS: who is called, and who is not, over every transport."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.engines.engine_options import EngineOptions, unobserved
from smg_node.engines.grpc.known_transports import transports
from smg_node.engines.transport.message_pieces import MessagePieces
from smg_node.engines.transport.tls_trust import Trust
from smg_node.engines.transport.transport import StatusCode, TransportError, TransportOptions
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.engine_connect import engine_opener
from support.engines.engine_server import EngineServer
from support.engines.transports import transport_to
from support.http.certificate_authority import Authority
from support.http.tls_proxy import tls_front, written

ECHO = "/t.T/Echo"
GENEROUS_S = 20.0


@pytest.fixture(params=list(transports()))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def secured(
    authority: Authority, folder: Path, name: str = "localhost", *, clients: bool = False
) -> AsyncIterator[tuple[EngineServer, str]]:
    """An engine behind TLS, and its address."""
    async with EngineServer() as server:
        server.unary[ECHO] = lambda request: request
        port = int(server.target.rpartition(":")[2])
        async with tls_front(
            port, authority, folder, name, clients=clients, speaks=("h2",)
        ) as front:
            yield server, f"localhost:{front.port}"


def trusting(authority: Authority, folder: Path) -> Trust:
    return Trust(Path(written(folder, "authority.pem", authority.certificate)))


async def echoed(kind: str, target: str, trust: Trust | None) -> bytes:
    options = TransportOptions(connect_s=5, trust=trust)
    async with transport_to(kind, target, options) as transport:
        return await transport.unary(ECHO, b"x" * 100_000, timeout_s=GENEROUS_S)


async def test_an_engine_whose_authority_is_trusted_is_called(kind: str, tmp_path: Path) -> None:
    authority = Authority("mine")
    async with secured(authority, tmp_path) as (_, target):
        assert await echoed(kind, target, trusting(authority, tmp_path)) == b"x" * 100_000


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_large_request_in_pieces_arrives_whole_on_either_loop(
    kind: str, tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    pieces = MessagePieces([b"head", bytes(range(256)) * 8192, bytearray(b"x" * 1_000_000), b"end"])

    async def call() -> None:
        authority = Authority("mine")
        async with secured(authority, tmp_path) as (server, target):
            for to, trust in ((target, trusting(authority, tmp_path)), (server.target, None)):
                options = TransportOptions(connect_s=5, trust=trust)
                async with transport_to(kind, to, options) as transport:
                    got = await transport.unary(ECHO, pieces, timeout_s=GENEROUS_S)
                    assert got == pieces.joined()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(call())


@pytest.mark.parametrize(("trusted", "name"), [("other", "localhost"), ("mine", "elsewhere")])
async def test_nobody_else_is(kind: str, trusted: str, name: str, tmp_path: Path) -> None:
    authorities = {"mine": Authority("mine"), "other": Authority("other")}
    async with secured(authorities["mine"], tmp_path, name) as (server, target):
        with pytest.raises(TransportError) as raised:
            await echoed(kind, target, trusting(authorities[trusted], tmp_path))
        assert raised.value.status is StatusCode.UNAVAILABLE
        assert not server.calls


async def test_plain_calls_to_a_secure_port_and_the_other_way_round_fail(
    kind: str, tmp_path: Path
) -> None:
    authority = Authority("mine")
    async with secured(authority, tmp_path) as (server, target):
        for to, trust in ((target, None), (server.target, trusting(authority, tmp_path))):
            with pytest.raises(TransportError) as raised:
                await echoed(kind, to, trust)
            assert raised.value.status is StatusCode.UNAVAILABLE


async def test_an_engine_that_asks_who_calls_is_shown_a_certificate(
    kind: str, tmp_path: Path
) -> None:
    authority = Authority("mine")
    certificate, key = authority.issue("node")
    shown = Trust(
        Path(written(tmp_path, "authority.pem", authority.certificate)),
        Path(written(tmp_path, "ours.pem", certificate)),
        Path(written(tmp_path, "ours.key", key)),
    )
    async with secured(authority, tmp_path, clients=True) as (_, target):
        assert await echoed(kind, target, shown) == b"x" * 100_000
        with pytest.raises(TransportError):
            await echoed(kind, target, trusting(authority, tmp_path))


async def test_this_machines_authorities_are_trusted_unless_others_are_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority("mine")
    monkeypatch.setenv("SSL_CERT_FILE", written(tmp_path, "machine.pem", authority.certificate))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    async with secured(authority, tmp_path) as (_, target):
        assert await echoed(kind, target, Trust()) == b"x" * 100_000


async def test_a_url_says_that_an_engine_is_secure(kind: str, tmp_path: Path) -> None:
    authority = Authority("mine")
    async with secured(authority, tmp_path) as (server, target):
        server.unary["/vllm.grpc.engine.VllmEngine/HealthCheck"] = lambda _: b""
        options = EngineOptions(transport=kind, trust=trusting(authority, tmp_path))
        opened = engine_opener(options, Networks(()), unobserved)
        engine = await opened(parse_worker_url(f"grpcs://{target}"), None)
        assert engine.contract.value == "vllm"
        await engine.close()
        wrong = EngineOptions(transport=kind, trust=Trust(tmp_path / "missing.pem"))
        with pytest.raises(SmgError, match=r"engine\.tls cannot be used"):
            await engine_opener(wrong, Networks(()), unobserved)(
                parse_worker_url(f"grpcs://{target}"), None
            )


async def test_a_secure_server_that_does_not_say_http_2_is_not_called(tmp_path: Path) -> None:
    authority = Authority("mine")
    async with tls_front(1, authority, tmp_path, "localhost") as front:
        with pytest.raises(TransportError, match="does not speak HTTP/2"):
            await echoed("h2", f"localhost:{front.port}", trusting(authority, tmp_path))


async def test_files_that_change_count_for_new_connections(kind: str, tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    trust = trusting(old, tmp_path)
    async with secured(old, tmp_path) as (_, target):
        assert await echoed(kind, target, trust) == b"x" * 100_000
    async with secured(new, tmp_path) as (_, target):
        with pytest.raises(TransportError):
            await echoed(kind, target, trust)
        trusting(new, tmp_path)
        assert await echoed(kind, target, trust) == b"x" * 100_000


async def test_a_worker_may_be_asked_for_another_name_than_its_host(
    kind: str, tmp_path: Path
) -> None:
    authority = Authority("mine")
    trust = trusting(authority, tmp_path)
    async with secured(authority, tmp_path, "engine.internal") as (server, target):
        for name, well in (("engine.internal", True), ("other.internal", False), ("", False)):
            options = TransportOptions(connect_s=5, trust=trust, tls_name=name)
            async with transport_to(kind, target, options) as transport:
                call = transport.unary(ECHO, b"x", timeout_s=GENEROUS_S)
                if well:
                    assert await call == b"x"
                    continue
                with pytest.raises(TransportError) as raised:
                    await call
                assert raised.value.status is StatusCode.UNAVAILABLE
        server.unary["/vllm.grpc.engine.VllmEngine/HealthCheck"] = lambda _: b""
        opened = engine_opener(EngineOptions(transport=kind, trust=trust), Networks(()), unobserved)
        url = parse_worker_url(f"grpcs://{target}?tls_name=engine.internal&contract=vllm")
        engine = await opened(url, None)
        await engine.close()
