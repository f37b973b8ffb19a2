"""Headers of WebP, GIF and BMP: size and orientation; bounded, pure."""

from typing import Final, NamedTuple

from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.orientation import orientation_of

_CHUNKS_MAX: Final = 20_000
"""Most chunks of a WebP that are looked at: an animation has one a frame."""
_GIF_EXTENSION, _GIF_FRAME, _GIF_END = 0x21, 0x2C, 0x3B
_COMMENT_MAX: Final = 1 << 18
"""Most bytes of blocks before a GIF's first frame: Pillow 12 adds comments up, in time that grows with their square."""
RLE_MAX: Final = 1 << 19
"""Most bytes of a run-length coded BMP: Pillow decodes these in Python, a microsecond a run."""


class SmallHeader(NamedTuple):
    """Size as it is stored, before the orientation is applied."""

    width: int
    height: int
    orientation: int = 1


def webp_header(data: bytes) -> SmallHeader:
    """Return the size of a WebP's canvas and what its metadata chunks say."""
    width, height = _webp_size(data)
    exif = xmp = None
    at = 12
    for _ in range(_CHUNKS_MAX):
        kind, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if len(kind) < 4:
            return SmallHeader(width, height, orientation_of(exif, xmp))
        content = slice(at + 8, at + 8 + length)
        if kind == b"EXIF" and exif is None:
            exif = data[content]
        elif kind == b"XMP " and xmp is None:
            xmp = data[content]
        at += 8 + length + (length & 1)
    raise DamagedPicture(f"the WebP has more than {_CHUNKS_MAX} chunks")


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if len(data) >= 30 and kind == b"VP8X":
        return _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    if len(data) >= 30 and kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF
    if len(data) >= 25 and kind == b"VP8L" and data[20] == 0x2F:
        bits = _little(data, 21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    raise DamagedPicture("the WebP says no size")


def gif_header(data: bytes) -> SmallHeader:
    """Return the size of a GIF: its screen's, and more where the first frame goes beyond that."""
    if len(data) < 13:
        raise DamagedPicture("the GIF ends inside its header")
    width, height = _little(data, 6, 2), _little(data, 8, 2)
    at = 13 + (3 << (data[10] & 7) + 1 if data[10] & 0x80 else 0)
    end = min(len(data), at + _COMMENT_MAX)
    while at < end and data[at] != _GIF_END:
        if data[at] == _GIF_FRAME:
            left, top, columns, rows = (_little(data, at + step, 2) for step in (1, 3, 5, 7))
            return SmallHeader(max(width, left + columns), max(height, top + rows))
        if data[at] == _GIF_EXTENSION:
            at += 2
            while at < end and data[at]:
                at += 1 + data[at]
        at += 1
    raise DamagedPicture("the GIF has no frame near its beginning")


def bmp_header(data: bytes) -> SmallHeader:
    """Return the size of a BMP; rows from the top are written as a negative height."""
    size = _little(data, 14, 4)
    if size == 12:
        return SmallHeader(_little(data, 18, 2), _little(data, 20, 2))
    if len(data) < 54 or size < 40:
        raise DamagedPicture("the BMP ends inside its header")
    height = int.from_bytes(data[22:26], "little", signed=True)
    if _little(data, 30, 4) in (1, 2) and len(data) > RLE_MAX:
        raise DamagedPicture(f"a run-length coded BMP may have {RLE_MAX} bytes")
    return SmallHeader(_little(data, 18, 4), abs(height))


def _little(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")
