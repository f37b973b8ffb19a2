"""Media blocks: pictures, documents, sound and films of a turn as Converse takes them: as bytes. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.errors import SmgError, unsupported
from smg_node.core.generation.request import MediaKind, MediaPart

_DATA: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.ASCII)
_IMAGES: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_DOCUMENTS: Final = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
    "application/json": "txt",
}
_VIDEOS: Final = {
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/x-matroska": "mkv",
    "video/webm": "webm",
    "video/x-flv": "flv",
    "video/mpeg": "mpeg",
    "video/x-ms-wmv": "wmv",
    "video/3gpp": "three_gp",
}
_SOUNDS: Final = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/opus": "opus",
    "audio/aac": "aac",
    "audio/mp4": "m4a",
    "audio/m4a": "m4a",
    "audio/webm": "webm",
    "audio/pcm": "pcm",
    "audio/pcm16": "pcm",
}
_BLOCKS: Final[Mapping[MediaKind, tuple[str, Mapping[str, str]]]] = {
    "image": ("image", _IMAGES),
    "file": ("document", _DOCUMENTS),
    "video": ("video", _VIDEOS),
    "audio": ("audio", _SOUNDS),
}
"""The name of the block, and its formats by media type."""


def media_block(part: MediaPart, number: int) -> dict[str, Any]:
    """Return the block of a medium; INVALID_REQUEST with its path for one that no block carries.

    `number` tells it from the other documents of the conversation, which have names.
    """
    head = _DATA.match(part.source)
    if head is None:
        raise _not_taken(part, "must be a data URL: they fetch nothing")
    if ";base64" not in head[2].lower():
        raise _not_taken(part, "must be encoded in base64")
    encoded = part.source[head.end() :]
    if not encoded:
        raise _not_taken(part, "is empty")
    name, formats = _BLOCKS[part.kind]
    kind = head[1].strip().lower()
    form = formats.get(kind, "txt" if name == "document" and kind.startswith("text/") else "")
    if not form:
        raise _not_taken(part, f"must be one of {', '.join(formats)}")
    block: dict[str, Any] = {"format": form, "source": {"bytes": encoded}}
    if name == "document":
        block["name"] = f"document {number}"
    return {name: block}


def _not_taken(part: MediaPart, why: str) -> SmgError:
    return unsupported(f"Bedrock is sent no such {part.kind}: it {why}", part.where)
