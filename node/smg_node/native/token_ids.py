"""Token ids as the varints of a packed protobuf field: the prompt of a GenerateRequest."""

import sys
from array import array
from typing import Final, TypeAlias

Ids: TypeAlias = "array[int]"

COMPILED: Final = not __file__.endswith((".py", ".pyc"))
"""Whether this module, and with it all of this room, runs as machine code."""

_BYTE_BY_BYTE: Final = COMPILED and sys.byteorder == "little"
# Two groups of seven bits are a piece: where Python runs, joining pieces takes a fifth of appending bytes.
_BITS: Final = 14
_LOW: Final = (1 << _BITS) - 1
_TWO_PIECES: Final = 1 << 2 * _BITS


def pack_ids(ids: Ids) -> bytes:
    """Return `ids` (uint32) as the inside of a packed repeated uint32: varints, shortest form, in order.

    8,000 ids take 20 us compiled and 700 as Python, where protobuf takes 260.
    """
    assert ids.itemsize == 4
    return _bytes_of(ids.tobytes()) if _BYTE_BY_BYTE else _joined(ids)


def _bytes_of(data: bytes) -> bytes:
    """Return the varints of little-endian numbers of four bytes, byte by byte."""
    size = len(data)
    out = bytearray(size // 4 * 5)
    at = end = 0
    while at < size:
        # In steps, so that no intermediate of the compiled form is wider than an id.
        one = data[at + 3]
        one = one << 8 | data[at + 2]
        one = one << 8 | data[at + 1]
        one = one << 8 | data[at]
        at += 4
        while one > 0x7F:
            out[end] = one & 0x7F | 0x80
            end += 1
            one >>= 7
        out[end] = one
        end += 1
    return bytes(out[:end])


def _joined(ids: Ids) -> bytes:
    """Return the varints of `ids`, out of pieces that are there."""
    whole, begun = _WHOLE, _BEGUN
    return b"".join(
        [
            whole[one]
            if one <= _LOW
            else begun[one & _LOW] + (whole[one >> _BITS] if one < _TWO_PIECES else _far(one))
            for one in ids
        ]
    )


def _far(one: int) -> bytes:
    """Return what follows the first two groups of a number that takes five."""
    return varint(one >> _BITS)


def varint(value: int) -> bytes:
    """Return one number, not negative, in groups of seven bits, lowest first; all but the last have the top bit set."""
    if value <= 0x7F:
        return _ONE[value]
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


_ONE: Final = tuple(bytes((value,)) for value in range(0x80))
_WHOLE: Final = () if _BYTE_BY_BYTE else tuple(varint(low) for low in range(_LOW + 1))
_BEGUN: Final = (
    ()
    if _BYTE_BY_BYTE
    else tuple(bytes((low & 0x7F | 0x80, low >> 7 | 0x80)) for low in range(_LOW + 1))
)
