"""One engine end to end over a real gRPC server: answers, and what is made of broken ones."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest
from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.transport import stream_timeouts as watch_module
from support.engines.engine_bench import (
    GENEROUS_S,
    Bench,
    bench,
    collected,
    failure,
    ids_of,
    request,
)
from support.engines.engine_server import RefusalError

pytestmark = pytest.mark.usefixtures("each_transport")


@pytest.mark.parametrize("contract", list(WIRES))
async def test_an_answer_of_every_contract(contract: Contract) -> None:
    async with bench(contract) as b:
        b.says(b.chunk(1), b.chunk(2, 3), b.complete("length", *([3] * (contract != Contract.MLX))))
        chunks = await collected(b.engine, request())
        served = b.server.calls[0]
        assert await collected(b.engine, request("smg-2")) == chunks  # the connection is kept

    assert ids_of(chunks) == [1, 2, 3]
    assert chunks[-1].finish == "length"
    assert chunks[0].prompt_tokens == 2
    assert served.headers["traceparent"] == "00-1"
    assert b.pb.GenerateRequest.FromString(served.request).request_id == "smg-1"
    assert b.server.calls_of("Abort") == []
    assert b.events == []


async def test_an_answer_in_one_piece() -> None:
    async with bench() as b:
        b.says(b.complete("stop", 1, 2))
        (chunk,) = await collected(b.engine, request(stream=False))
    assert (chunk.ids, chunk.finish) == ((1, 2), "stop")


async def never_ends(b: Bench) -> AsyncIterator[bytes]:
    yield b.complete("stop", 1, choice=1)
    yield b.complete("stop", 2, choice=0)
    await asyncio.sleep(3600)


async def test_an_iterator_ends_with_the_last_choice_although_the_call_never_does() -> None:
    async with bench() as b:
        b.generates(lambda _: never_ends(b))
        async with asyncio.timeout(GENEROUS_S):
            chunks = await collected(b.engine, request(n=2))
            served = b.server.calls[0]
            await served.ended.wait()
    assert [(one.choice, one.ids) for one in chunks] == [(1, (1,)), (0, (2,))]
    assert served.cancelled
    assert b.server.calls_of("Abort") == []


async def test_a_call_whose_answer_is_complete_may_end_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_module, "END_S", 3600.0)
    async with bench() as b:
        b.generates(lambda _: never_ends(b))
        answer = b.engine.generate(request(n=2))
        chunks = [chunk for _ in range(2) for chunk in await anext(answer)]
        assert [chunk.finish for chunk in chunks] == ["stop", "stop"]
        served = b.server.calls[0]
        async with asyncio.TaskGroup() as group:
            rest = group.create_task(collected_rest(answer))
            await asyncio.sleep(0.1)  # a reset would have come by now
            assert not served.ended.is_set()
            assert not rest.done()
            await b.engine.close()
        async with asyncio.timeout(GENEROUS_S):
            await served.ended.wait()
    assert b.server.calls_of("Abort") == []


async def collected_rest(answer: AsyncIterator[Sequence[Chunk]]) -> list[Sequence[Chunk]]:
    return [chunks async for chunks in answer]


async def test_model_defaults_apply_where_the_client_said_nothing() -> None:
    async with bench() as b:
        model = b.pb.GetModelInfoResponse(default_sampling_params_json='{"temperature":0.5}')
        b.server.unary[b.path("GetModelInfo")] = lambda _: model.SerializeToString()
        await b.engine.card(GENEROUS_S)
        b.says(b.complete("stop", 1))
        await collected(b.engine, request("a"))
        await collected(b.engine, request("b", temperature=0.0))
        # One way to draw, asked for again, and again after the engine has said something else.
        asked = request("c")
        for number, default in enumerate(("0.5", "0.5", "0.25")):
            model = b.pb.GetModelInfoResponse(
                default_sampling_params_json=f'{{"temperature":{default}}}'
            )
            await b.engine.card(GENEROUS_S)
            await collected(b.engine, structs.replace(asked, request_id=f"c{number}"))
        sent = [
            b.pb.GenerateRequest.FromString(one.request) for one in b.server.calls_of("Generate")
        ]
    assert [one.sampling_params.temperature for one in sent] == [0.5, 0.0, 0.5, 0.5, 0.25]
    assert all(one.sampling_params.HasField("temperature") for one in sent)


async def test_a_bias_for_tensorrt_llm_is_as_wide_as_its_card_says() -> None:
    async with bench(Contract.TRTLLM) as b:
        model = b.pb.GetModelInfoResponse(vocab_size=7)
        b.server.unary[b.path("GetModelInfo")] = lambda _: model.SerializeToString()
        b.says(b.complete("stop", 1))
        biased = request("a", logit_bias={3: 1.0})
        assert (await failure(b.engine, biased)).code == "unsupported_parameter"
        await b.engine.card(GENEROUS_S)
        await collected(b.engine, biased)
        sent = b.pb.GenerateRequest.FromString(b.server.calls_of("Generate")[0].request)
    assert list(sent.embedding_bias) == [0, 0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("contract", list(WIRES))
async def test_a_stream_that_ends_ok_without_its_end_is_a_failure(contract: Contract) -> None:
    async with bench(contract) as b:
        b.says(b.chunk(1))
        error = await failure(b.engine, request())
    assert (error.kind, error.code) == (ErrorKind.UPSTREAM_FAILED, "upstream_cut")
    assert b.labels("engine_error") == [{"contract": contract.value, "status": "upstream_cut"}]
    assert b.server.calls_of("Abort") == []  # it is over: nobody needs to stop anything


async def test_what_came_before_a_failure_is_given_out_first() -> None:
    async def breaks(_: bytes) -> AsyncIterator[bytes]:
        yield b.chunk(1)
        raise RefusalError(grpc.StatusCode.INTERNAL, "at /srv/secret.py line 5")

    async with bench() as b:
        b.generates(breaks)
        chunks = b.engine.generate(request())
        seen = await anext(chunks)
        with pytest.raises(SmgError) as raised:
            await anext(chunks)
    assert ids_of(seen) == [1]
    assert raised.value.status == 502
    assert "secret" not in raised.value.message
    assert "secret" in str(raised.value.__cause__)
    assert b.events == [("engine_error", {"contract": "vllm", "status": "INTERNAL"})]  # no abort


async def test_an_engine_that_refuses_the_input_is_quoted() -> None:
    async def refuses(_: bytes) -> AsyncIterator[bytes]:
        raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, "prompt too long")
        yield b""

    async with bench() as b:
        b.generates(refuses)
        error = await failure(b.engine, request())
    assert error.kind is ErrorKind.INVALID_REQUEST
    assert "prompt too long" in error.message


async def test_garbage_in_a_stream_is_a_failure_and_the_engine_is_told_to_stop() -> None:
    async def garbage(_: bytes) -> AsyncIterator[bytes]:
        yield b"\xff\xff\xff"
        await asyncio.sleep(3600)

    async with bench() as b:
        b.generates(garbage)
        error = await failure(b.engine, request())
        abort = await b.server.call_of("Abort")
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert list(b.pb.AbortRequest.FromString(abort.request).request_ids) == ["smg-1"]


async def test_an_unknown_end_is_counted_always_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with bench() as b:
        b.says(b.complete("melted"))
        with caplog.at_level(logging.WARNING):
            for number in range(3):
                error = await failure(b.engine, request(f"smg-{number}"))
                assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert b.labels("engine_unknown_finish") == [{"contract": "vllm", "reason": "melted"}] * 3
    assert [record.getMessage().count("melted") for record in caplog.records] == [1]


async def test_unknown_ends_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with bench() as b:
        with caplog.at_level(logging.WARNING):
            for number in range(70):
                b.says(b.complete(f"odd-{number}"))
                await failure(b.engine, request(f"smg-{number}"))
    # Of this logger only: whatever else goes wrong in the process meanwhile is not this engine's to bound.
    said = [r for r in caplog.records if r.name == "smg_node.engines"]
    assert len(said) == 64
