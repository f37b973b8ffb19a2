"""Content parts of items: messages, outputs of calls, and reasoning.

All functions return values that are complete by the public schema: shorthand is written out, and
absent optional fields have their defaults. Unknown keys stay.
"""

from typing import Any, Final

from smg_node.core.generation.request import DETAILS, MediaKind
from smg_node.core.json_cursor import Cursor, kind_of
from smg_node.dialects.openai.part_limits import PartCounter

_SAID: Final = ("output_text", "refusal")
_SHOWN: Final = ("input_text", "input_image", "input_file", "input_audio")
_RETURNED: Final = ("input_text", "input_image", "input_file")
# What is known of a part; other keys stay in the item, and have no effect.
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "input_text": ("type", "text"),
    "output_text": ("type", "text", "annotations", "logprobs"),
    "refusal": ("type", "refusal"),
    "input_image": ("type", "image_url", "detail", "file_id"),
    "input_file": ("type", "file_data", "file_url", "filename", "file_id"),
    "input_audio": ("type", "input_audio"),
}
_NO_FILES: Final = "is not supported: this gateway stores no files; send the content itself"
_MEDIA: Final[dict[str, MediaKind]] = {
    "input_image": "image",
    "input_file": "file",
    "input_audio": "audio",
}


def message_content(message: Cursor, role: str, shelf: PartCounter) -> list[Any] | None:
    """Return the parts of a message of this role; None if something is wrong, which is noted."""
    content = message.raw("content", required=True)
    said = role == "assistant"
    if type(content) is str:
        text = {"type": "output_text" if said else "input_text", "text": content}
        return [text | {"annotations": [], "logprobs": []} if said else text]
    if type(content) is list and not content and not said:
        message.problem("content", "must not be an empty array")
        return None
    return _parts(message, "content", _SAID if said else _SHOWN, shelf)


def call_output(item: Cursor, shelf: PartCounter) -> str | list[Any] | None:
    """Return the output of a call: a string, or parts; None if something is wrong."""
    output = item.raw("output", required=True)
    return output if type(output) is str else _parts(item, "output", _RETURNED, shelf)


def thought(item: Cursor, key: str, kind: str) -> list[Any]:
    """Return the parts of a reasoning item at `key`, all of type `kind`; none if there are none."""
    parts = []
    for part in item.objects(key):
        part.word("type", (kind,), required=True)
        part.text("text", required=True)
        parts.append(part.values)
    return parts


def _parts(item: Cursor, key: str, kinds: tuple[str, ...], shelf: PartCounter) -> list[Any] | None:
    content = item.values.get(key)
    if content is None:
        return None
    if type(content) is not list:
        why = f"must be a string or an array of parts, not {kind_of(content)}"
        item.problem(key, why, "invalid_type")
        return None
    shelf.parts += len(content)
    if shelf.parts > shelf.options.parts_max:
        item.problem(key, f"a request may have at most {shelf.options.parts_max} parts")
        return None
    return [_part(part, kinds, shelf) for part in item.objects(key)]


def _part(part: Cursor, kinds: tuple[str, ...], shelf: PartCounter) -> dict[str, Any]:
    """Return a part, written out; what is wrong with it is noted."""
    kind = part.word("type", kinds, required=True)
    values = part.values
    if kind is not None:
        part.only(_KEYS[kind])
    match kind:
        case "input_text":
            part.text("text", required=True)
        case "output_text":
            part.text("text", required=True)
            rows = {key: part.array(key) or [] for key in ("annotations", "logprobs")}
            return {**values, **rows}
        case "refusal":
            part.text("refusal", required=True)
        case "input_image" | "input_file" | "input_audio":
            _check_media(part, kind)
            _count(part, _MEDIA[kind], shelf)
            if kind == "input_image" and not part.has("detail"):
                return {**values, "detail": "auto"}
        case _:
            pass
    return values


def _check_media(part: Cursor, kind: str) -> None:
    if part.has("file_id"):
        part.unsupported("file_id", _NO_FILES)
    elif kind == "input_image":
        part.text("image_url", required=True, characters_min=1)
        part.word("detail", DETAILS)
    elif kind == "input_audio":
        _check_audio(part)
    else:
        part.text("filename", characters_max=256)
        source = "file_url" if part.has("file_url") else "file_data"
        part.text(source, required=True, characters_min=1)


def _check_audio(part: Cursor) -> None:
    audio = part.object("input_audio", required=True)
    if audio is None:
        return
    audio.only(("data", "format"))
    audio.text("data", required=True, characters_min=1)
    form = audio.text("format", required=True, characters_min=1, characters_max=16)
    if form is not None and not form.isalnum():
        audio.problem("format", "must be the name of an audio format, such as 'wav'")


def _count(part: Cursor, media: MediaKind, shelf: PartCounter) -> None:
    shelf.media[media] = shelf.media.get(media, 0) + 1
    limit = shelf.limit(media)
    if shelf.media[media] > limit:
        part.problem("", f"a request may have at most {limit} parts of kind {media}")
