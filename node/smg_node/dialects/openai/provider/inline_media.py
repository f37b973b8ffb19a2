"""Inline media: what both APIs want of a data URL: its type, a name for a file, the format of a recording. Pure."""

from typing import Final, NamedTuple

from smg_node.core.generation.request import MediaPart
from smg_node.dialects.openai.provider.request_checks import not_here

_ENDINGS: Final = {
    "application/pdf": "pdf",
    "application/json": "json",
    "text/plain": "txt",
    "text/html": "html",
    "text/csv": "csv",
    "text/markdown": "md",
}
_SOUNDS: Final = {
    "wav": "wav",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
    "mp3": "mp3",
    "mpeg": "mp3",
}
"""Formats that the types of both APIs know, by their names in URLs."""


class Sound(NamedTuple):
    """A recording: base64, and its format."""

    data: str
    form: str


def file_name(source: str) -> str:
    """Return a name for the file that is a data URL: a file without one is refused."""
    kind = source.removeprefix("data:").partition(",")[0].partition(";")[0]
    return f"file.{_ENDINGS.get(kind, 'bin')}"


def is_inline(source: str) -> bool:
    """Whether a source is its data itself."""
    return source.startswith("data:")


def sound_in(part: MediaPart) -> Sound:
    """Return the recording of an audio part; INVALID_REQUEST for one of another format, or only a link to one."""
    head, _, encoded = part.source.partition(";base64,")
    form = _SOUNDS.get(head.removeprefix("data:audio/"))
    if not head.startswith("data:audio/") or form is None or not encoded:
        raise not_here("it takes recordings only as data, as wav or mp3", part.where)
    return Sound(encoded, form)
