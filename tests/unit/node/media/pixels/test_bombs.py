"""Bombs, small files that would take much memory or time, are refused by their headers at once, or cost little."""

import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from smg_node.core.errors import SmgError
from smg_node.media.pixels.decode import DecodeLimits, decode, read_header
from support.media.picture_files import FILES, RGB, encoded

LIMITS = DecodeLimits(pixels_max=40_000_000)
WHERE = "messages[0].content[0]"
CPU_S = 0.05
"""Most time of the processor that any header may take."""


def chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def large_png() -> bytes:
    png = FILES["png"]
    header = struct.pack(">II", 30_000, 30_000) + png[24:29]
    return png[:8] + chunk(b"IHDR", header) + png[33:]


def large_jpeg(side: int) -> bytes:
    """Return a JPEG whose header says another size than its scan has."""
    data = bytearray(FILES["jpeg 4:2:0"])
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", side, side)
    return bytes(data)


def jpeg_of_scans() -> bytes:
    data = encoded(RGB, "JPEG", progressive=True)
    first = data.index(b"\xff\xda")
    second = data.index(b"\xff\xda", first + 2)
    return data[:second] + data[first:second] * 5000 + data[second:]


def jpeg_of_segments() -> bytes:
    data = FILES["jpeg 4:2:0"]
    return data[:2] + b"\xff\xe5\0\x02" * 200_000 + data[2:]


def jpeg_of_exif() -> bytes:
    data = FILES["jpeg 4:2:0"]
    segment = b"\xff\xe1\xff\xffExif\0\0" + b"\0" * (0xFFFF - 8)
    return data[:2] + segment * 400 + data[2:]


def png_of_chunks() -> bytes:
    png = FILES["png"]
    return png[:33] + chunk(b"teSt", b"") * 400_000 + png[33:]


def png_of_text() -> bytes:
    png = FILES["png"]
    packed = zlib.compress(b"a" * (64 << 20), 9)
    return png[:33] + chunk(b"zTXt", b"Raw profile type exif\0\0" + packed) + png[33:]


def large_gif(*, frame: bool) -> bytes:
    gif = bytearray(FILES["gif"])
    if not frame:
        gif[6:10] = b"\xff" * 4
        return bytes(gif)
    at = gif.index(b",\0\0\0\0\x3c\0\x28\0")
    gif[at + 5 : at + 9] = b"\xff" * 4
    return bytes(gif)


def gif_of_comments() -> bytes:
    gif = FILES["gif"]
    at = gif.index(b",\0\0\0\0\x3c\0\x28\0")
    return gif[:at] + (b"!\xfe" + (b"\xff" + b"c" * 255) * 4000 + b"\0") + gif[at:]


def large_webp() -> bytes:
    size = struct.pack("<I", 0xFFFFFF)[:3]
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + size * 2
    body += b"ANIM" + struct.pack("<I", 6) + b"\0" * 6
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_of_chunks() -> bytes:
    webp = FILES["webp lossless alpha"]
    body = webp[8:] + b"test\0\0\0\0" * 400_000
    return b"RIFF" + struct.pack("<I", len(body)) + body


def large_avif() -> bytes:
    data = bytearray(FILES["avif"])
    at = data.index(b"ispe") + 8
    data[at : at + 8] = struct.pack(">II", 16_000, 16_000)
    return bytes(data)


def large_bmp() -> bytes:
    data = bytearray(FILES["bmp"])
    data[18:26] = struct.pack("<ii", 60_000, -60_000)
    return bytes(data)


def run_length_bmp() -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, 5000, 5000, 1, 8, 1, 0, 0, 0, 256, 0)
    return (
        b"BM" + struct.pack("<IHHI", 0, 0, 0, 1078) + header + b"\0" * 1024 + b"\0\2\0\0" * 500_000
    )


def tiff_of_claims() -> bytes:
    """Return a TIFF of 1 MB whose directory claims 250 GB of it."""
    content = b"\0" * 1_000_000
    entries = b"".join(struct.pack("<HHII", 60_000 + at, 7, 1_000_000, 8) for at in range(500))
    start = 8 + len(content)
    return (
        b"II*\0" + struct.pack("<I", start) + content + struct.pack("<H", 500) + entries + b"\0" * 4
    )


def tiff_of_tiles() -> bytes:
    data = bytearray(FILES["tiff"])
    start = struct.unpack("<I", data[4:8])[0]
    count = struct.unpack("<H", data[start : start + 2])[0]
    extra = struct.pack("<HHII", 322, 4, 1, 1 << 16) + struct.pack("<HHII", 323, 4, 1, 1 << 16)
    entries = bytes(data[start + 2 : start + 2 + 12 * count]) + extra
    directory = struct.pack("<H", count + 2) + entries + b"\0" * 4
    data[4:8] = struct.pack("<I", len(data))
    return bytes(data) + directory


REFUSED: dict[str, Callable[[], bytes]] = {
    "png of 30,000 x 30,000": large_png,
    "jpeg that says 60,000 x 60,000": lambda: large_jpeg(60_000),
    "jpeg of 5,000 scans": jpeg_of_scans,
    "jpeg of 200,000 segments": jpeg_of_segments,
    "jpeg of 26 MB of EXIF": jpeg_of_exif,
    "png of 400,000 chunks": png_of_chunks,
    "png of 64 MB of text": png_of_text,
    "gif with a large screen": lambda: large_gif(frame=False),
    "gif with a large frame": lambda: large_gif(frame=True),
    "gif of comments": gif_of_comments,
    "webp with a large canvas": large_webp,
    "webp of 400,000 chunks": webp_of_chunks,
    "avif of 16,000 x 16,000": large_avif,
    "bmp of 60,000 x 60,000": large_bmp,
    "bmp of two million runs": run_length_bmp,
    "tiff of claims": tiff_of_claims,
    "tiff with a large tile": tiff_of_tiles,
}


def cpu_s(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


@pytest.mark.parametrize("name", REFUSED)
def test_a_bomb_is_refused_by_its_header(name: str) -> None:
    data = REFUSED[name]()

    def read() -> SmgError:
        with pytest.raises(SmgError) as caught:
            read_header(data, LIMITS, WHERE)
        return caught.value

    error = read()
    assert error.code in ("invalid_image", "image_too_large")
    assert error.where == WHERE
    assert min(cpu_s(read) for _ in range(3)) <= CPU_S
    tracemalloc.start()
    try:
        read()
        assert tracemalloc.get_traced_memory()[1] < len(data) + (4 << 20)
    finally:
        tracemalloc.stop()


def frames_of_gif(number: int) -> bytes:
    file = BytesIO()
    frames = [Image.fromarray(np.full((8, 8), at % 251, np.uint8)) for at in range(number)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


def pages_of_tiff(number: int) -> bytes:
    file = BytesIO()
    pages = [Image.fromarray(np.full((8, 8), at % 251, np.uint8)) for at in range(number)]
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:])
    return file.getvalue()


@pytest.mark.parametrize("make", [lambda: frames_of_gif(10_000), lambda: pages_of_tiff(1000)])
def test_of_many_frames_the_first_is_all_that_is_looked_at(make: Callable[[], bytes]) -> None:
    data = make()

    def work() -> None:
        header = read_header(data, LIMITS, WHERE)
        assert int(decode(data, header, WHERE).pixels.max()) <= 1

    work()
    assert min(cpu_s(work) for _ in range(3)) <= CPU_S


def claiming_exif() -> bytes:
    """Return 64 kB of EXIF whose 5,000 entries claim 60 kB each: Pillow would copy 300 MB."""
    entries = b"".join(
        struct.pack("<HHII", 50_000 + at if at else 0x0112, 7, 60_000, 8) for at in range(5000)
    )
    return b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 5000) + entries + b"\0" * 4


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_exif_that_claims_much_costs_nothing(kind: str) -> None:
    claims = claiming_exif()
    # Libraries that write files read it too, so it goes in afterwards, in the place of an empty directory.
    empty = b"Exif\0\0II*\0\x08\0\0\0".ljust(len(claims), b"\0")
    data = encoded(RGB, kind, exif=empty).replace(empty[6:], claims[6:])
    if kind == "PNG":
        data = FILES["png"][:33] + chunk(b"eXIf", claims[6:]) + FILES["png"][33:]
    assert claims[6:] in data

    def work() -> None:
        header = read_header(data, LIMITS, WHERE)
        assert (header.width, header.height) == (60, 40)
        decode(data, header, WHERE)

    work()
    assert min(cpu_s(work) for _ in range(3)) <= CPU_S
    tracemalloc.start()
    try:
        work()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_header_that_says_more_than_the_scan_has_is_read_as_engines_read_it() -> None:
    data = large_jpeg(500)
    picture = decode(data, read_header(data, LIMITS, WHERE), WHERE)
    assert np.array_equal(picture.pixels, np.asarray(Image.open(BytesIO(data))))
