"""TIFF header: size and orientation from the first directory, whose claims are bounded before Pillow copies them; pure."""

from typing import Final, Literal, NamedTuple

from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.orientation import TAG, orientation_of

_WIDTHS: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_WIDTHS_BIG: Final = {13: 4, 16: 8, 17: 8, 18: 8}
_INTEGERS: Final = frozenset({3, 4, 16})
ENTRIES_MAX: Final = 512
VALUES_MAX: Final = 1 << 16
"""Most numbers of one entry: strips and tiles are as many Python objects in Pillow."""
_BYTE_TYPES: Final = frozenset({1, 2, 6, 7})
_SINGLE: Final = frozenset(
    {254, 255, 256, 257, 259, 262, 263, 264, 265, 266, 274, 277, 278, 282, 283, 284}
    | {290, 296, 317, 322, 323, 332}
)
"""Tags of one number; Pillow warns of more, and takes the first."""
_COLUMNS, _ROWS, _TILE_COLUMNS, _TILE_ROWS, _XMP = 256, 257, 322, 323, 700


class TiffHeader(NamedTuple):
    """Size of the first page as it is stored; `tile` is the size of its tiles in pixels, 0 where it has none."""

    width: int
    height: int
    orientation: int
    tile: int


class _Directory:
    """The first directory: where the value of each tag begins, its type and its number of values."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"
        self._big = 43 in data[2:4]
        self.entries: dict[int, tuple[int, int, int]] = {}
        claimed = 0
        start = self.number(8, 8) if self._big else self.number(4, 4)
        head, step, inline = (8, 20, 8) if self._big else (2, 12, 4)
        count = self.number(start, head)
        if count > ENTRIES_MAX:
            raise DamagedPicture(f"the TIFF has more than {ENTRIES_MAX} entries in a directory")
        for at in range(start + head, start + head + step * count, step):
            if at + step > len(data):
                raise DamagedPicture("the TIFF ends inside its directory")
            tag, kind = self.number(at, 2), self.number(at + 2, 2)
            length = self.number(at + 4, inline)
            width = _WIDTHS.get(kind) or _WIDTHS_BIG.get(kind, 0)
            place = at + 4 + inline
            if width * length > inline:
                place = self.number(place, inline)
                claimed += width * length
            if claimed > 2 * len(data) or (kind not in _BYTE_TYPES and length > VALUES_MAX):
                raise DamagedPicture("the TIFF has a directory that claims too much")
            if tag in _SINGLE and kind not in _BYTE_TYPES and length != 1:
                raise DamagedPicture(f"the TIFF has {length} values of tag {tag}, which takes one")
            if width and place + width * length > len(data):
                raise DamagedPicture("the TIFF has a directory that claims bytes beyond its end")
            self.entries[tag] = (place, kind, length)

    def number(self, at: int, width: int) -> int:
        return int.from_bytes(self._data[at : at + width], self._order)

    def value(self, tag: int) -> int:
        """Return the first value of a tag, 0 where it is missing or no integer."""
        place, kind, length = self.entries.get(tag, (0, 0, 0))
        if kind not in _INTEGERS or not length:
            return 0
        return self.number(place, _WIDTHS.get(kind) or _WIDTHS_BIG[kind])

    def content(self, tag: int) -> bytes | None:
        """Return the bytes of a tag, None where it is missing."""
        place, kind, length = self.entries.get(tag, (0, 0, 0))
        return self._data[place : place + length] if kind in _BYTE_TYPES else None


def tiff_header(data: bytes) -> TiffHeader:
    """Return what the first directory says; DamagedPicture where it is broken or claims more than a file may."""
    directory = _Directory(data)
    if TAG in directory.entries:
        value = directory.value(TAG)
        orientation = value if 1 <= value <= 8 else 1
    else:
        orientation = orientation_of(None, directory.content(_XMP))
    tile = directory.value(_TILE_COLUMNS) * directory.value(_TILE_ROWS)
    return TiffHeader(directory.value(_COLUMNS), directory.value(_ROWS), orientation, tile)
