"""Beginnings of pictures: whether the size of one is known by the first bytes of its file; bounded, pure.

Who only counts what a picture is to a model need not fetch all of it. JPEG, GIF and BMP say their size, and whether they
are turned, before their pixels. PNG and WebP may say behind those that they are turned, so that their beginning is
enough only for whom width and height may be exchanged. TIFF and AVIF may have their directory anywhere.
"""

from collections.abc import Callable
from typing import Final

from smg_node.core.errors import SmgError
from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.formats import picture_format
from smg_node.media.pixels.headers.jpeg_header import has_scan
from smg_node.media.pixels.headers.png_header import png_header
from smg_node.media.pixels.headers.small_headers import bmp_header, gif_header, webp_header

_LOOKED_AT: Final = 1_024
"""Bytes by which it is known that a file is no picture."""


def size_is_known(data: bytes, alike: Callable[[int, int], bool]) -> bool:
    """Whether the first bytes of a file say as much of its size as all of them; also where they say it is no picture.

    `alike` is whether a picture of some width and height is the same to the caller when it is turned.
    """
    try:
        name = picture_format(data, None)
    except SmgError:
        return len(data) >= _LOOKED_AT
    try:
        match name:
            case "JPEG":
                return has_scan(data)
            case "GIF":
                return bool(gif_header(data))
            case "BMP":
                return bool(bmp_header(data))
            case "PNG":
                width, height, _ = png_header(data)
                return alike(width, height)
            case "WEBP":
                width, height, _ = webp_header(data)
                return alike(width, height)
            case _:
                return False
    except DamagedPicture:
        # More of it may mend that, and all of it will tell.
        return False
