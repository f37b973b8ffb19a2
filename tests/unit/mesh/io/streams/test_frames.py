"""Frames as bytes and back."""

import tracemalloc
import zlib
from random import Random

import msgspec
import pytest

from smg_mesh.io.streams.compression import PACK_ABOVE_BYTES
from smg_mesh.io.streams.frames import (
    HOLDINGS_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    decode_frame,
    encode_frame,
)
from smg_mesh.swim.messages import Address, Claim, Rank
from smg_mesh.sync.exchange.exchange_frames import (
    CHUNK_BYTES_MAX,
    EPOCH_MAX,
    HOLDINGS_MAX,
    REQUEST_PIECES_MAX,
    SUMMARY_BYTES_MAX,
    Asked,
    Declined,
    Done,
    Holdings,
    Request,
    Update,
)
from smg_mesh.sync.exchange.exchange_machine import (
    SLICE_ROWS_MAX,
    ExchangeError,
    Frame,
    Novel,
    Rows,
)
from smg_mesh.sync.exchange.piece_interface import PieceState
from smg_proto import mesh_pb2
from support.state.exchanges import claims, opening

NOISE = Random(1).randbytes(2 * SUMMARY_BYTES_MAX)
"""Cannot be packed."""

FRAMES = [
    opening("a", boot=2**64 - 1, full=True, digest=b"x" * 16, wire_version=7, ring_version=9),
    opening("a", boot=0),
    opening("a", pieces=True, stale=True, history=b"h" * 64, held=False),
    Rows((), last=True),
    Rows(tuple(claims(SLICE_ROWS_MAX)), last=False),
    Rows((Claim("a", 1, 2, Rank.LEFT, None, None, "b"),), last=True),
    Holdings((), last=True),
    Holdings((PieceState("settings/1", 7, b"d" * 16, 1 << 40), PieceState("é", 0, b"", -1)), False),
    Request((Asked("settings/1", EPOCH_MAX, b""), Asked("b", 0, bytes(SUMMARY_BYTES_MAX)))),
    Update("settings/1", 3, b"summary", b"chunk", last=False),
    Update("", 0, b"s" * SUMMARY_BYTES_MAX, NOISE[:CHUNK_BYTES_MAX], last=True),
    Declined("settings/1", 9),
    Done(),
    Done(refused=True),
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
    """Field 9 is a kind that this version does not know; each new one moves it."""
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


# ── Pieces ───────────────────────────────────────────────────────────────────


def test_the_largest_frames_about_pieces_are_one_message() -> None:
    piece = PieceState("n" * 64, EPOCH_MAX, bytes(16), 1 << 62)
    assert len(encode_frame(Holdings((piece,) * HOLDINGS_MAX, last=False))) < HOLDINGS_BYTES_MAX
    half = NOISE[: SUMMARY_BYTES_MAX // 8]
    asked = tuple(Asked("n" * 64, EPOCH_MAX, half) for _ in range(REQUEST_PIECES_MAX - 1))
    last = Asked("n", 1, NOISE[:SUMMARY_BYTES_MAX])
    assert len(encode_frame(Request((*asked, last)))) < MESSAGE_BYTES_MAX
    update = Update("n" * 64, 1, NOISE[:SUMMARY_BYTES_MAX], NOISE[:CHUNK_BYTES_MAX], last=True)
    assert len(encode_frame(update)) < MESSAGE_BYTES_MAX / 4


def test_many_bytes_are_packed_and_few_are_not() -> None:
    records = b"".join(b"grpc://10.0.%d.%d:8000 vllm regular" % (n // 256, n) for n in range(256))
    small, large = (
        Update("a", 1, b"", records[:PACK_ABOVE_BYTES], last=True),
        Update("a", 1, b"", records, last=True),
    )
    assert len(encode_frame(small)) > PACK_ABOVE_BYTES
    assert len(encode_frame(large)) < len(records) / 5
    noise = Update("a", 1, b"", NOISE[:CHUNK_BYTES_MAX], last=True)
    assert CHUNK_BYTES_MAX < len(encode_frame(noise)) < CHUNK_BYTES_MAX + 100


def packed(content: bytes, plain_bytes: int, *, summary: bool = False) -> bytes:
    """Return an update, or a request, whose packed bytes are these."""
    given = mesh_pb2.Packed(content=content, plain_bytes=plain_bytes)
    if summary:
        asked = mesh_pb2.Asked(name="a", epoch=1, summary=given)
        return mesh_pb2.ExchangeFrame(request=mesh_pb2.Request(pieces=[asked])).SerializeToString()
    update = mesh_pb2.Update(name="a", epoch=1, chunk=given, last=True)
    return mesh_pb2.ExchangeFrame(update=update).SerializeToString()


BOMB = zlib.compress(bytes(500_000_000 // 8), 9)
"""60 MB in 60 KB."""


@pytest.mark.parametrize("summary", [False, True])
@pytest.mark.parametrize(
    ("content", "plain_bytes", "reason"),
    [
        (BOMB, CHUNK_BYTES_MAX, "wire"),
        (BOMB, 1, "wire"),
        (BOMB, len(BOMB), "wire"),
        (BOMB, 500_000_000 // 8, "size"),
        (zlib.compress(bytes(1000)), 999, "wire"),
        (zlib.compress(bytes(1000)), 1001, "wire"),
        (zlib.compress(bytes(1000))[:-1], 1000, "wire"),
        (zlib.compress(bytes(1000)) + b"x", 1000, "wire"),
        (zlib.compress(b""), 1, "wire"),
        (b"", 1, "wire"),
        (b"no zlib", 10, "wire"),
        (bytes(SUMMARY_BYTES_MAX + 1), 0, "size"),
        (zlib.compress(NOISE[: SUMMARY_BYTES_MAX + 1]), SUMMARY_BYTES_MAX + 1, "size"),
    ],
)
def test_packed_bytes_that_are_not_what_they_say_are_refused(
    content: bytes, plain_bytes: int, reason: str, summary: bool
) -> None:
    with pytest.raises(ExchangeError) as raised:
        decode_frame(packed(content, plain_bytes, summary=summary))
    assert raised.value.reason == reason


def test_a_bomb_is_never_unpacked_further_than_it_may_go() -> None:
    data = packed(BOMB, CHUNK_BYTES_MAX)
    tracemalloc.start()
    try:
        with pytest.raises(ExchangeError):
            decode_frame(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (b"", "wire"),
        (b"\xc1", "wire"),
        (msgspec.msgpack.encode([["a", 1, b"d"]]), "wire"),
        (msgspec.msgpack.encode([["a", "1", b"d", 1]]), "wire"),
        (msgspec.msgpack.encode([["a", 1.5, b"d", 1]]), "wire"),
        (b"\x91\x94\xa1\xff\x01\xc4\x01d\x01", "wire"),
        (bytes(HOLDINGS_BYTES_MAX + 1), "size"),
    ],
)
def test_a_list_of_pieces_that_is_none_is_refused(listed: bytes, reason: str) -> None:
    message = mesh_pb2.ExchangeFrame(holdings=mesh_pb2.Holdings(pieces=listed))
    with pytest.raises(ExchangeError) as raised:
        decode_frame(message.SerializeToString())
    assert raised.value.reason == reason


def test_a_piece_of_which_a_later_version_says_more_is_read() -> None:
    listed = msgspec.msgpack.encode([["a", 1, bytes(16), 5, "more"]])
    message = mesh_pb2.ExchangeFrame(holdings=mesh_pb2.Holdings(pieces=listed, last=True))
    assert decode_frame(message.SerializeToString()) == Holdings(
        (PieceState("a", 1, bytes(16), 5),), last=True
    )


def test_too_many_pieces_asked_for_are_refused_before_they_are_read() -> None:
    asked = [mesh_pb2.Asked(name="a")] * (REQUEST_PIECES_MAX + 1)
    message = mesh_pb2.ExchangeFrame(request=mesh_pb2.Request(pieces=asked))
    with pytest.raises(ExchangeError) as raised:
        decode_frame(message.SerializeToString())
    assert raised.value.reason == "size"


def test_an_opening_of_an_older_node_says_nothing_of_pieces() -> None:
    old = mesh_pb2.Opening(name="a", boot=1, label="test", digest=bytes(16), wire_version=1)
    frame = decode_frame(mesh_pb2.ExchangeFrame(opening=old).SerializeToString())
    assert frame == opening("a", pieces=False, stale=False, history=b"", held=True)
