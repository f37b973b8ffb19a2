"""Huffman decoder of HTTP/2 header strings (RFC 7541, appendix B), four bits a step. Pure.

The code is canonical: the lengths of its words say everything. Reading goes four bits a step along a
table that is made with the first coded text, because 16 KB bit by bit would stop a loop for 30 ms.
"""

from functools import cache
from typing import Final, TypeAlias

# Code lengths of the symbols 0..255 and of the end marker.
LENGTHS: Final = (
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
)  # fmt: skip
_END: Final = 256

_Step: TypeAlias = tuple[int, bytes]
"""Where four bits lead: the next place (-1: nowhere), and what they complete."""


class HuffmanError(ValueError):
    """Bits that are no text."""


def decoded(raw: bytes) -> bytes:
    """Return the text behind a Huffman-coded string; HuffmanError if there is none."""
    steps, may_end = _table()
    place = 0
    out: list[bytes] = []
    for byte in raw:
        place, said = steps[place << 4 | byte >> 4]
        if place < 0:
            raise HuffmanError("no such code")
        out.append(said)
        place, said = steps[place << 4 | byte & 15]
        if place < 0:
            raise HuffmanError("no such code")
        out.append(said)
    if place not in may_end:
        raise HuffmanError("wrong padding")
    return b"".join(out)


def codes() -> dict[tuple[int, int], int]:
    """Return the symbol of every (length, code)."""
    found: dict[tuple[int, int], int] = {}
    code = length = 0
    for wanted, symbol in sorted((length, symbol) for symbol, length in enumerate(LENGTHS)):
        code <<= wanted - length
        length = wanted
        found[length, code] = symbol
        code += 1
    return found


@cache
def _table() -> tuple[list[_Step], frozenset[int]]:
    """Return every step of every place, and the places at which a text may end."""
    known = codes()
    # A place is the bits of an unfinished word; the places are its proper prefixes.
    prefixes = {(0, 0)}
    for length, code in known:
        prefixes |= {(kept, code >> (length - kept)) for kept in range(length)}
    places = {prefix: number for number, prefix in enumerate(sorted(prefixes))}
    steps: list[_Step] = []
    for start in sorted(prefixes):
        steps += [_step(start, four, known, places) for four in range(16)]
    # Padding is the beginning of the end marker, all ones, and shorter than a byte.
    may_end = frozenset(places[length, (1 << length) - 1] for length in range(8))
    return steps, may_end


def _step(
    start: tuple[int, int],
    four: int,
    known: dict[tuple[int, int], int],
    places: dict[tuple[int, int], int],
) -> _Step:
    length, code = start
    said = bytearray()
    for shift in (3, 2, 1, 0):
        length, code = length + 1, code << 1 | four >> shift & 1
        symbol = known.get((length, code))
        if symbol == _END:
            return -1, b""
        if symbol is not None:
            said.append(symbol)
            length = code = 0
    return places[length, code], bytes(said)
