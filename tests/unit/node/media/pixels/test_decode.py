"""Pictures are decoded to the values that Pillow and engines make, and everything else is refused with its path."""

import random
import struct
import sys
import zlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from smg_node.core.errors import SmgError
from smg_node.media.picture import Picture
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from support.media.picture_files import FILES, RGB, encoded, scene

WHERE = "messages[0].content[1].image_url.url"
LIMITS = DecodeLimits(pixels_max=1_000_000)


def read(data: bytes, limits: DecodeLimits = LIMITS) -> Picture:
    header = read_header(data, limits, WHERE)
    picture = decode(data, header, WHERE)
    assert (picture.width, picture.height) == (header.width, header.height)
    assert picture.pixels.flags.c_contiguous
    return picture


def as_engines_do(data: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return what the image loader of vLLM makes of a file."""
    image = ImageOps.exif_transpose(Image.open(BytesIO(data)))
    if image.mode != "RGB" and image.has_transparency_data:
        image = image.convert("RGBA")
        ground = Image.new("RGB", image.size, (255, 255, 255))
        ground.paste(image, mask=image.split()[3])
        image = ground
    return np.asarray(image.convert("RGB"))


def refusal(data: bytes, limits: DecodeLimits = LIMITS) -> SmgError:
    with pytest.raises(SmgError) as caught:
        read(data, limits)
    assert caught.value.where == WHERE
    assert caught.value.status == 400
    return caught.value


@pytest.mark.parametrize("name", FILES)
def test_a_picture_has_the_values_that_engines_make(name: str) -> None:
    assert np.array_equal(read(FILES[name]).pixels, as_engines_do(FILES[name]))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", range(10))
def test_the_orientation_is_applied_before_the_size_is_told(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "a camera"
    data = encoded(RGB, kind, exif=exif)
    expected = as_engines_do(data)
    header = read_header(data, LIMITS, WHERE)
    assert (header.height, header.width) == expected.shape[:2]
    assert np.array_equal(read(data).pixels, expected)


def chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def with_chunk(png: bytes, added: bytes, *, behind: bool) -> bytes:
    at = len(png) - 12 if behind else 33
    return png[:at] + added + png[at:]


ROTATED = Image.Exif()
ROTATED[0x0112] = 6
PROFILE = b"\nexif\n%8d\n" % len(ROTATED.tobytes()) + ROTATED.tobytes().hex().encode() + b"\n"
XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="8"/></x:xmpmeta>'


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize(
    "added",
    [
        chunk(b"eXIf", ROTATED.tobytes()[6:]),
        chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(PROFILE)),
        chunk(b"tEXt", b"Raw profile type exif\0" + PROFILE),
        chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP),
        chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(XMP)),
    ],
    ids=["eXIf", "packed profile", "profile", "xmp", "packed xmp"],
)
def test_a_png_says_its_orientation_in_five_ways_before_and_behind_its_pixels(
    added: bytes, behind: bool
) -> None:
    data = with_chunk(FILES["png"], added, behind=behind)
    assert read(data).width == 40
    assert np.array_equal(read(data).pixels, as_engines_do(data))


def test_a_jpeg_says_its_orientation_in_xmp_too() -> None:
    data = encoded(RGB, "JPEG", xmp=XMP)
    assert read(data).width == 40
    assert np.array_equal(read(data).pixels, as_engines_do(data))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml is not a picture format"),
        (b"<?xml version='1.0'?>\n<svg/>", "image/svg+xml is not"),
        (b"%PDF-1.7", "application/pdf is not"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "application/postscript is not"),
        (b"\xd7\xcd\xc6\x9a\0\0", "image/wmf is not"),
        (b"\0\0\1\xba", "video/mpeg is not"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic is not"),
        (b"\0\0\0\x18ftypisom\0\0\0\0isommp41", "video/mp4 is not"),
        (b"\xff\x0a\xfa\x7f", "image/jxl is not"),
        (b"<!DOCTYPE html><html>", "text/html is not"),
        (b"", "these bytes are not"),
        (b"\0" * 64, "these bytes are not"),
    ],
)
def test_what_models_do_not_see_is_refused_by_its_name(data: bytes, said: str) -> None:
    error = refusal(data)
    assert error.code == "invalid_image"
    assert said in error.message


@pytest.mark.parametrize("name", FILES)
def test_a_part_of_a_picture_is_refused(name: str) -> None:
    data = FILES[name]
    assert refusal(data[: len(data) // 3]).code == "invalid_image"


def test_more_pixels_than_the_limit_are_refused_by_the_header() -> None:
    error = refusal(FILES["png"], DecodeLimits(pixels_max=60 * 40 - 1))
    assert error.code == "image_too_large"
    assert "60 x 40" in error.message
    assert "media.image_pixels_max" in error.message
    assert read(FILES["png"], DecodeLimits(pixels_max=60 * 40)).width == 60


def test_a_picture_without_pixels_is_refused() -> None:
    png = FILES["png"]
    header = struct.pack(">II", 0, 40) + png[24:29]
    data = png[:8] + chunk(b"IHDR", header) + png[33:]
    assert "0 x 40" in refusal(data).message


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "L", "P", "CMYK", "1"])
def test_a_picture_that_is_converted_in_strips_is_the_same(mode: str) -> None:
    noise = np.random.default_rng(4).integers(0, 256, (701, 801, 4), dtype=np.uint8)
    image = Image.fromarray(noise, "RGBA").convert(mode)
    data = encoded(image, "TIFF" if mode == "CMYK" else "PNG")
    assert np.array_equal(read(data).pixels, as_engines_do(data))


def test_transparency_of_a_palette_is_seen_in_every_strip() -> None:
    noise = np.random.default_rng(4).integers(0, 256, (900, 700), dtype=np.uint8)
    image = Image.fromarray(noise, "L").convert("P")
    for transparency in (7, bytes(range(256))):
        data = encoded(image, "PNG", transparency=transparency)
        assert np.array_equal(read(data).pixels, as_engines_do(data))


def test_a_tiff_says_its_orientation_in_xmp_too() -> None:
    data = encoded(RGB, "TIFF", tiffinfo={700: XMP})
    assert read(data).width == as_engines_do(data).shape[1] == 40
    assert np.array_equal(read(data).pixels, as_engines_do(data))


@pytest.mark.parametrize("seed", range(40))
def test_a_jpeg_has_the_same_values_by_either_library(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    image = Image.fromarray(scene(rng.randint(1, 90), rng.randint(1, 90)))
    if seed % 5 == 0:
        image = image.convert("L")
    data = encoded(
        image,
        "JPEG",
        quality=rng.randint(5, 100),
        subsampling=rng.randint(0, 2),
        progressive=rng.random() < 0.5,
        restart_marker_blocks=rng.choice([0, 3]),
    )
    expected = as_engines_do(data)
    assert np.array_equal(read(data).pixels, expected)
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    assert np.array_equal(read(data).pixels, expected)
