"""PNG header: size and orientation from the chunks of the whole file; bounded, pure."""

import zlib
from typing import Final, NamedTuple

from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.orientation import orientation_of

_SIGNATURE: Final = 8
_CHUNKS: Final = 4096
_CHUNK_BYTES: Final = 1024
"""More chunks than 4096 and one for each kB are not pictures but work: each costs microseconds of Python in Pillow."""
TEXT_MAX: Final = 1 << 20
"""Most bytes of a text once unpacked; Pillow's own bound."""
_EXIF_TEXT: Final = b"Raw profile type exif"
_XMP_TEXT: Final = b"XML:com.adobe.xmp"
_FRAMES_MAX: Final = 0x80000000


class PngHeader(NamedTuple):
    """Size as it is stored, before the orientation is applied."""

    width: int
    height: int
    orientation: int


class _Notes:
    """Metadata chunks that say the orientation: the last of each kind counts."""

    def __init__(self) -> None:
        self.exif: bytes | None = None
        self.profile: bytes | None = None
        self.xmp: bytes | None = None

    def add(self, kind: bytes, content: bytes) -> None:
        if kind == b"eXIf":
            self.exif = content
        elif kind in (b"tEXt", b"zTXt", b"iTXt"):
            key, _, rest = content.partition(b"\0")
            if key == _EXIF_TEXT:
                self.profile = _profile(_text(kind, rest))
            elif key == _XMP_TEXT:
                self.xmp = _text(kind, rest)

    def orientation(self) -> int:
        return orientation_of(self.exif if self.exif is not None else self.profile, self.xmp)


def png_header(data: bytes) -> PngHeader:
    """Return what the chunks say; DamagedPicture where they are broken, or so many that they are an attack."""
    if data[12:16] != b"IHDR" or len(data) < _SIGNATURE + 25:
        raise DamagedPicture("the PNG does not begin with its header")
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    notes, at, animated, begun = _Notes(), _SIGNATURE, False, False
    for _ in range(_CHUNKS + len(data) // _CHUNK_BYTES):
        length = int.from_bytes(data[at : at + 4], "big")
        kind = data[at + 4 : at + 8]
        if len(kind) < 4 or kind == b"IEND" or (kind == b"fcTL" and animated and begun):
            return PngHeader(width, height, notes.orientation())
        if kind == b"acTL":
            frames = int.from_bytes(data[at + 8 : at + 12], "big")
            if animated or not 0 < frames <= _FRAMES_MAX:
                raise DamagedPicture("the PNG says a number of frames that cannot be")
            animated = True
        begun = begun or kind == b"IDAT"
        if kind[:1] in b"etzi":
            notes.add(kind, data[at + 8 : at + 8 + length])
        at += 12 + length
    raise DamagedPicture("the PNG has too many chunks for its size")


def _text(kind: bytes, rest: bytes) -> bytes:
    """Return the text of a chunk behind its key, unpacked where it is packed."""
    if kind == b"tEXt":
        return rest
    if kind == b"zTXt":
        return _unpacked(rest[1:])
    packed = rest[:1] == b"\1"
    text = rest[2:].split(b"\0", 2)[-1]
    return _unpacked(text) if packed else text


def _unpacked(packed: bytes) -> bytes:
    try:
        found = zlib.decompressobj().decompress(packed, TEXT_MAX + 1)
    except zlib.error:
        return b""
    if len(found) > TEXT_MAX:
        raise DamagedPicture(f"the PNG has a text of more than {TEXT_MAX} bytes")
    return found


def _profile(text: bytes) -> bytes | None:
    """Return EXIF that is written as hexadecimal lines behind three others."""
    try:
        return bytes.fromhex(b"".join(text.split(b"\n")[3:]).decode("ascii"))
    except ValueError:
        return None
