"""Media parts: images, sounds, videos and files as `inlineData` or `fileData`. Pure."""

import base64
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from smg_node.core.generation.request import MediaPart
from smg_node.dialects.gemini.provider.config_writer import not_here

_TYPES: Final = {
    "aac": "audio/aac", "flac": "audio/flac", "m4a": "audio/mp4", "mp3": "audio/mpeg",
    "ogg": "audio/ogg", "wav": "audio/wav", "gif": "image/gif", "heic": "image/heic",
    "heif": "image/heif", "jpeg": "image/jpeg", "jpg": "image/jpeg", "png": "image/png",
    "webp": "image/webp", "mov": "video/quicktime", "mp4": "video/mp4", "mpeg": "video/mpeg",
    "webm": "video/webm", "csv": "text/csv", "html": "text/html", "md": "text/markdown",
    "pdf": "application/pdf", "txt": "text/plain",
}  # fmt: skip
"""By what a URL ends with; a URI needs its type at some of this API's hostings."""
_PLAIN: Final = "text/plain"


def media_part(media: MediaPart) -> dict[str, Any]:
    """Return the part; INVALID_REQUEST with its path for one without a source."""
    source = media.source
    if not source:
        raise not_here(f"this {media.kind} input has nothing it could be sent", media.where)
    if source[:5].lower() == "data:":
        head, comma, data = source[5:].partition(",")
        if not comma:
            raise not_here(f"this {media.kind} input is no data URL", media.where)
        mime, *options = head.split(";")
        if "base64" not in (option.strip().lower() for option in options):
            data = base64.b64encode(unquote_to_bytes(data)).decode()
        return {"inlineData": {"mimeType": mime or _PLAIN, "data": data}}
    path = source.partition("?")[0].partition("#")[0]
    mime = _TYPES.get(path.rpartition(".")[2].lower(), "")
    return {"fileData": {"fileUri": source, **({"mimeType": mime} if mime else {})}}
