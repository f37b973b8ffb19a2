import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.processes.ipc.ipc_frames import (
    FRAME_BYTES_MAX,
    Frame,
    FrameError,
    FrameReader,
    Kind,
    pack,
)

FRAMES = st.builds(
    Frame,
    st.sampled_from(list(Kind)),
    st.integers(0, 0xFFFF_FFFF),
    st.text(max_size=64),
    st.binary(max_size=300),
)


def packed(frame: Frame) -> bytes:
    return pack(frame.kind, frame.number, frame.name, frame.payload)


@given(st.lists(FRAMES, max_size=6), st.lists(st.integers(1, 40), min_size=1, max_size=40))
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    frames: list[Frame], cuts: list[int]
) -> None:
    data = b"".join(map(packed, frames))
    reader, found, at = FrameReader(), list[Frame](), 0
    while at < len(data):
        step = cuts[at % len(cuts)]
        found += reader.feed(data[at : at + step])
        at += step
    assert found == frames
    assert reader.held_bytes == 0


@given(st.binary(max_size=200))
def test_garbage_is_frames_or_a_frame_error_and_nothing_else(data: bytes) -> None:
    reader = FrameReader()
    try:
        for frame in reader.feed(data):
            assert isinstance(frame.kind, Kind)
    except FrameError:
        return
    assert reader.held_bytes <= len(data)


@given(FRAMES, st.binary(min_size=1, max_size=20))
def test_what_is_whole_before_garbage_is_read(frame: Frame, tail: bytes) -> None:
    reader = FrameReader()
    broken = len(tail).to_bytes(4, "big") + b"\xc1" * len(tail)
    frames = reader.feed(packed(frame) + broken)
    assert next(frames) == frame
    with pytest.raises(FrameError):
        next(frames)


def test_a_frame_that_says_it_is_too_large_is_not_waited_for() -> None:
    with pytest.raises(FrameError, match="a frame of"):
        list(FrameReader().feed((FRAME_BYTES_MAX + 1).to_bytes(4, "big")))
