"""Drawn pictures: small JPEG files for tests, different for each shade, and the parts that send them."""

import base64
from io import BytesIO
from typing import Any

from PIL import Image


def jpeg(width: int, height: int, shade: int = 0) -> bytes:
    """Return a picture of that size."""
    picture = Image.new("RGB", (width, height))
    picture.putdata(
        [
            ((x * 7 + shade) % 256, (y * 5) % 256, (x * y) % 256)
            for y in range(height)
            for x in range(width)
        ]
    )
    out = BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue()


def data_url(data: bytes) -> str:
    """Return a file as a data URL."""
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"


def picture_part(url: str, **said: Any) -> dict[str, Any]:
    """Return a part of a chat that is a picture."""
    return {"type": "image_url", "image_url": {"url": url, **said}}
