"""Messages taken by the wake-up: what is new in them does not depend on how many came together, nor on who reads them."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.chunk import Chunk
from smg_node.engines.engine import Contract
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.prefill_reader import HandoverReader
from smg_node.engines.grpc.stream_reader import StreamReader
from support.engines.engine_bench import PB

CHOICES = 2
contracts = st.sampled_from(list(PB))
shown = st.tuples(
    st.lists(st.integers(0, 2**32 - 1), max_size=3), st.integers(0, 2), st.integers(0, 2)
)


@st.composite
def streams(draw: st.DrawFn, contract: Contract) -> list[bytes]:
    """Messages of two choices, ended or not, some of a choice that nobody asked for, some garbage."""
    pb, trtllm = PB[contract], contract is Contract.TRTLLM
    index = "sequence_index" if trtllm else "index"
    found: list[bytes] = []
    for ids, choice, kind in draw(st.lists(shown, max_size=12)):
        own: dict[str, Any] = {index: choice if draw(st.integers(0, 9)) == 0 else choice % CHOICES}
        counts = draw(
            st.sampled_from([{}, {"prompt_tokens": 7}, {"prompt_tokens": 7, "cached_tokens": 3}])
        )
        if kind == 0 and draw(st.booleans()):
            own["output_token_ids" if trtllm else "output_ids"] = ids
            part = pb.GenerateComplete(finish_reason="stop", **own, **counts)
            found.append(pb.GenerateResponse(complete=part).SerializeToString())
        elif draw(st.integers(0, 19)) == 0:
            found.append(draw(st.binary(max_size=4)))
        else:
            part = pb.GenerateStreamChunk(token_ids=ids, **own, **counts)
            found.append(pb.GenerateResponse(chunk=part).SerializeToString())
    return found


def one_by_one(contract: Contract, messages: Sequence[bytes]) -> tuple[list[Chunk], str]:
    wire, reader, found = WIRES[contract](), StreamReader(CHOICES), []
    try:
        for data in messages:
            message = wire.read(data)
            chunk = reader.feed(message) if message is not None else None
            if chunk is not None:
                found.append(chunk)
    except SmgError as error:
        return found, error.message
    return found, ""


def apart(chunks: Sequence[Chunk]) -> list[Chunk]:
    """The same chunks, as they would have come one by one."""
    found: list[Chunk] = []
    for chunk in chunks:
        if not chunk.apart:
            found.append(chunk)
            continue
        assert len(chunk.ids) > 1
        assert chunk.finish is None
        assert not chunk.logprobs
        for one in chunk.ids:
            counts = (chunk.prompt_tokens, chunk.cached_tokens)
            found.append(
                Chunk(chunk.choice, (one,), prompt_tokens=counts[0], cached_tokens=counts[1])
            )
    return found


@given(data=st.data(), contract=contracts, borders=st.lists(st.integers(0, 12), max_size=4))
def test_a_batch_says_what_its_messages_say(
    data: st.DataObject, contract: Contract, borders: list[int]
) -> None:
    messages = data.draw(streams(contract))
    expected, refusal = one_by_one(contract, messages)
    reader = StreamReader(CHOICES, wire=WIRES[contract]())
    found: list[Chunk] = []
    said = ""
    try:
        at = 0
        for border in [*sorted(borders), len(messages)]:
            reader.take(messages[at:border], found)
            at = max(at, border)
    except SmgError as error:
        said = error.message
    assert apart(found) == expected
    assert said == refusal


def test_what_came_before_a_mistake_is_kept() -> None:
    pb = PB[Contract.VLLM]
    good = [
        pb.GenerateResponse(chunk=pb.GenerateStreamChunk(token_ids=[one])).SerializeToString()
        for one in (1, 2)
    ]
    found: list[Chunk] = []
    reader = StreamReader(1, wire=WIRES[Contract.VLLM]())
    with pytest.raises(SmgError) as caught:
        reader.take([*good, b"\xff", *good], found)
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED
    assert found == [Chunk(0, (1, 2), apart=True)]


def test_the_reader_of_a_handover_sees_every_message() -> None:
    pb = PB[Contract.VLLM]
    part = pb.GenerateStreamChunk(token_ids=[9], prompt_tokens=4, cached_tokens=3)
    reader = HandoverReader(1, wire=WIRES[Contract.VLLM]())
    reader.take([pb.GenerateResponse(chunk=part).SerializeToString()] * 2, [])
    assert (reader.prefilled.prompt_tokens, reader.prefilled.cached_tokens) == (4, 3)
