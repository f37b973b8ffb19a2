import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.history.peers import chunked_messages as form
from smg_node.history.peers.chunked_messages import (
    ChunkedMessages,
    ChunkError,
    NoRoomError,
    part,
    parts_of,
)

KEY = ("a", b"0123456789abcdef")
THREE = bytes(random.Random(1).randbytes(2 * form.PART_BYTES + 1))


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_what_fits_is_one_part_and_one_byte_more_are_two() -> None:
    sizes = (0, 1, form.PART_BYTES, form.PART_BYTES + 1, 2 * form.PART_BYTES, len(THREE))
    assert [parts_of(bytes(size)) for size in sizes] == [1, 1, 1, 2, 2, 3]
    assert b"".join(part(THREE, index) for index in range(3)) == THREE


@given(st.permutations([0, 1, 2]), st.integers(0, 2))
def test_parts_come_in_any_order_and_twice(order: list[int], twice: int) -> None:
    parcels = ChunkedMessages(Clock())
    whole = None
    for index in order[:2]:
        assert parcels.take_in(KEY, index, 3, part(THREE, index)) is None
        if index == twice:
            assert parcels.take_in(KEY, index, 3, part(THREE, index)) is None
    whole = parcels.take_in(KEY, order[2], 3, part(THREE, order[2]))
    assert whole == THREE
    assert (len(parcels), parcels.bytes) == (0, 0)


def test_parcels_of_two_nodes_are_two() -> None:
    parcels = ChunkedMessages(Clock())
    assert parcels.take_in(("a", b"1"), 0, 2, b"a0") is None
    assert parcels.take_in(("b", b"1"), 1, 2, b"b1") is None
    assert parcels.take_in(("a", b"1"), 1, 2, b"a1") == b"a0a1"
    assert len(parcels) == 1


@pytest.mark.parametrize(
    ("index", "count", "content"),
    [
        (-1, 2, b"x"),
        (2, 2, b"x"),
        (0, 0, b"x"),
        (0, form.PARCEL_BYTES_MAX // form.PART_BYTES + 2, b"x"),
        (0, 2, b""),
        (0, 2, bytes(form.PART_BYTES + 1)),
    ],
)
def test_a_part_of_nothing_is_refused(index: int, count: int, content: bytes) -> None:
    parcels = ChunkedMessages(Clock())
    with pytest.raises(ChunkError):
        parcels.take_in(KEY, index, count, content)
    assert len(parcels) == 0


def test_a_parcel_has_as_many_parts_as_were_said_first() -> None:
    parcels = ChunkedMessages(Clock())
    parcels.take_in(KEY, 0, 3, b"x")
    with pytest.raises(ChunkError):
        parcels.take_in(KEY, 1, 2, b"x")


def test_what_nobody_goes_on_with_is_forgotten() -> None:
    clock = Clock()
    parcels = ChunkedMessages(clock)
    parcels.take_in(("a", b"1"), 0, 2, b"part")
    parcels.keep(("a", b"2"), THREE)
    clock.now_s = form.FORGET_S
    assert parcels.give_out(("a", b"2"), 0) == part(THREE, 0)
    clock.now_s += 1
    parcels.take_in(("a", b"3"), 0, 2, b"other")
    assert (len(parcels), parcels.bytes) == (2, len(THREE) + 5)
    clock.now_s += form.FORGET_S
    with pytest.raises(ChunkError):
        parcels.give_out(("a", b"2"), 1)
    assert len(parcels) == 1


def test_what_was_fetched_is_forgotten() -> None:
    parcels = ChunkedMessages(Clock())
    parcels.keep(KEY, THREE)
    assert b"".join(parcels.give_out(KEY, index) for index in range(3)) == THREE
    assert (len(parcels), parcels.bytes) == (0, 0)
    with pytest.raises(ChunkError):
        parcels.give_out(KEY, 2)


def test_only_whose_it_is_fetches_it_and_only_what_is_there() -> None:
    parcels = ChunkedMessages(Clock())
    parcels.keep(KEY, THREE)
    for key, index in ((("b", KEY[1]), 0), (KEY, 3), (KEY, -1)):
        with pytest.raises(ChunkError):
            parcels.give_out(key, index)


def test_a_full_room_takes_nothing_more() -> None:
    parcels = ChunkedMessages(Clock(), room_bytes_max=10)
    parcels.take_in(("a", b"1"), 0, 2, b"123456")
    with pytest.raises(NoRoomError):
        parcels.take_in(("a", b"2"), 0, 2, b"12345")
    with pytest.raises(NoRoomError):
        parcels.take_in(("a", b"1"), 1, 2, b"12345")
    with pytest.raises(NoRoomError):
        parcels.keep(("a", b"3"), b"12345")
    assert parcels.take_in(("a", b"1"), 1, 2, b"1234") == b"1234561234"


def test_there_are_never_too_many() -> None:
    parcels = ChunkedMessages(Clock())
    for number in range(form.PARCELS_MAX):
        parcels.take_in(("a", str(number).encode()), 0, 2, b"x")
    with pytest.raises(NoRoomError):
        parcels.take_in(("a", b"one more"), 0, 2, b"x")
