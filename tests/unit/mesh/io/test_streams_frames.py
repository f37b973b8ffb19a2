"""Frames as bytes and back."""

import pytest

from smg_mesh.io.streams.frames import MESSAGE_BYTES_MAX, decode_frame, encode_frame
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.sync.exchange import SLICE_ROWS_MAX, ExchangeError, Frame, Novel, Rows
from smg_proto import mesh_pb2
from support.exchanges import claims, opening

FRAMES = [
    opening("a", boot=2**64 - 1, full=True, digest=b"x" * 16, wire_version=7, ring_version=9),
    opening("a", boot=0),
    Rows((), last=True),
    Rows(tuple(claims(SLICE_ROWS_MAX)), last=False),
    Rows((Claim("a", 1, 2, Rank.LEFT, None, None, "b"),), last=True),
    Novel(ignorable=True),
    Novel(ignorable=False),
]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: type(frame).__name__)
def test_a_frame_comes_back_as_it_was(frame: Frame) -> None:
    assert decode_frame(encode_frame(frame)) == frame


def test_the_largest_slice_is_one_message() -> None:
    claim = Claim(
        "n" * 63, 2**64 - 1, 2**32 - 1, Rank.DEAD, Address("::1", 65535), bytes(512), "x" * 63
    )
    slice_of_rows = Rows((claim,) * SLICE_ROWS_MAX, last=False)
    assert 0.6 * MESSAGE_BYTES_MAX < len(encode_frame(slice_of_rows)) <= MESSAGE_BYTES_MAX


def test_a_frame_of_a_later_version_is_novel() -> None:
    """Field 9 is a kind that this version does not know."""
    later = mesh_pb2.ExchangeFrame(ignorable=True).SerializeToString() + b"\x4a\x03abc"
    assert decode_frame(later) == Novel(ignorable=True)
    assert decode_frame(b"\x4a\x03abc") == Novel(ignorable=False)


def test_a_field_of_a_later_version_is_passed_over() -> None:
    known = mesh_pb2.Opening(name="a", boot=1, label="test", digest=bytes(16), wire_version=1)
    later = mesh_pb2.Opening.FromString(known.SerializeToString() + b"\xa2\x06\x03abc")
    message = mesh_pb2.ExchangeFrame(opening=later)
    assert decode_frame(message.SerializeToString()) == opening("a")


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"\x12\x05ab",
        mesh_pb2.ExchangeFrame(rows=mesh_pb2.Rows(claims=b"")).SerializeToString(),
        mesh_pb2.ExchangeFrame(rows=mesh_pb2.Rows(claims=b"\xc1")).SerializeToString(),
        b"\x12\x03\x0a\x01\xff",
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ExchangeError) as raised:
        decode_frame(data)
    assert raised.value.reason == "wire"
