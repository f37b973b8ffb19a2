"""JPEG header: size, components and orientation from the segments before the first scan; bounded, pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.orientation import orientation_of

SEGMENTS_MAX: Final = 2048
"""Most segments before the first scan; cameras write about ten, one of a colour profile has 64 kB."""
_EXIF_MAX: Final = 1 << 20
SCANS_MAX: Final = 100
"""Most scans: each goes over the whole picture, so that a file of 100 kB could take minutes; encoders write ten."""
_EXIF: Final = b"Exif\0\0"
_XMP: Final = b"http://ns.adobe.com/xap/1.0/\0"
_SIZES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE: Final = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_ALONE: Final = frozenset([0x01, *range(0xD0, 0xD9)])
_NOTES: Final = 0xE1
_SCAN: Final = 0xDA
_END: Final = 0xD9


class JpegHeader(NamedTuple):
    """Size as it is stored, before the orientation is applied.

    `components` are its colours, `coefficients` how many numbers a pixel of all colours are kept until the last scan.
    """

    width: int
    height: int
    orientation: int
    components: int
    coefficients: int


def jpeg_header(data: bytes) -> JpegHeader:
    """Return what the segments before the first scan say; DamagedPicture where they are broken or too many."""
    segments = _Segments(data)
    for marker, at, length in _walk(data):
        if marker in (_SCAN, _END):
            return segments.header(at if marker == _SCAN else None)
        if marker == _NOTES or marker in _SIZES:
            segments.add(marker, at + 4, length - 2)
    raise DamagedPicture(f"the JPEG has more than {SEGMENTS_MAX} segments in its header")


def has_scan(data: bytes) -> bool:
    """Whether the first bytes of a JPEG reach to its first scan; DamagedPicture as for `jpeg_header`."""
    return any(marker == _SCAN for marker, _, _ in _walk(data))


def _walk(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield marker, place and length of each segment, the last one the first scan's or the end's; no more than allowed."""
    at = 2
    for _ in range(SEGMENTS_MAX):
        at = data.find(b"\xff", at)
        while at >= 0 and data[at + 1 : at + 2] == b"\xff":
            at += 1
        marker = data[at + 1] if 0 <= at < len(data) - 4 else _END
        if marker in (_SCAN, _END):
            yield marker, at, 0
            return
        if marker in _ALONE or not marker:
            at += 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if length < 2 or at + 2 + length > len(data):
            raise DamagedPicture("the JPEG ends inside its header")
        yield marker, at, length
        at += 2 + length


class _Segments:
    """What the segments have said so far: the last size, all of EXIF, the last XMP packet."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._size: tuple[int, int] | None = None
        self._components = 0
        self._progressive = False
        self._samples = 0
        self._exif = bytearray()
        self._xmp: bytes | None = None

    def add(self, marker: int, at: int, length: int) -> None:
        """Take a segment's content of `length` bytes, at `at`."""
        data = self._data
        if marker in _SIZES and length >= 6:
            height = int.from_bytes(data[at + 1 : at + 3], "big")
            self._size = (int.from_bytes(data[at + 3 : at + 5], "big"), height)
            self._components, self._progressive = data[at + 5], marker in _PROGRESSIVE
            self._samples = _samples(data[at + 6 : at + length])
        elif marker == _NOTES and data.startswith(_EXIF, at):
            self._exif += data[at + (len(_EXIF) if self._exif else 0) : at + length]
            if len(self._exif) > _EXIF_MAX:
                raise DamagedPicture(f"the JPEG has more than {_EXIF_MAX} bytes of EXIF")
        elif marker == _NOTES and data.startswith(_XMP, at):
            self._xmp = data[at + len(_XMP) : at + length]

    def header(self, scan: int | None) -> JpegHeader:
        """Return what was said, at the first scan or at the end."""
        if self._size is None:
            raise DamagedPicture("the JPEG says no size before its first scan")
        # One scan of all components is decoded as it comes, and nothing behind it is looked at.
        several = scan is None or self._data[scan + 4] != self._components
        if (self._progressive or several) and self._data.count(b"\xff\xda") > SCANS_MAX:
            raise DamagedPicture(f"the JPEG has more than {SCANS_MAX} scans")
        kept = self._samples if self._progressive or several else 0
        orientation = orientation_of(bytes(self._exif), self._xmp)
        return JpegHeader(*self._size, orientation, self._components, kept)


def _samples(table: bytes) -> int:
    """Return how many numbers there are for a pixel, rounded up, by the sampling of each colour."""
    factors = [(each >> 4, each & 15) for each in table[1::3]]
    most = max([wide for wide, _ in factors], default=0) * max(
        [high for _, high in factors], default=0
    )
    return -(-sum([wide * high for wide, high in factors]) // most) if most else len(factors)
