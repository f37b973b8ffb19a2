"""JPEG header: size, components and orientation from the segments before the first scan; bounded, pure."""

from typing import Final, NamedTuple

from smg_node.media.pixels.damage import DamagedPicture
from smg_node.media.pixels.orientation import orientation_of

SEGMENTS_MAX: Final = 2048
"""Most segments before the first scan; cameras write about ten, one of a colour profile has 64 kB."""
_EXIF_MAX: Final = 1 << 20
SCANS_MAX: Final = 100
"""Most scans: each goes over the whole picture, so that a file of 100 kB could take minutes; encoders write ten."""
_EXIF: Final = b"Exif\0\0"
_XMP: Final = b"http://ns.adobe.com/xap/1.0/\0"
_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_ALONE: Final = frozenset([0x01, *range(0xD0, 0xD9)])
_SCAN: Final = 0xDA
_END: Final = 0xD9


class JpegHeader(NamedTuple):
    """Size as it is stored, before the orientation is applied."""

    width: int
    height: int
    orientation: int


def jpeg_header(data: bytes) -> JpegHeader:
    """Return what the segments before the first scan say; DamagedPicture where they are broken or too many."""
    if data.count(b"\xff\xda") > SCANS_MAX:
        raise DamagedPicture(f"the JPEG has more than {SCANS_MAX} scans")
    at, size = 2, None
    exif, xmp = bytearray(), None
    for _ in range(SEGMENTS_MAX):
        at = data.find(b"\xff", at)
        while at >= 0 and data[at + 1 : at + 2] == b"\xff":
            at += 1
        marker = data[at + 1] if 0 <= at < len(data) - 3 else _END
        if marker in (_SCAN, _END):
            break
        if marker in _ALONE or not marker:
            at += 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if length < 2 or at + 2 + length > len(data):
            raise DamagedPicture("the JPEG ends inside its header")
        inside = at + 4
        if marker in _SIZES and length >= 8:
            height = int.from_bytes(data[inside + 1 : inside + 3], "big")
            size = (int.from_bytes(data[inside + 3 : inside + 5], "big"), height)
        elif marker == 0xE1 and data.startswith(_EXIF, inside):
            exif += data[inside + (len(_EXIF) if exif else 0) : at + 2 + length]
        elif marker == 0xE1 and data.startswith(_XMP, inside):
            xmp = data[inside + len(_XMP) : at + 2 + length]
        if len(exif) > _EXIF_MAX:
            raise DamagedPicture(f"the JPEG has more than {_EXIF_MAX} bytes of EXIF")
        at += 2 + length
    else:
        raise DamagedPicture(f"the JPEG has more than {SEGMENTS_MAX} segments in its header")
    if size is None:
        raise DamagedPicture("the JPEG says no size before its first scan")
    return JpegHeader(*size, orientation_of(bytes(exif), xmp))
