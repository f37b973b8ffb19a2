"""Packed headers: the examples of RFC 7541, every way to write them, and text of any kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.engines.transport.h2.protocol.frames import BrokenError
from smg_node.engines.transport.h2.protocol.hpack import (
    HEADERS_MAX_BYTES,
    STATIC,
    literal,
    read_block,
)
from smg_node.engines.transport.h2.protocol.huffman import LENGTHS, HuffmanError, codes, decoded
from support.tools.example_counts import example_count


def coded(text: bytes) -> bytes:
    words = {symbol: (length, code) for (length, code), symbol in codes().items()}
    bits = "".join(f"{words[byte][1]:0{words[byte][0]}b}" for byte in text)
    bits += "1" * (-len(bits) % 8)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))


@pytest.mark.parametrize(
    ("packed", "headers"),
    [
        # C.2.1 to C.2.4, C.4.1, and the first lines of C.6.1.
        (
            "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
            [(b"custom-key", b"custom-header")],
        ),
        ("040c2f73616d706c652f70617468", [(b":path", b"/sample/path")]),
        ("100870617373776f726406736563726574", [(b"password", b"secret")]),
        ("82", [(b":method", b"GET")]),
        (
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            [
                (b":method", b"GET"),
                (b":scheme", b"http"),
                (b":path", b"/"),
                (b":authority", b"www.example.com"),
            ],
        ),
        ("4882640258", None),
        ("488264025885aec3771a4b", [(b":status", b"302"), (b"cache-control", b"private")]),
        ("2088", [(b":status", b"200")]),
        ("", []),
    ],
)
def test_the_examples_of_the_standard(
    packed: str, headers: list[tuple[bytes, bytes]] | None
) -> None:
    if headers is None:
        with pytest.raises(BrokenError):
            read_block(bytes.fromhex(packed))
    else:
        assert read_block(bytes.fromhex(packed)) == headers


def test_the_static_table_is_complete() -> None:
    assert len(STATIC) == 61
    assert (STATIC[0], STATIC[7], STATIC[60]) == (
        (b":authority", b""),
        (b":status", b"200"),
        (b"www-authenticate", b""),
    )


def test_the_code_is_a_complete_prefix_code() -> None:
    assert len(LENGTHS) == 257
    assert sum(2.0**-length for length in LENGTHS) == 1.0
    assert len(codes()) == 257


@given(st.binary(max_size=60))
@settings(max_examples=example_count(100), deadline=None)
def test_every_text_survives_its_code(text: bytes) -> None:
    assert decoded(coded(text)) == text


@given(st.binary(max_size=40))
@settings(max_examples=example_count(100), deadline=None)
def test_any_bits_are_text_or_an_error(raw: bytes) -> None:
    try:
        text = decoded(raw)
    except HuffmanError:
        return
    assert coded(text) == raw


@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff", b"\x00", b"\xff", b"\x1f\xff"])
def test_padding_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(HuffmanError):
        decoded(raw)


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=200), st.binary(max_size=400)), max_size=5)
)
@settings(max_examples=60, deadline=None)
def test_literals_are_read_as_written(headers: list[tuple[bytes, bytes]]) -> None:
    assert read_block(b"".join([literal(*one) for one in headers])) == headers


@given(st.binary(max_size=60))
@settings(max_examples=example_count(200), deadline=None)
def test_any_block_is_headers_or_an_error(block: bytes) -> None:
    try:
        read = read_block(block)
    except BrokenError:
        return
    assert all(isinstance(text, bytes) for entry in read for text in entry)


def test_headers_are_bounded_also_where_they_grow_by_reading() -> None:
    # Each byte is a header of 38: more by far than was sent.
    with pytest.raises(BrokenError, match="too many"):
        read_block(b"\x90" * HEADERS_MAX_BYTES)
