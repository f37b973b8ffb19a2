"""Small picture files of every format and mode that is taken, made by Pillow."""

from io import BytesIO
from typing import Any, Final

import numpy as np
from PIL import Image


def scene(width: int = 60, height: int = 40, bands: int = 3) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return a smooth picture with some noise, so that codecs have something to do."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [
        127 + 80 * np.sin(x / (5 + band)) + 40 * np.cos(y / (3 + band)) for band in range(bands)
    ]
    noise = np.random.default_rng(7).normal(0, 8, (height, width, bands))
    return np.clip(np.stack(waves, axis=2) + noise, 0, 255).astype(np.uint8)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


RGB = Image.fromarray(scene())
ALPHA = Image.fromarray(scene(bands=4), "RGBA")


def palette_with_transparency() -> bytes:
    image = RGB.quantize(16)
    return encoded(image, "PNG", transparency=3)


FILES: Final = {
    "jpeg 4:2:0": encoded(RGB, "JPEG", quality=80),
    "jpeg 4:4:4": encoded(RGB, "JPEG", quality=95, subsampling=0),
    "jpeg progressive": encoded(RGB, "JPEG", progressive=True),
    "jpeg grey": encoded(RGB.convert("L"), "JPEG"),
    "jpeg cmyk": encoded(RGB.convert("CMYK"), "JPEG"),
    "jpeg rgb": encoded(RGB, "JPEG", keep_rgb=True),
    "png": encoded(RGB, "PNG"),
    "png alpha": encoded(ALPHA, "PNG"),
    "png grey": encoded(RGB.convert("L"), "PNG"),
    "png grey alpha": encoded(ALPHA.convert("LA"), "PNG"),
    "png 1": encoded(RGB.convert("1"), "PNG"),
    "png palette": encoded(RGB.quantize(16), "PNG"),
    "png palette transparent": palette_with_transparency(),
    "png rgb transparent": encoded(RGB, "PNG", transparency=tuple(map(int, scene()[0, 0]))),
    "png grey 16": encoded(Image.fromarray(scene(bands=1)[:, :, 0].astype(np.uint16) * 3), "PNG"),
    "webp": encoded(RGB, "WEBP", quality=70),
    "webp lossless alpha": encoded(ALPHA, "WEBP", lossless=True),
    "gif": encoded(RGB.quantize(32), "GIF"),
    "gif animated": encoded(RGB, "GIF", save_all=True, append_images=[ALPHA.convert("RGB")]),
    "bmp": encoded(RGB, "BMP"),
    "bmp grey": encoded(RGB.convert("L"), "BMP"),
    "tiff": encoded(RGB, "TIFF"),
    "tiff deflate": encoded(RGB, "TIFF", compression="tiff_deflate"),
    "tiff cmyk": encoded(RGB.convert("CMYK"), "TIFF"),
    "tiff pages": encoded(RGB, "TIFF", save_all=True, append_images=[RGB.rotate(90)]),
    "avif": encoded(RGB, "AVIF", quality=70),
    "avif alpha": encoded(ALPHA, "AVIF"),
}
