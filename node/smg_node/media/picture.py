"""Picture: decoded 8-bit RGB pixels of one still image; pure."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels: TypeAlias = NDArray[np.uint8]


class Picture(msgspec.Struct, frozen=True):
    """Pixels of shape [height, width, 3], RGB, row-major and contiguous; orientation and alpha are already applied."""

    pixels: "Pixels"

    @property
    def width(self) -> int:
        """Return the number of columns."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return int(self.pixels.shape[0])


class PictureHeader(msgspec.Struct, frozen=True):
    """What is known of an encoded picture before it is decoded.

    `width` and `height` are those after its EXIF orientation is applied; `format` is Pillow's name ("JPEG", "PNG", …),
    found by content. `decoding_bytes` is the most memory that decoding it takes, its pixels among it, and
    `decoded_bytes` what is left of that afterwards until the work on it ends; 0 where nobody has told.
    """

    width: int
    height: int
    format: str
    decoding_bytes: int = 0
    decoded_bytes: int = 0
