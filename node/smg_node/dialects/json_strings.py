"""JSON strings: decodes a long string in parts, because a decoder does nothing else meanwhile. Pure.

A part ends between two characters: not within the bytes of one, not within an escape, and not between
the two escapes of a surrogate pair. Mostly any byte will do that has no backslash shortly before it.
"""

import re
from typing import Any, Final

import msgspec

from smg_node.core.cooperative_steps import Steps

LONG_BYTES: Final = 131_072
"""A longer string is decoded in parts of so many bytes, which take a tenth of a millisecond to a whole one."""
_ESCAPE_MAX_BYTES: Final = 12
"""A surrogate pair: the longest unit that may not be cut."""
_HALF: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}")
_HALF_BYTES: Final = 6
_PART_MIN: Final = 32
_OFFSET: Final = re.compile(r"\(byte (\d+)\)")
_SPARE: Final = b" " * _ESCAPE_MAX_BYTES
"""Behind a part, because the decoder calls half a pair at the very end cut off."""
_decode: Final = msgspec.json.Decoder(str).decode


def string_in_steps(body: bytes, start: int, end: int) -> Steps[str]:
    """Return the string that `body[start:end]`, with its quotes, spells, in steps of about a part.

    `msgspec.DecodeError` with its place in the body, and UnicodeDecodeError, where it is none.
    """
    text = ""
    at, last = start + 1, end - 1
    while at < last:
        cut = last if last - at <= LONG_BYTES else _border(body, at, at + LONG_BYTES)
        # Grows where it is: one string joined of all parts would be one long step again.
        text += _part(body, at, cut)
        at = cut
        yield LONG_BYTES
    return text


def _border(body: bytes, at: int, near: int) -> int:
    """Return where a part that begins at `at` ends, at or at most 22 bytes before `near`."""
    assert near - at >= _PART_MIN, "a part holds more than what may not be cut"
    cut = near
    while body[cut] & 0xC0 == 0x80:
        cut -= 1
    escape = body.rfind(b"\\", cut - _ESCAPE_MAX_BYTES, cut)
    if escape < 0:
        return cut
    cut = _escape_start(body, at, escape)
    half = cut - _HALF_BYTES
    # What may be the second half of a pair stays with the first one.
    if half > at and _HALF.match(body, half, cut) and _escape_start(body, at, half) == half:
        return half
    return cut


def _escape_start(body: bytes, at: int, backslash: int) -> int:
    """Return where the escape begins that this backslash is part of: there, or one before."""
    before = body[at:backslash]
    return backslash - (len(before) - len(before.rstrip(b"\\"))) % 2


def _part(body: bytes, at: int, cut: int) -> Any:
    try:
        return _decode(b'"%b"%b' % (body[at:cut], _SPARE))
    except msgspec.DecodeError as error:
        words = _OFFSET.sub(lambda found: f"(byte {int(found[1]) + at - 1})", str(error))
        raise msgspec.DecodeError(words) from error
