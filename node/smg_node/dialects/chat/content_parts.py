"""Content parts of a message: reads a string, or parts of text and media."""

from typing import Final, cast

from smg_node.core.generation.request import (
    DETAILS,
    MediaDetail,
    MediaKind,
    MediaPart,
    Part,
    TextPart,
)
from smg_node.core.json_cursor import Cursor, kind_of
from smg_node.dialects.openai.part_limits import PartCounter

_KINDS: Final = (
    "text", "image_url", "video_url", "audio_url", "input_audio", "file", "refusal",
)  # fmt: skip
_UUID: Final = "uuid"
_KEYS: Final = {
    kind: frozenset({"type", kind} if kind in ("text", "refusal") else {"type", kind, _UUID})
    for kind in _KINDS
}
_UUID_MAX: Final = 256
_NAME: Final = "filename"
_NAME_MAX: Final = 256
_DETAIL: Final = "detail"
_URL_KEYS: Final = frozenset({"url", "detail"})
_AUDIO_KEYS: Final = frozenset({"format", "data"})
_FILE_KEYS: Final = frozenset({"file_id", "filename", "file_data"})
_MEDIA_ROLES: Final = frozenset({"user", "tool"})
_URL_KINDS: Final[dict[str, MediaKind]] = {
    "image_url": "image",
    "video_url": "video",
    "audio_url": "audio",
}


def read_content(message: Cursor, role: str, shelf: PartCounter) -> str | tuple[Part, ...] | None:
    """Return the content of a message in the form the client chose; None if it is absent or wrong."""
    content = message.values.get("content")
    if content is None or type(content) is str:
        return content
    if type(content) is not list:
        message.problem(
            "content",
            f"must be a string or an array of parts, not {kind_of(content)}",
            "invalid_type",
        )
        return None
    shelf.parts += len(content)
    if shelf.parts > shelf.options.parts_max:
        message.problem("content", f"a request may have at most {shelf.options.parts_max} parts")
        return None
    if not content:
        message.problem("content", "must not be an empty array")
        return None
    parts = [_read_part(part, role, shelf) for part in message.objects("content")]
    return tuple(part for part in parts if part is not None)


def _read_part(part: Cursor, role: str, shelf: PartCounter) -> Part | None:
    kind = part.word("type", _KINDS, required=True)
    if kind is not None:
        part.only(_KEYS[kind])
    if kind == "text":
        text = part.text("text", required=True)
        return None if text is None else TextPart(text)
    if kind == "refusal":
        if role != "assistant":
            part.problem("type", "only an assistant's message may hold a refusal")
        refusal = part.text("refusal", required=True)
        return None if refusal is None else TextPart(refusal)
    if kind is None:
        return None
    if role not in _MEDIA_ROLES:
        part.problem("type", f"a message of role {role!r} may only hold text")
        return None
    return _read_media(part, kind, shelf)


def _read_media(part: Cursor, kind: str, shelf: PartCounter) -> MediaPart | None:
    media: MediaKind
    detail = name = ""
    if kind == "input_audio":
        media, source = "audio", _audio_source(part)
    elif kind == "file":
        media, source = "file", _file_source(part)
        name = _file_name(part)
    else:
        media, source = _URL_KINDS[kind], _url_source(part, kind)
        if media == "image":
            detail = _detail(part)
    uuid = part.text(_UUID, characters_max=_UUID_MAX) or ""
    if source is None:
        return None
    shelf.media[media] = shelf.media.get(media, 0) + 1
    limit = shelf.limit(media)
    if shelf.media[media] > limit:
        part.problem("", f"a request may have at most {limit} parts of kind {media}")
        return None
    return MediaPart(media, source, part.path(kind), cast(MediaDetail, detail), uuid, name)


def _detail(part: Cursor) -> str:
    """Return how closely to look, "" where nothing is said."""
    place = part.values.get("image_url")
    if type(place) is not dict or place.get(_DETAIL) is None:
        return ""
    found = part.object("image_url")
    return "" if found is None else found.word(_DETAIL, DETAILS) or ""


def _url_source(part: Cursor, kind: str) -> str | None:
    """Return the URL of `{"url": …}`, or of the bare string some clients send."""
    if type(part.values.get(kind)) is str:
        return part.text(kind, characters_min=1)
    place = part.object(kind, required=True)
    if place is None:
        return None
    place.only(_URL_KEYS)
    if kind != "image_url" and place.text(_DETAIL) not in (None, "auto"):
        # Only pictures have sizes that it could mean.
        place.ignore(_DETAIL)
    return place.text("url", required=True, characters_min=1)


def _audio_source(part: Cursor) -> str | None:
    audio = part.object("input_audio", required=True)
    if audio is None:
        return None
    audio.only(_AUDIO_KEYS)
    form = audio.text("format", required=True, characters_min=1, characters_max=16)
    encoded = audio.text("data", required=True, characters_min=1)
    if form is None or encoded is None:
        return None
    if not form.isalnum():
        audio.problem("format", "must be the name of an audio format, such as 'wav'")
        return None
    return f"data:audio/{form};base64,{encoded}"


def _file_source(part: Cursor) -> str | None:
    file = part.object("file", required=True)
    if file is None:
        return None
    file.only(_FILE_KEYS)
    if file.has("file_id"):
        file.unsupported(
            "file_id", "is not supported: this gateway stores no files; send file_data"
        )
        return None
    file.text(_NAME, characters_max=_NAME_MAX)
    return file.text("file_data", required=True, characters_min=1)


def _file_name(part: Cursor) -> str:
    """Return the name of a file, "" for none; a wrong one has been noted."""
    file = part.values.get("file")
    name = file.get(_NAME) if type(file) is dict else None
    return name if type(name) is str else ""
