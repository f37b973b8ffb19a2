"""Requests put together from bytes say what protobuf would have said, whatever stands in them and whatever came before."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_node.core.generation.request import Constraint, Sampling, token_ids
from smg_node.engines.contracts.request_template import KINDS_MAX, Splice
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.native.token_ids import pack_ids
from support.engines.engine_bench import PB

contracts = st.sampled_from(list(PB))
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])
maybe = st.none()
samplings = st.builds(
    Sampling,
    max_tokens=st.sampled_from([0, 1, 127, 128, 300, 2**32 - 1]),
    min_tokens=st.sampled_from([0, 3]),
    temperature=maybe | shares,
    top_p=maybe | shares,
    top_k=maybe | st.sampled_from([-1, 0, 5]),
    min_p=maybe | shares,
    frequency_penalty=shares,
    presence_penalty=shares,
    repetition_penalty=maybe | shares,
    seed=maybe | st.sampled_from([0, 2**40]),
    n=st.just(1),
    stop=st.sampled_from([(), ("a",), ("a", "é")]),
    stop_token_ids=st.sampled_from([(), (0, 9)]),
    ignore_eos=st.booleans(),
    keep_stop=st.booleans(),
    skip_special_tokens=st.booleans(),
    logit_bias=st.sampled_from([{}, {3: 1.5}]),
    logprobs=maybe | st.sampled_from([0, 4]),
    prompt_logprobs=maybe | st.just(2),
    constraint=maybe | st.just(Constraint("regex", "a+", "x")),
)
prompts = st.lists(st.integers(0, 2**32 - 1), max_size=5).map(token_ids)


@st.composite
def requests(draw: st.DrawFn) -> EngineRequest:
    name = draw(st.sampled_from(["", "eng-1", "é" * 100]))
    return EngineRequest(name, draw(prompts), draw(samplings), draw(st.booleans()), 1.0)


def understood(contract: Contract, data: bytes) -> Any:
    return PB[contract].GenerateRequest.FromString(data)


def written_out(contract: Contract, request: EngineRequest) -> Any:
    """What the contract's own function writes, with nothing kept from any request before."""
    wire: Any = WIRES[contract]()
    return wire._message(request, 40)


@given(contract=contracts, asked=st.lists(requests(), min_size=1, max_size=4))
def test_a_spliced_request_says_what_is_written_out(
    contract: Contract, asked: list[EngineRequest]
) -> None:
    wire = WIRES[contract]()
    for request in asked * 2:
        data = wire.generate(request, bias_width=40)
        assert understood(contract, data) == written_out(contract, request)


@pytest.mark.parametrize("contract", list(PB))
def test_ids_that_are_packed_already_are_sent_as_they_are(contract: Contract) -> None:
    ids = token_ids([5, 90_000, 2**32 - 1])
    plain = EngineRequest("a", ids, Sampling(max_tokens=9), True, 1.0)
    packed = EngineRequest("a", ids, Sampling(max_tokens=9), True, 1.0, packed=pack_ids(ids))
    wire = WIRES[contract]()
    sent = wire.generate(plain, bias_width=None)
    assert wire.generate(packed, bias_width=None) == sent
    assert understood(contract, sent) == written_out(contract, plain)


def test_a_rank_and_a_transfer_are_of_their_request_alone() -> None:
    wire = WIRES[Contract.VLLM]()
    plain = EngineRequest("a", token_ids([1]), Sampling(max_tokens=9), True, 1.0)
    for rank, transfer in ((None, ""), (0, ""), (3, ""), (None, '{"a":1}'), (None, "")):
        request = EngineRequest(
            "a", plain.ids, plain.sampling, True, 1.0, rank=rank, transfer=transfer
        )
        data = wire.generate(request, bias_width=None)
        assert understood(Contract.VLLM, data) == written_out(Contract.VLLM, request)


def test_more_kinds_than_are_kept_are_written_and_forgotten() -> None:
    made = 0

    def build(request: EngineRequest, bias_width: int | None) -> Any:
        nonlocal made
        made += 1
        message = PB[Contract.MLX].GenerateRequest(request_id=request.request_id)
        message.sampling_params.temperature = request.sampling.temperature or 0.0
        message.sampling_params.max_tokens = request.sampling.max_tokens
        message.tokenized.input_ids.extend(request.ids)
        return message

    splice = Splice(
        PB[Contract.MLX].GenerateRequest,
        build,
        ids="input_ids",
        params="sampling_params",
        limit="max_tokens",
    )
    first = EngineRequest("a", token_ids([1]), Sampling(max_tokens=1, temperature=0.5), True, 1.0)
    for _ in range(3):
        splice.written(first, None)
    assert made == 1
    for number in range(KINDS_MAX):
        sampling = replace(first.sampling, temperature=1.0 + number / 1000)
        splice.written(EngineRequest("a", first.ids, sampling, True, 1.0), None)
    splice.written(first, None)
    assert made == 1 + KINDS_MAX + 1
