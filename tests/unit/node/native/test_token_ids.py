"""Ids as varints: what protobuf makes of them, byte for byte, in each form of the module."""

from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smg_grpc_proto.generated import vllm_engine_pb2 as pb

from support.tools.compiled_forms import form, twins

numbers = st.integers(0, 32).flatmap(lambda bits: st.integers(0, max(2**bits - 1, 0)))


@pytest.fixture(params=twins("native.token_ids"), ids=form, scope="module")
def ids(request: pytest.FixtureRequest) -> ModuleType:
    found: ModuleType = request.param
    return found


@given(st.lists(numbers, max_size=40))
def test_packed_ids_are_what_protobuf_makes_of_them(ids: ModuleType, values: list[int]) -> None:
    packed = ids.pack_ids(array("I", values))
    assert list(pb.TokenizedInput.FromString(field(packed)).input_ids) == values
    assert pb.TokenizedInput(input_ids=values).SerializeToString() == (
        field(packed) if values else b""
    )


def field(packed: bytes) -> bytes:
    size = len(packed)
    assert size < 1 << 14
    length = bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7))
    return b"\x12" + length + packed


@pytest.mark.parametrize("border", [0, 127, 128, 2**14, 2**21, 2**28, 2**32])
def test_both_sides_of_every_border(ids: ModuleType, border: int) -> None:
    for value in (border - 1, border):
        if 0 <= value < 2**32:
            packed = ids.pack_ids(array("I", [value]))
            assert packed == ids.varint(value)
            assert len(packed) == max(-(-value.bit_length() // 7), 1)


def test_as_many_ids_as_a_long_prompt_has(ids: ModuleType) -> None:
    values = [at * 37 % 151_000 for at in range(20_000)]
    packed: bytes = ids.pack_ids(array("I", values))
    message = pb.TokenizedInput(input_ids=values).SerializeToString()
    assert message.endswith(packed)
    assert len(message) - len(packed) == 4


@given(st.integers(0, 2**63))
def test_a_number_alone_ends_where_it_ends(ids: ModuleType, value: int) -> None:
    found = ids.varint(value)
    assert sum((byte & 127) << 7 * at for at, byte in enumerate(found)) == value
    assert [byte >> 7 for byte in found] == [1] * (len(found) - 1) + [0]
