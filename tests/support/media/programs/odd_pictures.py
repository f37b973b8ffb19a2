"""Writes the files of `support/media/odd_pictures`: every kind of picture that clients send, and what is none.

Run once, with the folder of tests on the path: `python odd_pictures.py FOLDER`. What encoders write depends on their
versions, so the files are kept and not made anew.
"""

import struct
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageCms

from support.media.picture_files import FILES, RGB, encoded, scene

SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


def turned(kind: str, orientation: int, **more: Any) -> bytes:
    """Return a picture whose EXIF says that it is to be turned."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(RGB, kind, exif=exif, **more)


def odd() -> dict[str, bytes]:
    """Return the files by name."""
    found = dict(FILES)
    for orientation in range(2, 9):
        found[f"jpeg turned {orientation}"] = turned("JPEG", orientation, quality=80)
    for kind in ("PNG", "WEBP", "TIFF"):
        found[f"{kind.lower()} turned 6"] = turned(kind, 6)
    found["avif turned 6"] = turned("AVIF", 6)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    found["jpeg with a profile"] = encoded(RGB, "JPEG", icc_profile=profile)
    found["jpeg odd sides"] = encoded(Image.fromarray(scene(61, 43)), "JPEG", quality=90)
    found["jpeg wide"] = encoded(Image.fromarray(scene(190, 11)), "JPEG", quality=90)
    found["png one pixel high"] = encoded(Image.fromarray(scene(64, 1)), "PNG")
    found["png three pixels high"] = encoded(Image.fromarray(scene(64, 3)), "PNG")
    found["png one pixel"] = encoded(Image.fromarray(scene(1, 1)), "PNG")
    found["png interlaced"] = interlaced()
    found["gif transparent"] = encoded(RGB.quantize(16), "GIF", transparency=2)
    found["png grey transparent"] = encoded(RGB.convert("L"), "PNG", transparency=90)
    found["webp animated"] = encoded(RGB, "WEBP", save_all=True, append_images=[RGB.rotate(90)])
    found["jpeg truncated"] = found["jpeg 4:2:0"][:-200]
    found["png truncated"] = found["png"][:-300]
    found["webp truncated"] = found["webp"][:-200]
    found["svg"] = SVG
    found["pdf"] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n"
    found["nothing"] = b"no picture at all"
    return found


def interlaced() -> bytes:
    """Return a PNG in one pass of Adam7 alone: Pillow writes none, and reads it."""
    pixels = np.asarray(RGB)
    rows = b""
    for top, left, down, right in (
        (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1),
    ):  # fmt: skip
        for row in pixels[top::down, left::right]:
            rows += b"\0" + row.tobytes()
    head = struct.pack(">IIBBBBB", RGB.width, RGB.height, 8, 2, 0, 0, 1)
    file = BytesIO(b"")
    file.write(b"\x89PNG\r\n\x1a\n")
    for kind, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        file.write(struct.pack(">I", len(content)) + kind + content)
        file.write(struct.pack(">I", zlib.crc32(kind + content)))
    return file.getvalue()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for name, data in odd().items():
        (folder / name.replace(" ", "-").replace(":", "")).write_bytes(data)
