"""Picture formats by content: the seven that are decoded, and names of others, for refusals that say what came; pure.

Neither a file's name nor its declared media type is believed.
"""

from typing import Final

from smg_node.core.errors import SmgError, invalid

_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II\x2a\x00", "TIFF"),
    (b"MM\x00\x2a", "TIFF"),
    (b"II\x2b\x00", "TIFF"),
    (b"MM\x00\x2b", "TIFF"),
)
_REFUSED: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"\xc5\xd0\xd3\xc6", "application/postscript"),
    (b"\xd7\xcd\xc6\x9a", "image/wmf"),
    (b"\x01\x00\x00\x00\x58\x00\x00\x00", "image/emf"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"\xff\x0a", "image/jxl"),
    (b"\x00\x00\x00\x0cJXL ", "image/jxl"),
    (b"\x00\x00\x00\x0cjP  ", "image/jp2"),
    (b"\xff\x4f\xff\x51", "image/jp2"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"OggS", "application/ogg"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_AVIF_MAJOR: Final = (b"avif", b"avis", b"mif1", b"msf1")
_AVIF: Final = (b"avif", b"avis")
_HEIC: Final = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
_BRANDS_MAX: Final = 64
_TEXT_LOOKED_AT: Final = 1024


def picture_format(data: bytes, where: str | None) -> str:
    """Return the format by Pillow's name: JPEG, PNG, WEBP, GIF, BMP, TIFF or AVIF.

    SmgError `invalid_image` at `where` for anything else, with what it seems to be.
    """
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        brand = _brand(data)
        if brand == "image/avif":
            return "AVIF"
        raise _refused(brand, where)
    for signature, name in _REFUSED:
        if data.startswith(signature):
            raise _refused(name, where)
    raise _refused(_text_type(data), where)


def _brand(data: bytes) -> str:
    """Return the media type of a file of the ISO base media format."""
    end = min(int.from_bytes(data[:4], "big"), len(data), 16 + 4 * _BRANDS_MAX)
    major = data[8:12]
    brands = [major, *(data[at : at + 4] for at in range(16, end - 3, 4))]
    if major in _AVIF_MAJOR and any(one in _AVIF for one in brands):
        return "image/avif"
    if any(one in _HEIC for one in brands):
        return "image/heic"
    return "video/quicktime" if major == b"qt  " else "video/mp4"


def _text_type(data: bytes) -> str | None:
    """Return the media type of something written as text, None for what is not known."""
    beginning = data[:_TEXT_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if beginning.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if beginning.startswith((b"<svg", b"<?xml", b"<!--", b"<!doctype svg")):
        return "image/svg+xml" if b"<svg" in beginning else "text/xml"
    return "application/json" if beginning.startswith((b"{", b"[")) else None


def _refused(name: str | None, where: str | None) -> SmgError:
    found = f"{name} is" if name is not None else "these bytes are"
    takes = "JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF"
    message = f"{found} not a picture format that models see; send {takes}"
    return invalid(message, where, "invalid_image")
