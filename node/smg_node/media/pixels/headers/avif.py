"""AVIF: its size and orientation, read by Pillow from a copy without EXIF.

In AVIF the orientation is a property of the picture and EXIF's is not used, but Pillow reads all of the EXIF to compare
the two, and a directory may claim a thousand times its own bytes. So the item's type is overwritten before Pillow sees
the file: what no decoder looks for is never read.
"""

import re
from io import BytesIO
from typing import Final

from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.small_headers import SmallHeader

_EXIF_ITEM: Final = re.compile(rb"(infe(?:.{8}|.{10}))Exif", re.DOTALL)


def avif_without_exif(data: bytes) -> bytes:
    """Return the file with the types of its EXIF items overwritten; itself where it has none."""
    return _EXIF_ITEM.sub(rb"\1free", data) if b"Exif" in data else data


def avif_header(data: bytes) -> SmallHeader:
    """Return the size as it is stored, and the orientation of the picture's own properties."""
    from PIL import AvifImagePlugin

    try:
        image = AvifImagePlugin.AvifImageFile(BytesIO(avif_without_exif(data)))
    # The library raises whatever fits: ValueError, SyntaxError, MemoryError for sizes that are none.
    except Exception as error:
        raise DamagedPicture("the AVIF is damaged, incomplete or too large") from error
    orientation = image.getexif().get(0x0112, 1)
    return SmallHeader(*image.size, orientation if orientation in range(1, 9) else 1)
