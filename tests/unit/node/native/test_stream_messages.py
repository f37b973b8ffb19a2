"""Chunks read by hand: where anything is read, it is what protobuf reads; for any bytes, in each form of the module."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.contracts.wire import Message
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.native.stream_messages import ChunkReader
from support.engines.engine_bench import PB
from support.tools.compiled_forms import form, twins
from support.tools.example_counts import example_count

SHAPES = {
    Contract.VLLM: {"part": 1, "choice": 7, "prompt": 2, "cached": 4},
    Contract.SGLANG: {"part": 2, "choice": 8, "prompt": 2, "cached": 4},
    Contract.TRTLLM: {"part": 2, "choice": 2, "prompt": 3, "cached": 5},
    Contract.MLX: {"part": 1, "choice": 6, "prompt": 2, "cached": 4},
    Contract.TOKENSPEED: {"part": 2, "choice": 6, "prompt": 2, "cached": 4},
}
ENDS = {
    Contract.VLLM: {"part": 2, "choice": 8, "prompt": 3, "cached": 5, "reason": 2, "matched": 10},
    Contract.SGLANG: {"part": 3, "choice": 11, "prompt": 3, "cached": 5, "reason": 2, "matched": 8},
    Contract.TRTLLM: {"part": 3, "choice": 2, "prompt": 5, "cached": 7, "reason": 3, "matched": 13},
    Contract.MLX: {"part": 2, "choice": 7, "prompt": 3, "cached": 5, "reason": 2, "matched": 8},
    Contract.TOKENSPEED: {
        "part": 3,
        "choice": 9,
        "prompt": 3,
        "cached": 5,
        "reason": 2,
        "matched": 7,
    },
}
wide = st.integers(0, 32).flatmap(lambda bits: st.integers(0, max(2**bits - 1, 0)))
contracts = st.sampled_from(list(PB))


@pytest.fixture(params=twins("native.stream_messages"), ids=form, scope="module")
def chunks(request: pytest.FixtureRequest) -> ModuleType:
    found: ModuleType = request.param
    return found


def reader_of(chunks: ModuleType, contract: Contract) -> ChunkReader:
    found: ChunkReader = chunks.ChunkReader(**SHAPES[contract])
    return found


def chunk_of(contract: Contract, ids: list[int], **counts: int) -> bytes:
    pb = PB[contract]
    if contract is Contract.TRTLLM and "index" in counts:
        counts["sequence_index"] = counts.pop("index")
    part = pb.GenerateStreamChunk(token_ids=ids, **counts)
    response = pb.GenerateResponse(chunk=part)
    if "request_id" in pb.GenerateResponse.DESCRIPTOR.fields_by_name:
        response.request_id = "eng-01"
    data: bytes = response.SerializeToString()
    return data


def end_of(contract: Contract, ids: list[int], matched: int | str | None, **said: Any) -> bytes:
    pb, trtllm = PB[contract], contract is Contract.TRTLLM
    said["output_token_ids" if trtllm else "output_ids"] = ids
    if trtllm and "index" in said:
        said["sequence_index"] = said.pop("index")
    if isinstance(matched, str):
        said["matched_stop_str"] = matched
    elif matched is not None:
        mlx = contract is Contract.MLX
        said["matched_stop_token_id" if mlx else "matched_token_id"] = matched
    response = pb.GenerateResponse(complete=pb.GenerateComplete(**said))
    if "request_id" in pb.GenerateResponse.DESCRIPTOR.fields_by_name:
        response.request_id = "eng-01"
    data: bytes = response.SerializeToString()
    return data


def end_agrees(chunks: ModuleType, contract: Contract, data: bytes) -> bool:
    """Whether an end was read by hand, after a look that protobuf reads the same."""
    found = chunks.EndReader(**ENDS[contract]).read(data)
    if found is None:
        return False
    ids, choice, prompt, cached, reason, matched = found
    assert WIRES[contract]().read(data) == Message(
        choice, ids, True, reason, matched, prompt, cached
    )
    return True


def agrees(chunks: ModuleType, contract: Contract, data: bytes) -> bool:
    """Whether it was read by hand, after a look that protobuf reads the same."""
    found = reader_of(chunks, contract).run([data], 0)
    if found is None:
        return False
    ids, end, choice, prompt, cached = found
    assert end == 1
    read = WIRES[contract]().read(data)
    assert read == Message(choice, ids, prompt_tokens=prompt, cached_tokens=cached)
    return True


@given(
    contract=contracts,
    ids=st.lists(wide, max_size=6),
    counts=st.fixed_dictionaries(
        dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "index"), wide)
    ),
)
def test_every_plain_chunk_is_read_and_as_protobuf_reads_it(
    chunks: ModuleType, contract: Contract, ids: list[int], counts: dict[str, int]
) -> None:
    assert agrees(chunks, contract, chunk_of(contract, ids, **counts))


@given(
    contract=contracts,
    ids=st.lists(wide, max_size=3),
    matched=st.none() | wide,
    counts=st.fixed_dictionaries(
        dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "index"), wide)
    ),
    reason=st.sampled_from(["", "stop", "length"]),
)
def test_every_plain_end_is_read_and_as_protobuf_reads_it(
    chunks: ModuleType,
    contract: Contract,
    ids: list[int],
    matched: int | None,
    counts: dict[str, int],
    reason: str,
) -> None:
    data = end_of(contract, ids, matched, finish_reason=reason, **counts)
    assert end_agrees(chunks, contract, data)


def test_an_end_with_more_to_say_is_left_to_protobuf(chunks: ModuleType) -> None:
    pb = PB[Contract.VLLM]
    transfer = pb.GenerateComplete(finish_reason="stop", kv_transfer_params_json="{}")
    for data in (
        end_of(Contract.VLLM, [1], "END", finish_reason="stop"),
        end_of(Contract.VLLM, [1], None, finish_reason="plötzlich"),
        pb.GenerateResponse(complete=transfer).SerializeToString(),
        chunk_of(Contract.VLLM, [1]),
        b"",
    ):
        assert not end_agrees(chunks, Contract.VLLM, data)


@given(contract=contracts, ids=st.lists(wide, max_size=3), at=st.integers(0, 40))
def test_no_beginning_of_a_chunk_is_taken_for_another(
    chunks: ModuleType, contract: Contract, ids: list[int], at: int
) -> None:
    whole = chunk_of(contract, ids, prompt_tokens=300, cached_tokens=1, index=2)
    agrees(chunks, contract, whole[: at % len(whole)])
    whole = end_of(contract, ids, 7, prompt_tokens=300, finish_reason="stop")
    end_agrees(chunks, contract, whole[: at % len(whole)])


@settings(max_examples=example_count(300))
@given(contract=contracts, data=st.data())
def test_any_bytes_are_read_as_protobuf_reads_them_or_left_to_it(
    chunks: ModuleType, contract: Contract, data: st.DataObject
) -> None:
    said = {"prompt_tokens": 300, "index": 1}
    if data.draw(st.booleans()):
        raw = bytearray(chunk_of(contract, [7, 90_000], **said))
    else:
        raw = bytearray(end_of(contract, [7, 90_000], 3, finish_reason="stop", **said))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(raw)))
        cut = data.draw(st.integers(0, 2))
        raw[at : at + cut] = data.draw(st.binary(max_size=3))
    agrees(chunks, contract, bytes(raw))
    end_agrees(chunks, contract, bytes(raw))
    agrees(chunks, contract, data.draw(st.binary(max_size=24)))


def test_what_is_no_plain_chunk_is_left_to_protobuf(chunks: ModuleType) -> None:
    pb: Any = PB[Contract.VLLM]
    reader = reader_of(chunks, Contract.VLLM)
    spoken = pb.GenerateStreamChunk(token_ids=[1])
    spoken.output_logprobs.token_ids.append(1)
    complete = pb.GenerateResponse(complete=pb.GenerateComplete(output_ids=[1]))
    one_by_one = b"\x0a\x02\x08\x05"
    twice = b"\x0a\x06\x0a\x01\x05\x0a\x01\x06"
    wider_than_an_id = b"\x0a\x08\x0a\x06\xff\xff\xff\xff\x1f\x01"
    two_chunks = chunk_of(Contract.VLLM, [1]) * 2
    for data in (
        b"",
        pb.GenerateResponse(chunk=spoken).SerializeToString(),
        complete.SerializeToString(),
        one_by_one,
        twice,
        wider_than_an_id,
        two_chunks,
    ):
        assert reader.run([data], 0) is None


def test_a_run_is_chunks_of_one_id_each_that_differ_in_nothing_else(chunks: ModuleType) -> None:
    reader = reader_of(chunks, Contract.VLLM)
    a, b, c = (
        chunk_of(Contract.VLLM, [one], prompt_tokens=9, cached_tokens=4) for one in (1, 2, 3)
    )
    other_choice = chunk_of(Contract.VLLM, [4], prompt_tokens=9, cached_tokens=4, index=1)
    other_count = chunk_of(Contract.VLLM, [4], prompt_tokens=9)
    several = chunk_of(Contract.VLLM, [5, 6], prompt_tokens=9, cached_tokens=4)
    none = chunk_of(Contract.VLLM, [], prompt_tokens=9, cached_tokens=4)

    assert reader.run([a, b, c], 0) == ((1, 2, 3), 3, 0, 9, 4)
    assert reader.run([a, b, c], 1) == ((2, 3), 3, 0, 9, 4)
    for other in (other_choice, other_count, several, none, b"\xff"):
        assert reader.run([a, b, other, c], 0) == ((1, 2), 2, 0, 9, 4)
    assert reader.run([several, a], 0) == ((5, 6), 1, 0, 9, 4)
    assert reader.run([none, a], 0) == ((), 1, 0, 9, 4)
    assert reader.run([other_choice], 0) == ((4,), 1, 1, 9, 4)


def test_a_message_that_says_nothing_of_its_prompt_says_nothing_of_the_cache(
    chunks: ModuleType,
) -> None:
    data = chunk_of(Contract.MLX, [1], cached_tokens=5)
    assert reader_of(chunks, Contract.MLX).run([data], 0) == ((1,), 1, 0, -1, -1)


@pytest.mark.parametrize("contract", list(PB))
def test_the_numbers_of_fields_are_those_of_the_contract(contract: Contract) -> None:
    pb = PB[contract]
    response = pb.GenerateResponse.DESCRIPTOR.fields_by_name
    fields = pb.GenerateStreamChunk.DESCRIPTOR.fields_by_name
    index = "sequence_index" if contract is Contract.TRTLLM else "index"
    assert SHAPES[contract] == {
        "part": response["chunk"].number,
        "choice": fields[index].number,
        "prompt": fields["prompt_tokens"].number,
        "cached": fields["cached_tokens"].number,
    }
    fields = pb.GenerateComplete.DESCRIPTOR.fields_by_name
    matched = "matched_stop_token_id" if contract is Contract.MLX else "matched_token_id"
    assert ENDS[contract] == {
        "part": response["complete"].number,
        "choice": fields[index].number,
        "prompt": fields["prompt_tokens"].number,
        "cached": fields["cached_tokens"].number,
        "reason": fields["finish_reason"].number,
        "matched": fields[matched].number,
    }
    data = end_of(contract, [1], 5, prompt_tokens=3, index=1, finish_reason="stop")
    assert WIRES[contract]().ends.read(data) == ((1,), 1, 3, 0, "stop", 5)
    data = chunk_of(contract, [1], prompt_tokens=3, cached_tokens=2, index=1)
    assert WIRES[contract]().chunks.run([data], 0) == ((1,), 1, 1, 3, 2)
