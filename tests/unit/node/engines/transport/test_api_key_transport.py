"""An engine's API key is on every call to it, and in nothing that anybody is shown."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.engine import Contract, Engine, EngineRequest
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import WIRES, open_engine
from smg_node.engines.grpc.known_transports import open_transport
from smg_node.engines.transport.api_key_transport import authorized, fits_header, without
from smg_node.engines.transport.transport import (
    StatusCode,
    TransportError,
    TransportOptions,
    metadata_of,
)
from support.engines.engine_server import EngineServer, RefusalError

SECRET = "sk-very-secret"
HEALTH = "/grpc.health.v1.Health/Check"
SERVICE = WIRES[Contract.MLX].service
GENEROUS_S = 20.0


async def silent(_: bytes) -> AsyncIterator[bytes]:
    yield b""
    raise RefusalError(grpc.StatusCode.UNAUTHENTICATED, f"no good: Bearer {SECRET}")


def tells_headers(_: bytes) -> bytes:
    raise RefusalError(
        grpc.StatusCode.UNAUTHENTICATED, f"got Bearer {SECRET}", [("x-echo", f"[{SECRET}]")]
    )


def request() -> EngineRequest:
    return EngineRequest(
        request_id="eng-1",
        ids=token_ids([1]),
        sampling=Sampling(max_tokens=1),
        stream=True,
        timeout_s=GENEROUS_S,
        headers={"traceparent": "00-1", "authorization": "Bearer of-the-client"},
    )


async def test_every_call_carries_the_key_also_those_that_find_out_the_contract() -> None:
    async with EngineServer() as server:
        server.unary[f"/{SERVICE}/HealthCheck"] = lambda _: b""
        server.unary[f"/{SERVICE}/Abort"] = lambda _: b""
        server.unary[HEALTH] = lambda _: b"\x08\x01"
        server.streams[f"/{SERVICE}/Generate"] = silent
        engine = await open_engine(server.target, EngineOptions(), api_key=SECRET)
        assert await engine.serving(GENEROUS_S)
        with pytest.raises(SmgError):
            await read(engine, within_s=GENEROUS_S)
        # An answer that nobody waits for any more is aborted, and that is a call as well.
        server.streams[f"/{SERVICE}/Generate"] = endless
        with pytest.raises(TimeoutError):
            await read(engine, within_s=0.3)
        await server.call_of("Abort")
        await engine.close()
    asked = {call.method.rpartition("/")[2] for call in server.calls}
    assert asked == {"HealthCheck", "Check", "Generate", "Abort"}
    assert {call.headers["authorization"] for call in server.calls} == {f"Bearer {SECRET}"}


async def read(engine: Engine, *, within_s: float) -> None:
    async with asyncio.timeout(within_s):
        async for _ in engine.generate(request()):
            pass


async def endless(_: bytes) -> AsyncIterator[bytes]:
    await asyncio.sleep(3600)
    yield b""


async def test_an_engine_without_a_key_gets_none() -> None:
    async with EngineServer() as server:
        server.unary[HEALTH] = lambda _: b"\x08\x01"
        engine = await open_engine(server.target, EngineOptions(), contract=Contract.MLX)
        assert await engine.serving(GENEROUS_S)
        await engine.close()
    assert "authorization" not in server.calls[0].headers


async def test_what_an_engine_repeats_of_its_headers_is_taken_out_of_errors() -> None:
    async with EngineServer() as server:
        server.unary["/t.T/Ask"] = tells_headers
        server.streams["/t.T/Tell"] = silent
        transport = authorized(open_transport("grpcio", server.target, TransportOptions()), SECRET)
        with pytest.raises(TransportError) as caught:
            await transport.unary("/t.T/Ask", b"", timeout_s=GENEROUS_S)
        assert caught.value.status is StatusCode.UNAUTHENTICATED
        assert caught.value.message == "got Bearer [the API key]"
        assert caught.value.trailers["x-echo"] == "[[the API key]]"
        with pytest.raises(TransportError) as caught:
            async for _ in transport.stream("/t.T/Tell", b"", timeout_s=GENEROUS_S):
                pass
        assert SECRET not in str(caught.value)
        engine = await open_engine(
            server.target, EngineOptions(), contract=Contract.MLX, api_key=SECRET
        )
        server.unary[HEALTH] = tells_headers
        with pytest.raises(SmgError) as refused:
            await engine.serving(GENEROUS_S)
        error: BaseException | None = refused.value
        while error is not None:
            assert SECRET not in f"{error!r} {error}"
            error = error.__cause__
        assert refused.value.__cause__ is not None
        await engine.close()
        await transport.close()


async def test_a_notice_carries_the_key_too() -> None:
    async with EngineServer() as server:
        server.unary["/t.T/Note"] = lambda _: b""
        transport = authorized(open_transport("grpcio", server.target, TransportOptions()), SECRET)
        assert transport.notify("/t.T/Note", b"", timeout_s=GENEROUS_S, headers={"x-a": "b"})
        call = await server.call_of("Note")
        assert (call.headers["authorization"], call.headers["x-a"]) == (f"Bearer {SECRET}", "b")
        await transport.close()


@given(st.text(max_size=60))
def test_what_fits_a_header_is_what_travels(key: str) -> None:
    travels = dict(metadata_of({"authorization": f"Bearer {key}"}))
    if fits_header(key):
        assert travels == {"authorization": f"Bearer {key}"}
    assert fits_header("sk-1")
    assert not fits_header("")
    assert not fits_header("x" * 4097)


@given(st.text(min_size=1, max_size=5), st.text(max_size=40))
def test_a_secret_is_taken_out_wherever_it_stands(secret: str, text: str) -> None:
    error = TransportError(StatusCode.INTERNAL, f"{text}{secret}{text}", {"k": secret})
    hidden = without(error, secret)
    if secret not in "[the API key]":
        assert secret not in hidden.trailers["k"]
    assert hidden.status is StatusCode.INTERNAL
