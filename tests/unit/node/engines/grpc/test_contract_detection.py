"""An engine of unknown kind is recognised by which HealthCheck it answers."""

import socket
from typing import Any

import grpc
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine import Contract
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc import contract_detection as detect_module
from smg_node.engines.grpc.contract_detection import WIRES, detect, open_engine
from smg_node.engines.grpc.known_transports import open_transport
from smg_node.engines.transport.transport import Transport, TransportOptions
from support.engines.engine_server import EngineServer, RefusalError

GENEROUS_S = 20.0


def test_every_contract_is_asked_for() -> None:
    assert set(WIRES) == set(Contract) - {Contract.OPENAI}
    assert all(wire.contract is contract for contract, wire in WIRES.items())


@pytest.mark.parametrize("contract", list(WIRES))
@pytest.mark.parametrize("answer", [b"", b"\x08\x01"])
async def test_the_one_that_answers_is_it_healthy_or_not(contract: Contract, answer: bytes) -> None:
    async with EngineServer() as server:
        server.unary[f"/{WIRES[contract].service}/HealthCheck"] = lambda _: answer
        engine = await open_engine(server.target, EngineOptions())
        await engine.close()
    assert engine.contract is contract
    assert engine.abilities is WIRES[contract].abilities


async def test_a_foreign_grpc_server_is_named_as_such() -> None:
    async with EngineServer() as server:
        with pytest.raises(SmgError) as raised:
            await open_engine(server.target, EngineOptions())
    error = raised.value
    assert (error.kind, error.code) == (ErrorKind.UPSTREAM_FAILED, "unknown_contract")
    assert server.target in error.message
    assert all(f"{contract.value}: UNIMPLEMENTED" in error.message for contract in WIRES)


async def test_an_engine_that_cannot_be_asked_is_not_guessed() -> None:
    def busy(_: bytes) -> bytes:
        raise RefusalError(grpc.StatusCode.RESOURCE_EXHAUSTED, "come back later")

    async with EngineServer() as server:
        server.unary[f"/{WIRES[Contract.VLLM].service}/HealthCheck"] = busy
        with pytest.raises(SmgError, match="come back later") as raised:
            await open_engine(server.target, EngineOptions())
    assert raised.value.kind is ErrorKind.OVERLOADED


async def test_a_dead_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SmgError, match=target) as raised:
            await open_engine(target, EngineOptions())
    assert raised.value.code == "upstream_unavailable"


async def test_an_http_server_is_no_engine() -> None:
    import asyncio

    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(http, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        options = EngineOptions(connect_s=1.0)
        with pytest.raises(SmgError) as raised:
            await open_engine(f"127.0.0.1:{port}", options)
    assert raised.value.kind in (ErrorKind.UPSTREAM_FAILED, ErrorKind.UPSTREAM_TIMEOUT)


async def test_detection_as_a_whole_has_a_deadline() -> None:
    import asyncio

    async def slow(_: bytes) -> bytes:
        await asyncio.sleep(3600)
        return b""

    async with EngineServer() as server:
        for wire in WIRES.values():
            server.unary[f"/{wire.service}/HealthCheck"] = slow
        transport = open_transport("grpcio", server.target, TransportOptions())
        async with asyncio.timeout(GENEROUS_S):
            with pytest.raises(SmgError) as raised:
                await detect(transport, 0.1)
        await transport.close()
    assert raised.value.kind is ErrorKind.UPSTREAM_TIMEOUT


async def test_nothing_is_asked_of_an_engine_whose_contract_is_given() -> None:
    engine = await open_engine("127.0.0.1:1", EngineOptions(), contract=Contract.SGLANG)
    assert engine.contract is Contract.SGLANG
    await engine.close()


@pytest.mark.parametrize("contract", list(WIRES))
async def test_engines_that_bear_no_frequent_pings_get_few(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[TransportOptions] = []

    def remember(name: str, target: str, options: TransportOptions) -> Transport:
        opened.append(options)
        return open_transport(name, target, options)

    monkeypatch.setattr(detect_module, "open_transport", remember)
    engine: Any = await open_engine("127.0.0.1:1", EngineOptions(), contract=contract)
    await engine.close()
    assert opened[-1].ping_interval_s == (330.0 if contract is Contract.TRTLLM else 30.0)
