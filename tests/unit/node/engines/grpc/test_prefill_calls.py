"""The first engine of a pair over a real gRPC server: every shape of its stream, every way to leave it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import grpc
import pytest
from msgspec import structs

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import IdLogprob
from smg_node.engines.disaggregation import Room
from smg_node.engines.engine import Contract, Prefilled
from smg_node.engines.engine_options import EngineOptions
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.transport.grpc_status import Verdict, verdict
from support.engines.engine_bench import GENEROUS_S, Bench, bench, fast_forever, request
from support.engines.engine_server import RefusalError

PARAMS = '{"do_remote_prefill":true,"remote_block_ids":[1,2]}'
ASKED = request(max_tokens=1)
SILENT = replace(EngineOptions(), stall_s=0.05)


def last(b: Bench, reason: str = "length", *, transfer: str | None = None, **counts: int) -> bytes:
    end = b.pb.GenerateComplete(finish_reason=reason, output_ids=[7], **counts)
    if transfer is not None:
        end.kv_transfer_params_json = transfer
    data: bytes = b.pb.GenerateResponse(complete=end).SerializeToString()
    return data


async def refusal(b: Bench, asked: Any = ASKED) -> SmgError:
    async with asyncio.timeout(GENEROUS_S):
        with pytest.raises(SmgError) as raised:
            await b.engine.prefill(asked)
    return raised.value


async def test_vllm_returns_what_its_partner_is_to_be_told() -> None:
    async with bench() as b:
        b.says(b.chunk(7), last(b, transfer=PARAMS, prompt_tokens=2, cached_tokens=1))
        said = await b.engine.prefill(
            structs.replace(ASKED, transfer='{"do_remote_decode":true}', rank=0)
        )
        sent = b.pb.GenerateRequest.FromString(b.server.calls_of("Generate")[0].request)
    assert said == Prefilled(2, 1, (), PARAMS)
    assert sent.kv_transfer_params_json == '{"do_remote_decode":true}'
    assert sent.stream
    assert sent.HasField("data_parallel_rank")
    assert b.server.calls_of("Abort") == []


async def test_vllms_rust_servicer_repeats_everything_and_says_as_much() -> None:
    async with bench() as b:
        b.says(b.chunk(7), last(b, transfer=PARAMS, prompt_tokens=2), last(b, transfer="{}"))
        assert (await b.engine.prefill(ASKED)).transfer == PARAMS


@pytest.mark.parametrize("contract", [Contract.SGLANG, Contract.TOKENSPEED])
async def test_engines_with_rooms_return_counts_only(contract: Contract) -> None:
    async with bench(contract) as b:
        b.says(b.chunk(7), last(b, prompt_tokens=4, cached_tokens=3))
        said = await b.engine.prefill(structs.replace(ASKED, room=Room("p", 8998, 77)))
        sent = b.pb.GenerateRequest.FromString(b.server.calls_of("Generate")[0].request)
    assert said == Prefilled(4, 3)
    assert b"8998" in str(sent).encode()


@pytest.mark.parametrize("contract", list(WIRES))
async def test_an_end_is_all_that_must_come(contract: Contract) -> None:
    async with bench(contract) as b:
        b.says(b.complete("length", 7))
        assert await b.engine.prefill(ASKED) == Prefilled()
        b.says(b.chunk(), b.chunk(7), b.complete("stop", 7))
        said = await b.engine.prefill(structs.replace(ASKED, request_id="smg-2"))
    assert said.transfer == ""


async def test_log_probabilities_of_the_prompt_are_kept() -> None:
    async with bench(Contract.SGLANG) as b:
        end = b.pb.GenerateComplete(finish_reason="length", output_ids=[7])
        end.input_logprobs.token_ids.extend([5, 6])
        end.input_logprobs.token_logprobs.add()
        end.input_logprobs.token_logprobs.add(value=-0.5)
        b.says(b.pb.GenerateResponse(complete=end).SerializeToString())
        said = await b.engine.prefill(request(max_tokens=1, prompt_logprobs=0))
    assert said.prompt_logprobs == (IdLogprob(5, None), IdLogprob(6, -0.5))


async def test_in_a_room_both_engines_are_asked_for_the_same() -> None:
    async with bench(Contract.SGLANG) as b:
        b.says(b.chunk(7), last(b))
        await b.engine.prefill(structs.replace(request(max_tokens=90), room=Room("p", 8998, 77)))
        sent = b.pb.GenerateRequest.FromString(b.server.calls_of("Generate")[0].request)
    assert sent.sampling_params.max_new_tokens == 90


async def test_the_models_defaults_draw_the_first_token_too() -> None:
    async with bench(Contract.SGLANG) as b:
        model = b.pb.GetModelInfoResponse(default_sampling_params_json='{"temperature":0.5}')
        b.server.unary[b.path("GetModelInfo")] = lambda _: model.SerializeToString()
        b.server.unary[b.path("GetServerInfo")] = lambda _: b""
        await b.engine.card(GENEROUS_S)
        b.says(last(b))
        await b.engine.prefill(ASKED)
        sent = b.pb.GenerateRequest.FromString(b.server.calls_of("Generate")[0].request)
    assert sent.sampling_params.temperature == 0.5


@pytest.mark.parametrize("contract", [Contract.SGLANG, Contract.TOKENSPEED, Contract.VLLM])
async def test_an_engine_may_be_silent_until_its_partner_has_fetched_the_blocks(
    contract: Contract,
) -> None:
    async def waits(_: bytes) -> AsyncIterator[bytes]:
        yield b.chunk(7)
        await asyncio.sleep(0.3)  # six times the stall limit
        yield last(b, prompt_tokens=4)

    async with bench(contract, SILENT) as b:
        b.generates(waits)
        assert (await b.engine.prefill(ASKED)).prompt_tokens == 4
    assert b.labels("engine_timeout") == []


@pytest.mark.parametrize("said", [0, 1])
async def test_a_prompt_not_worked_off_in_time_is_late(said: int) -> None:
    async def waits(_: bytes) -> AsyncIterator[bytes]:
        for _number in range(said):
            yield b.chunk(7)
        await asyncio.sleep(3600)

    async with bench(options=SILENT) as b:
        b.generates(waits)
        error = await refusal(b, request(max_tokens=1, timeout_s=0.3))
        served = await b.server.call_of("Generate")
        async with asyncio.timeout(GENEROUS_S):
            await served.ended.wait()
            await b.server.call_of("Abort")
    assert (error.kind, error.code) == (ErrorKind.UPSTREAM_TIMEOUT, "deadline_exceeded")
    assert error.message == "the answer was not complete within 0.3 s"
    assert served.cancelled


async def test_an_engine_that_never_says_a_word_is_given_up_on() -> None:
    async def waits(_: bytes) -> AsyncIterator[bytes]:
        await asyncio.sleep(3600)
        yield b""

    async with bench(options=replace(SILENT, first_event_s=0.2)) as b:
        b.generates(waits)
        error = await refusal(b, structs.replace(ASKED, silences=1))
    assert (error.code, error.message) == (
        "first_event_timeout",
        "the engine said nothing for 0.1 s",
    )
    assert verdict(error) is Verdict.FAILURE


@pytest.mark.parametrize("contract", list(WIRES))
@pytest.mark.parametrize(
    ("reason", "code"), [("abort", "upstream_abort"), ("error", "upstream_error")]
)
async def test_an_engine_that_gives_up_has_failed(
    contract: Contract, reason: str, code: str
) -> None:
    async with bench(contract) as b:
        b.says(b.chunk(7), b.complete(reason))
        error = await refusal(b)
    assert (error.kind, error.code) == (ErrorKind.UPSTREAM_FAILED, code)
    assert b.labels("engine_error") == [{"contract": contract.value, "status": code}]


@pytest.mark.parametrize("contract", list(WIRES))
async def test_a_stream_that_is_cut_has_failed(contract: Contract) -> None:
    async with bench(contract) as b:
        b.says(b.chunk(7))
        assert (await refusal(b)).code == "upstream_cut"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (grpc.StatusCode.ABORTED, ErrorKind.UPSTREAM_FAILED),
        (grpc.StatusCode.UNAVAILABLE, ErrorKind.UPSTREAM_FAILED),
        (grpc.StatusCode.INVALID_ARGUMENT, ErrorKind.INVALID_REQUEST),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, ErrorKind.OVERLOADED),
    ],
)
async def test_a_refusal_means_what_it_means_to_a_generation(
    status: grpc.StatusCode, kind: ErrorKind
) -> None:
    async def refuses(_: bytes) -> AsyncIterator[bytes]:
        yield b.chunk(7)
        raise RefusalError(status, "no")

    async with bench(Contract.TOKENSPEED) as b:
        b.generates(refuses)
        assert (await refusal(b)).kind is kind


async def test_a_word_for_the_partner_that_is_no_object_is_counted_and_refused() -> None:
    async with bench() as b:
        b.says(last(b, transfer="[1]"))
        assert (await refusal(b)).code == "upstream_transfer"
    assert b.labels("engine_error") == [{"contract": "vllm", "status": "upstream_transfer"}]


async def test_a_generation_does_not_mind_what_is_said_to_partners() -> None:
    async with bench() as b:
        b.says(b.chunk(7), last(b, "stop", transfer="[1]"))
        async with asyncio.timeout(GENEROUS_S):
            chunks = [one async for batch in b.engine.generate(request()) for one in batch]
    assert [one.ids for one in chunks] == [(7,), ()]


@pytest.mark.parametrize("contract", list(WIRES))
async def test_cancelling_reaches_the_engine_twice(contract: Contract) -> None:
    async with bench(contract) as b:
        b.generates(lambda _: fast_forever(b))
        async with asyncio.TaskGroup() as group:
            task = group.create_task(b.engine.prefill(ASKED))
            served = await b.server.call_of("Generate")
            task.cancel()
        async with asyncio.timeout(GENEROUS_S):
            await served.ended.wait()  # by the reset,
            abort = await b.server.call_of("Abort")  # and by word
        assert task.cancelled()
        again = b.engine.generate(ASKED)  # the id is free again: nothing was left behind
        b.says(b.complete("length", 7))
        assert [one async for batch in again for one in batch]
    assert served.cancelled
    assert b"smg-1" in abort.request


async def test_dropping_it_by_its_id_is_no_success() -> None:
    async with bench() as b:
        b.generates(lambda _: fast_forever(b))
        async with asyncio.TaskGroup() as group:
            failed = group.create_task(refusal(b))
            await b.server.call_of("Generate")
            while not failed.done():
                with suppress(SmgError):
                    await b.engine.abort("smg-1")
                await asyncio.sleep(0)
    assert failed.result().code == "upstream_abort"


async def test_closing_the_engine_ends_it() -> None:
    async with bench() as b:
        b.generates(lambda _: fast_forever(b))
        async with asyncio.TaskGroup() as group:
            failed = group.create_task(refusal(b))
            await b.server.call_of("Generate")
            await b.engine.close()
        assert failed.result().code == "worker_removed"
        assert (await refusal(b)).code == "worker_removed"


async def test_several_answers_and_a_silent_engine_are_never_asked_for() -> None:
    async with bench() as b:
        for asked in (request(max_tokens=1, n=2), structs.replace(ASKED, stream=False)):
            with pytest.raises(AssertionError):
                await b.engine.prefill(asked)
        assert b.server.calls == []
