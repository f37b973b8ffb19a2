"""Media blocks: pictures and documents of a turn as a vendor's Messages API takes them. Pure."""

import base64
import binascii
import re
from typing import Any, Final

from smg_node.core.errors import unsupported
from smg_node.core.generation.request import MediaPart

IMAGE_TYPES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF: Final = "application/pdf"
_DATA: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.ASCII)
_ADDRESSES: Final = ("https://", "http://")
_SPELLINGS: Final = {"image/jpg": "image/jpeg"}


def media_block(part: MediaPart) -> dict[str, Any]:
    """Return the block of a medium; INVALID_REQUEST with its path for one that no block carries."""
    source = part.source
    if not source:
        raise _not_taken(part, "has nothing that could be sent to them")
    if part.kind not in ("image", "file"):
        raise _not_taken(part, "is none that their model can take")
    block = "image" if part.kind == "image" else "document"
    if source.lower().startswith(_ADDRESSES):
        return {"type": block, "source": {"type": "url", "url": source}}
    head = _DATA.match(source)
    if head is None:
        raise _not_taken(part, "must be an http(s) URL or a data URL")
    kind = head[1].lower()
    kind = _SPELLINGS.get(kind, kind)
    encoded = source[head.end() :] if ";base64" in head[2].lower() else None
    if encoded is None:
        raise _not_taken(part, "must be encoded in base64")
    return {"type": block, "source": _source(part, kind, encoded)}


def _source(part: MediaPart, kind: str, encoded: str) -> dict[str, Any]:
    if part.kind == "image":
        if kind not in IMAGE_TYPES:
            raise _not_taken(part, f"must be one of {', '.join(IMAGE_TYPES)}")
    elif kind.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": _read(part, encoded)}
    elif kind != _PDF:
        raise _not_taken(part, f"must be text or {_PDF}")
    return {"type": "base64", "media_type": kind, "data": encoded}


def _read(part: MediaPart, encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise _not_taken(part, "must be UTF-8 text, encoded in base64") from error


def _not_taken(part: MediaPart, why: str) -> Exception:
    return unsupported(
        f"the vendor of this model is sent no such {part.kind}: it {why}", part.where
    )
