"""Containers: kinds of video files that are taken, found by their first bytes, never by a name; pure.

A few that everybody has, so that only their readers are ever given a client's bytes, and never one that opens further
files by itself (playlists, concatenations).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

Container: TypeAlias = Literal["mp4", "matroska", "avi", "gif"]

READERS: Final[Mapping[Container, str]] = MappingProxyType(
    {"mp4": "mov", "matroska": "matroska", "avi": "avi", "gif": "gif"}
)
"""FFmpeg's name for what reads a container."""
CODECS: Final = frozenset({"h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "mjpeg", "gif"})
"""Codecs that are taken, by FFmpeg's canonical names."""
HEAD_BYTES: Final = 16
"""What `container_of` looks at."""

_OTHERS: Final = (
    (0, b"#EXTM3U", "a playlist"),
    (0, b"ffconcat", "a playlist"),
    (0, b"FLV", "Flash video"),
    (0, b"OggS", "Ogg"),
    (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "Windows Media"),
    (0, b"\x00\x00\x01\xba", "MPEG-PS"),
    (0, b"\x00\x00\x01\xb3", "MPEG video without a container"),
    (0, b"\x47\x40", "MPEG-TS"),
    (0, b"\xff\xd8\xff", "a JPEG picture"),
    (0, b"\x89PNG", "a PNG picture"),
    (8, b"WEBP", "a WebP picture"),
    (8, b"WAVE", "sound"),
    (0, b"ID3", "sound"),
    (0, b"<", "a web page or other text"),
    (0, b"{", "JSON"),
)


def container_of(data: bytes) -> Container | None:
    """Return the kind of a file by its content, None for one that is not taken."""
    head = data[:HEAD_BYTES]
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"):
        # Pictures in the same container are told apart by their brand.
        return None if head[8:12] in (b"avif", b"avis", b"heic", b"mif1") else "mp4"
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return "matroska"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        return "avi"
    return "gif" if head[:6] in (b"GIF87a", b"GIF89a") else None


def other_kind(data: bytes) -> str:
    """Return in words what a file that is not taken seems to be."""
    head = data[:HEAD_BYTES]
    if head[4:8] == b"ftyp":
        return "a picture"
    for at, mark, words in _OTHERS:
        if head[at : at + len(mark)] == mark:
            return words
    return "a file of unknown kind" if head else "an empty file"
