"""Stream messages of each contract, read into the house's own words; garbage is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto.generated import (
    mlx_engine_pb2,
    sglang_scheduler_pb2,
    tokenspeed_scheduler_pb2,
    trtllm_service_pb2,
    vllm_engine_pb2,
)

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import IdLogprob
from smg_node.engines.contracts.wire import Message
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES

COLUMNS: dict[Contract, Any] = {
    Contract.VLLM: vllm_engine_pb2,
    Contract.SGLANG: sglang_scheduler_pb2,
    Contract.MLX: mlx_engine_pb2,
    Contract.TOKENSPEED: tokenspeed_scheduler_pb2,
}


def read(contract: Contract, message: Any) -> Message | None:
    return WIRES[contract]().read(message.SerializeToString())


@pytest.mark.parametrize("contract", COLUMNS)
def test_a_chunk_in_columns(contract: Contract) -> None:
    pb = COLUMNS[contract]
    chunk = pb.GenerateStreamChunk(
        token_ids=[7, 8], prompt_tokens=12, completion_tokens=99, cached_tokens=3, index=2
    )
    chunk.output_logprobs.token_ids.extend([7, 8])
    chunk.output_logprobs.token_logprobs.extend([-0.5, float("-inf")])
    chunk.output_logprobs.top_logprobs.add(token_ids=[7, 1], values=[-0.5, -2.0])

    assert read(contract, pb.GenerateResponse(chunk=chunk)) == Message(
        choice=2,
        ids=(7, 8),
        prompt_tokens=12,
        cached_tokens=3,
        logprobs=(IdLogprob(7, -0.5, ((7, -0.5), (1, -2.0))), IdLogprob(8, -9999.0)),
    )


@pytest.mark.parametrize("contract", COLUMNS)
def test_a_complete_in_columns(contract: Contract) -> None:
    pb = COLUMNS[contract]
    complete = pb.GenerateComplete(
        output_ids=[7], finish_reason="stop", prompt_tokens=12, index=1, cached_tokens=0
    )
    if contract is Contract.MLX:
        complete.matched_stop_token_id = 0
    else:
        complete.matched_token_id = 0

    found = read(contract, pb.GenerateResponse(complete=complete))

    assert found == Message(
        choice=1,
        ids=(7,),
        final=True,
        reason="stop",
        matched=0,  # an id like any other, not "nothing"
        prompt_tokens=12,
        cached_tokens=0,
    )


@pytest.mark.parametrize("contract", [one for one in WIRES if one is not Contract.MLX])
def test_a_matched_stop_string(contract: Contract) -> None:
    pb = COLUMNS.get(contract, trtllm_service_pb2)
    complete = pb.GenerateComplete(finish_reason="stop", matched_stop_str="END")
    found = read(contract, pb.GenerateResponse(complete=complete))
    assert found is not None
    assert found.matched == "END"


@pytest.mark.parametrize("contract", list(WIRES))
def test_zeros_everywhere_say_nothing_of_prompt_and_cache(contract: Contract) -> None:
    pb = COLUMNS.get(contract, trtllm_service_pb2)
    found = read(contract, pb.GenerateResponse(complete=pb.GenerateComplete(finish_reason="abort")))
    assert found is not None
    assert (found.prompt_tokens, found.cached_tokens, found.matched) == (-1, -1, None)


@pytest.mark.parametrize("contract", [Contract.VLLM, Contract.SGLANG])
def test_log_probabilities_of_the_prompt(contract: Contract) -> None:
    pb = COLUMNS[contract]
    chunk = pb.GenerateStreamChunk(token_ids=[1])
    chunk.input_logprobs.token_ids.extend([5, 6])
    chunk.input_logprobs.token_logprobs.add()
    chunk.input_logprobs.token_logprobs.add(value=-1.5)
    chunk.input_logprobs.top_logprobs.add()
    chunk.input_logprobs.top_logprobs.add(token_ids=[9], values=[-0.25])

    found = read(contract, pb.GenerateResponse(chunk=chunk))

    assert found is not None
    assert found.prompt_logprobs == (IdLogprob(5, None), IdLogprob(6, -1.5, ((9, -0.25),)))


def test_tensorrt_llm_has_words_of_its_own() -> None:
    pb: Any = trtllm_service_pb2
    row = pb.TokenLogprob(token_id=7, logprob=-0.5)
    row.top_logprobs.add(token_id=7, logprob=-0.5)
    chunk = pb.GenerateStreamChunk(
        token_ids=[7], sequence_index=1, prompt_tokens=4, cached_tokens=2, logprobs=[row]
    )
    complete = pb.GenerateComplete(
        output_token_ids=[7, 8],
        sequence_index=1,
        finish_reason="stop_word",
        matched_token_id=8,
        prompt_logprobs=[pb.TokenLogprob(token_id=5, logprob=-1.0)],
    )
    logprob = IdLogprob(7, -0.5, ((7, -0.5),))

    assert read(Contract.TRTLLM, pb.GenerateResponse(chunk=chunk)) == Message(
        choice=1, ids=(7,), prompt_tokens=4, cached_tokens=2, logprobs=(logprob,)
    )
    assert read(Contract.TRTLLM, pb.GenerateResponse(complete=complete)) == Message(
        choice=1,
        ids=(7, 8),
        final=True,
        reason="stop_word",
        matched=8,
        prompt_logprobs=(IdLogprob(5, -1.0),),
    )


@pytest.mark.parametrize("contract", list(WIRES))
def test_a_message_without_chunk_or_complete_says_nothing(contract: Contract) -> None:
    assert WIRES[contract]().read(b"") is None


FINE = (None, ErrorKind.UPSTREAM_FAILED)


def kind_of_failure(ask: Callable[[], object]) -> ErrorKind | None:
    try:
        ask()
    except SmgError as error:
        return error.kind
    return None


@pytest.mark.parametrize("contract", list(WIRES))
@given(data=st.binary(max_size=60))
def test_any_bytes_give_a_message_or_an_upstream_failure(contract: Contract, data: bytes) -> None:
    assert kind_of_failure(lambda: WIRES[contract]().read(data)) in FINE


@pytest.mark.parametrize("contract", list(WIRES))
@given(data=st.binary(max_size=60))
def test_any_bytes_as_an_engines_card_give_a_card_or_an_upstream_failure(
    contract: Contract, data: bytes
) -> None:
    wire = WIRES[contract]()
    for ask in (
        lambda: wire.card(data, data),
        lambda: wire.healthy(data),
        lambda: wire.loads(data),
    ):
        assert kind_of_failure(ask) in FINE
