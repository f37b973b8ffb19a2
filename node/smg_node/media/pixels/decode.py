"""Decoding: an encoded picture to 8-bit RGB with the very values that engines get, or a refusal.

The header comes first, read in bounded time whatever the bytes are, so that sizes are checked and planned with before a
pixel is made. Then: the first frame, alpha over white, Pillow's conversion of all other modes, the orientation of the
metadata applied. A colour of an RGB picture that is called transparent stays what it is, as vLLM takes it.
Pillow decodes all formats; most JPEG are decoded by simplejpeg, where it is installed, to the same bytes in half the
time. Only the plug-in of the format that was recognised is ever asked, and nothing global is changed.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.media.picture import Picture, PictureHeader
from smg_node.media.pixels.headers.avif import avif_header, avif_without_exif
from smg_node.media.pixels.headers.damage import DamagedPicture
from smg_node.media.pixels.headers.formats import picture_format
from smg_node.media.pixels.headers.jpeg_header import jpeg_header
from smg_node.media.pixels.headers.orientation import SWAPPED_FROM
from smg_node.media.pixels.headers.png_header import png_header
from smg_node.media.pixels.headers.small_headers import bmp_header, gif_header, webp_header
from smg_node.media.pixels.headers.tiff_header import tiff_header
from smg_node.media.pixels.libraries import require_libraries

if TYPE_CHECKING:
    from PIL.Image import Image

    from smg_node.media.picture import Pixels

_SAME_BYTES: Final = ("YCbCr", "Gray")
"""Colour spaces of JPEG in which simplejpeg and Pillow agree to the bit; of CMYK they do not."""

_STRIP_PIXELS: Final = 1 << 18
"""Pixels that are converted at once: a megabyte in Pillow's memory."""
_STRIP_BYTES: Final = 11
"""Bytes a pixel of a strip: cut out, converted, and as bytes."""
_CHANNELS: Final = 3
_COEFFICIENT_BYTES: Final = 2
_IN_PILLOW: Final[Mapping[str, int]] = MappingProxyType(
    {"JPEG": 4, "PNG": 4, "GIF": 4, "BMP": 4, "TIFF": 6, "WEBP": 14, "AVIF": 14}
)
"""Most bytes a pixel that a picture takes in Pillow and its codecs, beside our own 3, as measured with pictures of
9 million pixels: WebP has canvases of its own (13.5), AVIF planes (8.6; twice that with 10 and 12 bits), and Pillow turns
TIFF by itself (5)."""


class DecodeLimits(msgspec.Struct, frozen=True):
    """Bounds of one picture."""

    pixels_max: int
    """Most pixels, width times height: `media.image_pixels_max`."""


def read_header(data: bytes, limits: DecodeLimits, where: str | None) -> PictureHeader:
    """Return what is known of a picture before it is decoded; takes milliseconds for any bytes.

    SmgError at `where`: `invalid_image` for what is no picture, is damaged or has no pixels, `image_too_large` for more
    pixels than `limits` allow, `unsupported_parameter` where the libraries for pictures are not installed.
    """
    require_libraries(where)
    name = picture_format(data, where)
    try:
        width, height, orientation, tile, beside = _facts(data, name)
    except DamagedPicture as error:
        raise invalid(f"the picture cannot be read: {error}", where, "invalid_image") from error
    turned_bytes = _CHANNELS * width * height if orientation != 1 and name != "TIFF" else 0
    if orientation >= SWAPPED_FROM:
        width, height = height, width
    if width < 1 or height < 1:
        raise invalid(f"the picture has {width} x {height} pixels", where, "invalid_image")
    if max(width * height, tile) > limits.pixels_max:
        raise too_many_pixels(width, height, limits, where)
    decoded = _CHANNELS * width * height + turned_bytes
    return PictureHeader(width, height, name, beside + decoded, decoded)


def too_many_pixels(width: int, height: int, limits: DecodeLimits, where: str | None) -> SmgError:
    """Return the error for a picture that is larger than `media.image_pixels_max`."""
    message = (
        f"the picture has {width} x {height} pixels; at most {limits.pixels_max} are taken "
        "(media.image_pixels_max)"
    )
    return SmgError(ErrorKind.INVALID_REQUEST, message, where=where, code="image_too_large")


def decode(data: bytes, header: PictureHeader, where: str | None) -> Picture:
    """Return the pixels of a picture whose header was read from the same bytes.

    SmgError `invalid_image` at `where` for what does not decode completely. Takes milliseconds for a million pixels,
    most of them without the interpreter; meant for a thread. Inside an arena's work the pixels are valid until that ends.
    """
    try:
        pixels = _decoded(data, header)
    except DamagedPicture as error:
        raise invalid(f"the picture cannot be read: {error}", where, "invalid_image") from error
    # Whatever a codec makes of broken bytes (ValueError, SyntaxError, struct.error, …) is the picture's fault.
    except Exception as error:
        message = f"the {header.format} picture is damaged or incomplete"
        raise invalid(message, where, "invalid_image") from error
    if pixels.shape != (header.height, header.width, 3):
        message = f"the {header.format} picture contradicts its own header about its size"
        raise invalid(message, where, "invalid_image")
    return Picture(pixels=pixels)


class _Facts(NamedTuple):
    """Width and height as stored, the orientation, the pixels of the largest piece that is decoded at once, and the
    memory that decoding takes beside the pixels.
    """

    width: int
    height: int
    orientation: int
    tile: int
    beside: int


def _facts(data: bytes, name: str) -> _Facts:
    """Return what the header says."""
    if name == "TIFF":
        tiff = tiff_header(data)
        beside = _in_pillow(name, max(tiff.width * tiff.height, tiff.tile))
        return _Facts(tiff.width, tiff.height, tiff.orientation, tiff.tile, beside)
    if name == "JPEG":
        jpeg = jpeg_header(data)
        pixels = jpeg.width * jpeg.height
        beside = _COEFFICIENT_BYTES * jpeg.coefficients * pixels
        if jpeg.components > _CHANNELS or not _has_simplejpeg():
            beside += _in_pillow(name, pixels)
        return _Facts(jpeg.width, jpeg.height, jpeg.orientation, 0, beside)
    readers = {"PNG": png_header, "GIF": gif_header, "BMP": bmp_header}
    read = {**readers, "WEBP": webp_header, "AVIF": avif_header}[name]
    width, height, orientation = read(data)
    return _Facts(width, height, orientation, 0, _in_pillow(name, width * height))


def _in_pillow(name: str, pixels: int) -> int:
    """Return the memory that Pillow takes for so many pixels until they are ours."""
    return _IN_PILLOW[name] * pixels + _STRIP_BYTES * min(pixels, _STRIP_PIXELS)


def _has_simplejpeg() -> bool:
    return find_spec("simplejpeg") is not None


def _decoded(data: bytes, header: PictureHeader) -> "Pixels":
    """Return the pixels, turned as the metadata say; Pillow turns TIFF by itself, and nothing else."""
    width, height, orientation, *_ = _facts(data, header.format)
    if header.format == "TIFF":
        return _by_pillow(data, "TIFF", (width, height))
    pixels = _by_simplejpeg(data, (width, height)) if header.format == "JPEG" else None
    if pixels is None:
        pixels = _by_pillow(data, header.format, (width, height))
    return turned(pixels, orientation)


def _by_simplejpeg(data: bytes, size: tuple[int, int]) -> "Pixels | None":
    """Return a JPEG's pixels; None where Pillow must decide, also about whether it is a picture at all."""
    try:
        import simplejpeg
    except ImportError:
        return None
    from smg_node.media.pixels.arena import scratch

    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data)
        if space not in _SAME_BYTES or (width, height) != size:
            return None
        decoded: Pixels = simplejpeg.decode_jpeg(
            data, colorspace="RGB", buffer=scratch((height, width, 3))
        )
    except ValueError:
        return None
    return decoded


def _by_pillow(data: bytes, name: str, size: tuple[int, int]) -> "Pixels":
    """Return a picture's pixels as Pillow makes them, alpha laid over white; only if it has the size that was read."""
    import numpy as np

    from smg_node.media.pixels.arena import scratch

    image = _opened(data, name)
    if image.size not in (size, size[::-1]):
        raise DamagedPicture(f"the {name} contradicts its own header about its size")
    image.load()
    width, height = image.size
    made = scratch((height, width, 3))
    # In strips, so that beside the decoded picture and the result nothing as large is ever there.
    rows = max(_STRIP_PIXELS // width, 1)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height))) if rows < height else image
        if strip.mode == "RGB":
            # One with a transparent colour among it: engines take such as they are.
            pass
        elif strip.has_transparency_data:
            strip = _over_white(strip if strip.mode == "RGBA" else strip.convert("RGBA"))
        else:
            strip = strip.convert("RGB")
        levels = np.frombuffer(strip.tobytes(), dtype=np.uint8)
        made[top : top + rows] = levels.reshape(-1, width, 3)
    return made


def _over_white(image: "Image") -> "Image":
    """Return a picture with alpha as it looks on a white ground."""
    from PIL import Image

    ground = Image.new("RGB", image.size, (255, 255, 255))
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _opened(data: bytes, name: str) -> "Image":
    """Return the picture, not yet decoded, by the plug-in of its format and no other."""
    from PIL import (
        AvifImagePlugin,
        BmpImagePlugin,
        GifImagePlugin,
        JpegImagePlugin,
        PngImagePlugin,
        TiffImagePlugin,
        WebPImagePlugin,
    )

    openers: dict[str, Any] = {
        "JPEG": JpegImagePlugin.JpegImageFile,
        "PNG": PngImagePlugin.PngImageFile,
        "WEBP": WebPImagePlugin.WebPImageFile,
        "GIF": GifImagePlugin.GifImageFile,
        "BMP": BmpImagePlugin.BmpImageFile,
        "TIFF": TiffImagePlugin.TiffImageFile,
        "AVIF": AvifImagePlugin.AvifImageFile,
    }
    image: Image = openers[name](BytesIO(avif_without_exif(data) if name == "AVIF" else data))
    return image


def turned(pixels: "Pixels", orientation: int) -> "Pixels":
    """Return the picture as it is meant to be seen, contiguous."""
    from smg_node.media.pixels.arena import scratch

    if orientation == 1:
        return pixels
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    made = scratch(pixels.shape)
    made[...] = pixels
    return made
