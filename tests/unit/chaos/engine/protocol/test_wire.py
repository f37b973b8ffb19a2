"""What is written by hand is what the generated messages would have written."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.engine.protocol.answers import Answer
from smg_chaos.engine.protocol.contracts import CONTRACTS
from smg_chaos.engine.protocol.response_writer import Ending, Writer
from smg_chaos.engine.protocol.servicer_behaviours import Flavour
from smg_chaos.engine.protocol.servicers import MANNERS
from smg_chaos.engine.protocol.wire import Field, string_field, varint

NUMBER = st.integers(0, 2**32 - 1)
NAMES = {"trtllm": ("output_token_ids", "sequence_index")}


@pytest.mark.parametrize("flavour", Flavour)
@given(
    ids=st.lists(NUMBER, max_size=5),
    counts=st.tuples(NUMBER, NUMBER, NUMBER),
    index=st.integers(0, 200),
    name=st.text(max_size=200),
    matched=st.none() | NUMBER | st.text(max_size=20),
)
def test_a_chunk_and_a_complete_read_back_as_they_were_meant(
    flavour: Flavour,
    ids: list[int],
    counts: tuple[int, int, int],
    index: int,
    name: str,
    matched: int | str | None,
) -> None:
    manners = MANNERS[flavour]
    contract = CONTRACTS[flavour.value.partition("-")[0]]
    if flavour is Flavour.MLX and isinstance(matched, str):
        matched = None
    writer = Writer(contract, manners, vocabulary=1000)
    prompt, cached, total = counts
    spoken = writer.spoken(name, prompt=prompt, cached=cached, index=index)
    words = contract.messages.GenerateResponse
    ids_name, index_name = NAMES.get(contract.name, ("output_ids", "index"))

    read = words.FromString(writer.chunk(spoken, ids, total))
    assert list(read.chunk.token_ids) == ids
    assert read.chunk.completion_tokens == (len(ids) if manners.counts_per_chunk else total)
    assert (read.chunk.prompt_tokens, read.chunk.cached_tokens) == (prompt, cached)
    assert getattr(read.chunk, index_name) == index
    if manners.names_request:
        assert read.request_id == name

    read = words.FromString(writer.complete(spoken, ids, total, Ending("stop", matched)))
    assert list(getattr(read.complete, ids_name)) == ids
    assert (read.complete.finish_reason, read.complete.completion_tokens) == ("stop", total)
    told = [
        getattr(read.complete, field.name)
        for field, _ in read.complete.ListFields()
        if field.name.startswith("matched")
    ]
    assert told == ([] if matched is None else [matched])


@given(st.lists(NUMBER, min_size=1, max_size=30))
def test_a_remembered_chunk_is_the_chunk(ids: list[int]) -> None:
    writer = Writer(CONTRACTS["vllm"], MANNERS[Flavour.MLX], vocabulary=1000)
    answer = Answer(tuple(ids), (1,))
    spoken = writer.spoken("x", prompt=3, cached=0, index=0)
    for _ in range(2):
        for at in range(len(ids)):
            assert writer.one(spoken, answer, at) == writer.chunk(spoken, ids[at : at + 1], at + 1)


@given(st.integers(0, 2**64 - 1))
def test_a_number_is_the_number_protobuf_would_write(value: int) -> None:
    message = CONTRACTS["vllm"].messages.GetServerInfoResponse
    written = Field(1).present(value & 0xFFFF_FFFF)
    assert message.FromString(written).active_requests == value & 0xFFFF_FFFF
    assert varint(value)[-1] < 0x80


@given(st.text(), st.binary(max_size=40))
def test_a_string_is_found_and_garbage_is_a_value_error(text: str, garbage: bytes) -> None:
    assert string_field(Field(1).holding(text.encode()), 1) == text
    with suppress(ValueError):
        string_field(garbage, 1)


@pytest.mark.parametrize("contract", sorted(CONTRACTS))
def test_what_is_asked_is_what_is_read(contract: str) -> None:
    words = CONTRACTS[contract]
    fields = {
        "request_id": "r",
        "stream": True,
        "temperature": 0.5,
        "max_tokens": 7,
        "stop_ids": (3, 4),
        "ignore_eos": True,
        "logprobs": 2,
    }
    read = words.read(words.ask([1, 2, 70000], **fields))
    assert read.ids == [1, 2, 70000]
    assert {name: getattr(read, name) for name in fields} == fields
    assert (read.n, read.text, read.prompt_logprobs) == (1, None, None)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_request_are_a_value_error(garbage: bytes) -> None:
    for contract in CONTRACTS.values():
        with suppress(ValueError):
            contract.read(garbage)
