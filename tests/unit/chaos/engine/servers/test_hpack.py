"""Headers are read as RFC 7541 writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.engine.servers.hpack import HeaderReader, HpackError, huffman, huffman_codes, literal

# Appendix C of the RFC: requests on one connection, plain and Huffman-coded.
PLAIN = (
    "828684410f7777772e6578616d706c652e636f6d",
    "828684be58086e6f2d6361636865",
    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
)
CODED = (
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
)
FIRST = (
    (b":method", b"GET"),
    (b":scheme", b"http"),
    (b":path", b"/"),
    (b":authority", b"www.example.com"),
)
SECOND = (*FIRST, (b"cache-control", b"no-cache"))
THIRD = (
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":path", b"/index.html"),
    (b":authority", b"www.example.com"),
    (b"custom-key", b"custom-value"),
)


@pytest.mark.parametrize("blocks", [PLAIN, CODED], ids=["plain", "huffman"])
def test_the_examples_of_the_standard_are_read(blocks: tuple[str, ...]) -> None:
    reader = HeaderReader()
    assert [reader.read(bytes.fromhex(block)) for block in blocks] == [FIRST, SECOND, THIRD]


def test_the_code_is_complete_and_unambiguous() -> None:
    codes = huffman_codes()
    assert len(codes) == 257
    assert sum(2 ** (30 - length) for length, _ in codes) == 2**30


@given(st.binary(max_size=100))
def test_any_text_survives_its_coding(text: bytes) -> None:
    symbols = {symbol: (length, code) for (length, code), symbol in huffman_codes().items()}
    bits = "".join(format(symbols[byte][1], f"0{symbols[byte][0]}b") for byte in text)
    bits += "1" * (-len(bits) % 8)
    coded = bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
    assert huffman(coded) == text


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=300), st.binary(max_size=300))))
def test_literals_are_read_back(headers: list[tuple[bytes, bytes]]) -> None:
    block = b"".join(literal(name, value) for name, value in headers)
    assert HeaderReader().read(block) == tuple(headers)


def test_a_block_that_changed_the_table_is_not_remembered() -> None:
    reader = HeaderReader()
    add = bytes.fromhex("400161") + b"\x01b"  # a: b, to be remembered by the table
    assert reader.read(add) == ((b"a", b"b"),)
    assert reader.read(b"\xbe") == ((b"a", b"b"),)
    assert reader.read(bytes.fromhex("400163") + b"\x01d") == ((b"c", b"d"),)
    assert reader.read(b"\xbe\xbf") == ((b"c", b"d"), (b"a", b"b"))


def test_the_table_forgets_the_oldest_first_and_shrinks_when_told() -> None:
    reader = HeaderReader()
    for name in (b"a", b"b"):
        reader.read(b"\x40\x01" + name + b"\x7f\xd1\x0e" + b"x" * 2000)  # two of 2033 bytes fit
    assert reader.read(b"\xbf")[0][0] == b"a"
    reader.read(b"\x40\x01c\x01y")
    with pytest.raises(HpackError):
        reader.read(b"\xc0")  # a is gone
    assert reader.read(b"\x20" + b"\x82") == ((b":method", b"GET"),)
    with pytest.raises(HpackError):
        reader.read(b"\xbe")  # and so is everything else


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_garbage_is_headers_or_an_error(blocks: list[bytes]) -> None:
    reader = HeaderReader()
    for block in blocks:
        try:
            reader.read(block)
        except HpackError:
            return
