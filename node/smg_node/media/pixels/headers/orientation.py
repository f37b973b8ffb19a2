"""EXIF orientation of a picture, read from its metadata without reading the rest of them; pure.

Pillow reads all of a directory to learn this one number, and before version 13, 64 kB of metadata made it copy 300 MB,
because many entries may claim the same bytes. Here an entry costs twelve bytes whatever it claims. The result is
Pillow's, which is also the engines': the value of tag 274 of the first directory, and where that is missing, the first
`tiff:Orientation` of the XMP packet.
"""

import re
from typing import Final, Literal

TAG: Final = 0x0112
_ENTRIES_MAX: Final = 4096
_XMP: Final = re.compile(rb'tiff:Orientation(="|>)([0-9])')
_INTEGERS: Final = {1: 1, 3: 2, 4: 4}
"""TIFF's types of unsigned integers to their width in bytes."""
SWAPPED_FROM: Final = 5
"""From here to 8 width and height change places."""


def orientation_of(exif: bytes | None, xmp: bytes | None) -> int:
    """Return the orientation from 1 (as it is) to 8; 1 where the metadata say nothing that can be understood."""
    found = _of_directory(exif) if exif else None
    if found is None and xmp:
        match = _XMP.search(xmp)
        found = int(match[2]) if match else None
    return found if found is not None and 1 <= found <= 8 else 1


def _of_directory(exif: bytes) -> int | None:
    """Return the value of the tag, None where the directory does not have it."""
    data = exif
    while data.startswith(b"Exif\0\0"):
        data = data[6:]
    if data[:2] not in (b"II", b"MM") or len(data) < 8:
        return None
    order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"

    def number(at: int, width: int) -> int:
        return int.from_bytes(data[at : at + width], order)

    start = number(4, 4)
    value: int | None = None
    count = min(number(start, 2), _ENTRIES_MAX)
    for at in range(start + 2, min(start + 2 + 12 * count, len(data) - 11), 12):
        if number(at, 2) != TAG:
            continue
        width = _INTEGERS.get(number(at + 2, 2))
        length = number(at + 4, 4)
        if width is None or not length:
            value = 0
        elif width * length <= 4:
            value = number(at + 8, width)
        else:
            value = number(number(at + 8, 4), width)
    return value
