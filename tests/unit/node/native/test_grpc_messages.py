"""Runs of frames that are one message each: what a plain reading of HTTP/2 finds, in each form of the module."""

from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tools.compiled_forms import form, twins

CALL = 7


def frame(
    message: bytes, *, call: int = CALL, kind: int = 0, flags: int = 0, packed: int = 0
) -> bytes:
    payload = bytes((packed,)) + len(message).to_bytes(4) + message
    return len(payload).to_bytes(3) + bytes((kind, flags)) + call.to_bytes(4) + payload


@pytest.fixture(params=twins("native.grpc_messages"), ids=form, scope="module")
def reading(request: pytest.FixtureRequest) -> ModuleType:
    found: ModuleType = request.param
    return found


def plainly(data: bytes, at: int, size_max: int, room: int) -> tuple[int, list[bytes]]:
    """Read as the promise says, frame by frame, with slices."""
    found: list[bytes] = []
    while True:
        length = int.from_bytes(data[at : at + 3])
        payload = data[at + 9 : at + 9 + length]
        message = payload[5:]
        exact = frame(message)
        whole = data[at : at + 9 + length] == exact and len(exact) == 9 + length
        if len(data) - at < 14 or not whole or len(message) > size_max or length > room:
            return at, found
        found.append(message)
        room -= length
        at += 9 + length


plain = st.binary(max_size=40).map(frame)
odd = st.builds(
    frame,
    st.binary(max_size=20),
    call=st.sampled_from([CALL, CALL, 1, 2**31 + CALL, 2**32 - 1]),
    kind=st.sampled_from([0, 0, 1, 255]),
    flags=st.sampled_from([0, 0, 1, 8]),
    packed=st.sampled_from([0, 0, 1, 255]),
)
lies = st.binary(max_size=24) | st.binary(min_size=9, max_size=20).map(lambda tail: b"\0\0" + tail)


@given(
    st.lists(plain | odd | lies, max_size=8),
    st.binary(max_size=3),
    st.integers(0, 20),
    st.integers(0, 50),
    st.integers(0, 200),
)
def test_a_run_is_what_a_plain_reading_finds(
    reading: ModuleType, pieces: list[bytes], before: bytes, cut: int, size_max: int, room: int
) -> None:
    data = before + b"".join(pieces)
    data = data[: max(len(data) - cut, len(before))]
    messages = [b"had"]
    stop = reading.whole_messages(data, len(before), CALL, size_max, room, messages)
    assert (stop, messages[1:]) == plainly(data, len(before), size_max, room)
    assert messages[0] == b"had"


def test_what_is_taken_is_within_the_window_to_the_byte(reading: ModuleType) -> None:
    data = frame(b"abc") * 3
    for room, taken in ((24, 3), (23, 2), (16, 2), (15, 1), (8, 1), (7, 0), (0, 0)):
        messages: list[bytes] = []
        assert reading.whole_messages(data, 0, CALL, 3, room, messages) == taken * 17
        assert messages == [b"abc"] * taken


def test_sizes_that_claim_four_gigabytes_are_no_messages(reading: ModuleType) -> None:
    lie = b"\0\0\x05\0\0" + CALL.to_bytes(4) + b"\0" + b"\xff" * 4 + bytes(64)
    assert reading.whole_messages(lie, 0, CALL, 2**32, 2**31, []) == 0
