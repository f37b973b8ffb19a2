"""One engine over a real gRPC server: health, card, loads and tokenizer."""

import asyncio
import hashlib
import io
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import grpc
import pytest
from smg_grpc_proto.generated import common_pb2

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.engine import Contract
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import WIRES, open_engine
from support.engines.engine_bench import (
    GENEROUS_S,
    Bench,
    bench,
)
from support.engines.engine_server import RefusalError, StreamScript

HEALTH = "/grpc.health.v1.Health/Check"


@pytest.mark.parametrize(
    ("answer", "serving"),
    [(b"\x08\x01", True), (b"\x08\x02", False), (b"", False), (b"\x08\x03", False)],
)
async def test_serving_is_what_the_standard_health_service_says(
    answer: bytes, serving: bool
) -> None:
    async with bench(Contract.MLX) as b:
        b.server.unary[HEALTH] = lambda _: answer
        assert await b.engine.serving(GENEROUS_S) is serving
        asked = b.server.calls[0].request
    assert asked.endswith(b"mlx.grpc.engine.MlxEngine")


async def test_a_service_the_health_service_does_not_know_is_not_serving() -> None:
    def unknown(_: bytes) -> bytes:
        raise RefusalError(grpc.StatusCode.NOT_FOUND)

    async with bench() as b:
        b.server.unary[HEALTH] = unknown
        assert not await b.engine.serving(GENEROUS_S)


async def test_an_engine_without_the_standard_service_is_asked_in_its_own_words() -> None:
    async with bench(Contract.TRTLLM) as b:
        b.server.unary[b.path("HealthCheck")] = lambda _: b.pb.HealthCheckResponse(
            status="OK"
        ).SerializeToString()
        assert await b.engine.serving(GENEROUS_S)


async def test_a_dead_engine_is_an_error_and_not_merely_unhealthy() -> None:
    async with bench() as b:
        target = b.engine.target
    engine = await open_engine(target, EngineOptions(), contract=Contract.VLLM)
    for ask in (engine.serving, engine.healthy, engine.card, engine.tokenizer, engine.loads):
        with pytest.raises(SmgError) as raised:
            await ask(GENEROUS_S)
        assert raised.value.code == "upstream_unavailable"
    await engine.close()


async def test_a_card_without_server_information_is_a_card() -> None:
    async with bench(Contract.MLX) as b:
        model = b.pb.GetModelInfoResponse(model_path="/m", vocab_size=5)
        b.server.unary[b.path("GetModelInfo")] = lambda _: model.SerializeToString()
        card = await b.engine.card(GENEROUS_S)
    assert (card.model, card.vocabulary) == ("/m", 5)


async def test_an_engine_can_do_what_its_server_last_model_item() -> None:
    async with bench(Contract.VLLM) as b:
        b.server.unary[b.path("GetModelInfo")] = lambda _: b""
        seen = []
        for server_type in ("", "vllm-grpc", ""):  # the other servicer may come up at the same port
            said = b.pb.GetServerInfoResponse(server_type=server_type).SerializeToString()
            b.server.unary[b.path("GetServerInfo")] = partial(lambda said, _: said, said)
            await b.engine.card(GENEROUS_S)
            seen.append(b.engine.abilities.prompt_logprobs)
    assert seen == [True, False, True]


async def test_loads_are_asked_for_and_read() -> None:
    async with bench(Contract.SGLANG) as b:
        rows = b.pb.GetLoadsResponse(loads=[b.pb.SchedulerLoad(num_running_reqs=2)])
        b.server.unary[b.path("GetLoads")] = lambda _: rows.SerializeToString()
        (load,) = await b.engine.loads(GENEROUS_S)
        assert list(b.pb.GetLoadsRequest.FromString(b.server.calls[0].request).include) == ["core"]
    assert load.running == 2


async def test_a_contract_without_loads_is_not_even_asked() -> None:
    async with bench(Contract.MLX) as b:
        with pytest.raises(SmgError) as raised:
            await b.engine.loads(GENEROUS_S)
        assert b.server.calls == []
    assert raised.value.status == 501


def archive(content: bytes = b"{}") -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as packed:
        # A ZipInfo of a fixed date: a name alone would carry the time of writing into the digest.
        packed.writestr(zipfile.ZipInfo("tokenizer.json"), content)
    return target.getvalue()


def tokenizer_script(data: bytes, *, sha256: str | None = None, pieces: int = 4) -> StreamScript:
    async def script(_: bytes) -> AsyncIterator[bytes]:
        size = max(1, -(-len(data) // pieces))
        for at in range(0, len(data), size):
            last = at + size >= len(data)
            said = hashlib.sha256(data).hexdigest() if sha256 is None else sha256
            piece = common_pb2.GetTokenizerChunk(
                data=data[at : at + size], sha256=said if last else ""
            )
            message: bytes = piece.SerializeToString()
            yield message

    return script


@pytest.mark.parametrize("contract", list(WIRES))
async def test_a_tokenizer_comes_in_pieces(contract: Contract) -> None:
    async with bench(contract) as b:
        b.server.streams[b.path("GetTokenizer")] = tokenizer_script(archive())
        bundle = await b.engine.tokenizer(GENEROUS_S)
        assert bundle.origin == f"{contract.value} at {b.engine.target}"
    assert dict(bundle.files) == {"tokenizer.json": b"{}"}
    assert bundle.digest == hashlib.sha256(archive()).hexdigest()


async def tokenizer_failure(b: Bench) -> SmgError:
    with pytest.raises(SmgError) as raised:
        await b.engine.tokenizer(GENEROUS_S)
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED
    return raised.value


async def test_a_tokenizer_that_is_empty_wrong_or_unknown_is_a_clear_error() -> None:
    async with bench() as b:
        assert "GetTokenizer" in (await tokenizer_failure(b)).message
        b.server.streams[b.path("GetTokenizer")] = tokenizer_script(b"")
        assert "empty" in (await tokenizer_failure(b)).message
        b.server.streams[b.path("GetTokenizer")] = tokenizer_script(archive(), sha256="0" * 64)
        assert "checksum" in (await tokenizer_failure(b)).message


async def test_a_tokenizer_that_never_ends_is_stopped_at_its_bound() -> None:
    async def forever(_: bytes) -> AsyncIterator[bytes]:
        piece: bytes = common_pb2.GetTokenizerChunk(data=bytes(1000)).SerializeToString()
        while True:
            yield piece

    async with bench(options=replace(EngineOptions(), bundle_max_bytes=50_000)) as b:
        b.server.streams[b.path("GetTokenizer")] = forever
        async with asyncio.timeout(GENEROUS_S):
            error = await tokenizer_failure(b)
            await b.server.calls[0].ended.wait()
    assert "50000" in error.message
    assert b.server.calls[0].cancelled


async def test_a_tokenizer_that_stops_in_the_middle_is_a_failure() -> None:
    async def breaks(_: bytes) -> AsyncIterator[bytes]:
        piece: bytes = common_pb2.GetTokenizerChunk(data=b"PK").SerializeToString()
        yield piece
        raise RefusalError(grpc.StatusCode.INTERNAL, "disk")

    async with bench() as b:
        b.server.streams[b.path("GetTokenizer")] = breaks
        await tokenizer_failure(b)
