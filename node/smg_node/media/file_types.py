"""File types: what a file is by its first bytes: a picture, video, sound, document or text; pure.

Neither a file's name nor its declared media type is believed, but for containers that hold videos and sound alike.
"""

import codecs
from typing import Final

BEGINNING: Final = 64
"""Bytes at the beginning of a file that tell what it is, but for text."""
PDF: Final = "application/pdf"
TEXT: Final = "text/plain"

_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II\x2a\x00", "image/tiff"),
    (b"MM\x00\x2a", "image/tiff"),
    (b"%PDF-", PDF),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-asf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"caff\x00", "audio/x-caf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\xd0\xcf\x11\xe0", "application/x-ole-storage"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_PICTURE_BRANDS: Final = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"mif1": "image/heic",
    b"msf1": "image/heic",
    b"heic": "image/heic",
    b"heix": "image/heic",
}
_SOUND_BRANDS: Final = (b"M4A ", b"M4B ", b"M4P ")
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def file_type(beginning: bytes, declared: str = "") -> str:
    """Return the media type of a file by its first bytes, "" for text and for what is not known.

    `declared` tells whether a container that may be either is a video or a sound.
    """
    for signature, found in _SIGNATURES:
        if beginning.startswith(signature):
            return found
    for look in (_bitmap, _riff, _iso_media):
        found = look(beginning)
        if found:
            return _either(found, declared)
    if beginning.startswith(b"\x1a\x45\xdf\xa3"):
        return _either("video/webm", declared)
    if beginning.startswith(b"OggS"):
        return "video/ogg" if declared.lower().startswith("video/") else "audio/ogg"
    return ""


def text_in(content: bytes) -> str | None:
    """Return the text that a file is, in UTF-8 or UTF-16 with a mark of its order; None for one that is none."""
    encoding = "utf-16" if content.startswith(_WIDE) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _bitmap(beginning: bytes) -> str:
    # Words may begin with BM; the four bytes behind a bitmap's size are always zero.
    return "image/bmp" if beginning[:2] == b"BM" and beginning[6:10] == bytes(4) else ""


def _riff(beginning: bytes) -> str:
    if beginning[:4] == b"FORM" and beginning[8:12] in (b"AIFF", b"AIFC"):
        return "audio/aiff"
    return _RIFF.get(beginning[8:12], "") if beginning[:4] == b"RIFF" else ""


def _iso_media(beginning: bytes) -> str:
    """Return the type of a file of the ISO base media format, by its major brand."""
    if beginning[4:8] != b"ftyp":
        return ""
    major = beginning[8:12]
    if major in _SOUND_BRANDS:
        return "audio/mp4"
    if major == b"qt  ":
        return "video/quicktime"
    return _PICTURE_BRANDS.get(major, "video/mp4")


def _either(found: str, declared: str) -> str:
    """Return the type of a container of videos that may hold nothing but sound."""
    sound = declared.lower().startswith("audio/") and found in ("video/mp4", "video/webm")
    return found.replace("video/", "audio/") if sound else found
