"""AWS frames: read as botocore reads them, at any cut, and never anything else than frames or our error."""

import struct
from collections.abc import Iterable
from contextlib import nullcontext
from random import Random
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.dialects.converse.aws_frames import (
    HEADERS_MAX_BYTES,
    PAYLOAD_MAX_BYTES,
    Frame,
    FrameReader,
    encode_frame,
    event_frame,
)
from support.providers.converse_answers import Header, raw_frame, sized
from support.providers.converse_judge import frames_of

TEXT = "abc:-é\u2028😀 "


def drawn_header(rng: Random, name: str) -> Header:
    kind = rng.randrange(10)
    size = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}.get(kind)
    if kind == 7:
        return name, kind, sized("".join(rng.choices(TEXT, k=rng.randrange(9))).encode())
    if size is None:
        return name, kind, sized(rng.randbytes(rng.randrange(9)))
    return name, kind, rng.randbytes(size)


def drawn_frame(rng: Random) -> bytes:
    if rng.random() < 0.3:
        return event_frame("contentBlockDelta", rng.randbytes(rng.randrange(200)))
    names = {"".join(rng.choices(TEXT, k=rng.randrange(6))) for _ in range(rng.randrange(5))}
    return raw_frame(
        [drawn_header(rng, name) for name in sorted(names)], rng.randbytes(rng.randrange(300))
    )


def cut(rng: Random, data: bytes) -> list[bytes]:
    pieces = []
    while data:
        size = rng.choice((1, 2, 3, 11, 12, 13, 60, 1_000))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def read(pieces: Iterable[bytes]) -> list[Frame]:
    reader = FrameReader()
    found = [frame for piece in pieces for frame in reader.feed(piece)]
    reader.finish()
    return found


def check_like_botocore(seed: int, frames: int) -> None:
    rng = Random(seed)
    while frames > 0:
        batch = rng.randrange(1, 30)
        data = b"".join(drawn_frame(rng) for _ in range(batch))
        expected = frames_of(data)
        assert len(expected) == batch
        assert [(dict(one.headers), one.payload) for one in read(cut(rng, data))] == expected
        frames -= batch


def test_frames_are_those_that_botocore_reads_at_any_cut() -> None:
    check_like_botocore(1, 400)


@pytest.mark.long
def test_ten_thousand_frames_are_those_that_botocore_reads() -> None:
    check_like_botocore(2, 10_000)


def test_a_frame_is_read_as_soon_as_it_is_whole() -> None:
    data = event_frame("a", b"1") + event_frame("b", b"22")
    border = len(event_frame("a", b"1"))
    reader = FrameReader()
    seen = [at + 1 for at in range(len(data)) if list(reader.feed(data[at : at + 1]))]
    assert seen == [border, len(data)]


def test_what_is_written_is_read_again() -> None:
    headers: dict[str, bool | int | str | bytes] = {
        "yes": True,
        "no": False,
        "number": -5,
        "text": "é😀",
        "bytes": b"\x00\xff",
        "": "",
    }
    data = encode_frame(headers, b"payload")
    assert read([data]) == [(headers, b"payload")]
    assert frames_of(data) == [(headers, b"payload")]


def test_a_stream_that_is_cut_says_so_wherever_it_is_cut() -> None:
    frame = event_frame("metadata", b"{}")
    data = frame * 2
    for size in range(len(data) + 1):
        reader = FrameReader()
        found = list(reader.feed(data[:size]))
        assert len(found) == size // len(frame)
        if size % len(frame) == 0:
            reader.finish()
            continue
        with pytest.raises(SmgError) as raised:
            reader.finish()
        assert raised.value.message == "the vendor's stream ended in the middle of a frame"
        assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


def test_any_changed_byte_is_an_error_behind_the_frames_before_it() -> None:
    first, second = event_frame("a", b"1"), event_frame("b", b'{"x":"yz"}')
    for at in range(len(second)):
        for flip in (0x01, 0x80):
            harmed = bytearray(second)
            harmed[at] ^= flip
            frames = FrameReader().feed(first + bytes(harmed) + bytes(64))
            assert next(frames).payload == b"1"
            with pytest.raises(SmgError) as raised:
                next(frames)
            assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


HEADER = b"\x01a\x07\x00\x01b"


@pytest.mark.parametrize(
    "headers",
    [
        HEADER[:-1],
        HEADER[:3],
        HEADER[:2],
        b"\x05a",
        b"\x01a\x0a",
        b"\x01a\x04\x00",
        b"\x01a\x09" + b"0" * 15,
        b"\x01\xff\x00",
        b"\x01a\x07\x00\x01\xff",
        HEADER + HEADER,
    ],
)
def test_headers_that_are_none_are_an_error(headers: bytes) -> None:
    prelude = struct.pack("!II", 16 + len(headers), len(headers))
    with pytest.raises(SmgError) as raised:
        read([_sealed(prelude, headers)])
    assert raised.value.kind is ErrorKind.UPSTREAM_FAILED


def _sealed(lengths: bytes, rest: bytes) -> bytes:
    whole = lengths + struct.pack("!I", crc32(lengths)) + rest
    return whole + struct.pack("!I", crc32(whole))


@pytest.mark.parametrize(
    ("total", "of_headers"),
    [
        (16 + HEADERS_MAX_BYTES + 1, HEADERS_MAX_BYTES + 1),
        (16 + PAYLOAD_MAX_BYTES + 1, 0),
        (2**32 - 1, 0),
        (15, 0),
        (0, 0),
        (16, 1),
        (16, 2**32 - 1),
    ],
)
def test_lengths_that_no_frame_has_are_an_error_before_anything_is_awaited(
    total: int, of_headers: int
) -> None:
    reader = FrameReader()
    with pytest.raises(SmgError):
        list(reader.feed(_sealed(struct.pack("!II", total, of_headers), b"")[:12]))


@pytest.mark.parametrize("size", [HEADERS_MAX_BYTES, HEADERS_MAX_BYTES + 1])
def test_the_largest_headers_are_those_that_botocore_takes(size: int) -> None:
    value = sized(b"v" * 60_000)
    headers: list[Header] = [("a", 6, value), ("b", 6, value)]
    rest = size - 2 * (3 + len(value)) - 5
    data = raw_frame([*headers, ("c", 6, sized(b"v" * rest))], b"")
    taken = EventStreamBuffer()
    taken.add_data(data)
    if size > HEADERS_MAX_BYTES:
        with pytest.raises(SmgError):
            read([data])
        with pytest.raises(Exception, match="exceeded the maximum"):
            next(taken)
    else:
        assert [dict(frame.headers) for frame in read([data])] == [next(taken).headers]


@given(st.lists(st.binary(max_size=80), max_size=4))
def test_garbage_is_frames_or_our_error(pieces: list[bytes]) -> None:
    # Nobody draws the checksum of a frame: what is not empty is none.
    with pytest.raises(SmgError) if any(pieces) else nullcontext():
        read(pieces)


def test_a_large_frame_is_not_copied_for_every_piece() -> None:
    payload = bytes(range(256)) * 4_096
    data = event_frame("chunk", payload)
    pieces = (data[at : at + 64] for at in range(0, len(data), 64))
    assert [frame.payload for frame in read(pieces)] == [payload]
