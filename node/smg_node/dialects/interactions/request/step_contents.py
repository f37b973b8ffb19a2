"""Contents of steps: texts, images, documents and sound, read as parts of the house's own items.

A part keeps what only this API says of it under the same key, so that it is shown as it came.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.request import MediaKind
from smg_node.core.json_cursor import Cursor, kind_of, quoted
from smg_node.dialects.openai.part_limits import PartCounter

CONTENT_TYPES: Final = frozenset({"text", "image", "document", "audio", "video"})
_MEDIA: Final[Mapping[str, MediaKind]] = {"image": "image", "document": "file", "audio": "audio"}
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("type", "text", "annotations"),
    "image": ("type", "data", "uri", "mime_type", "resolution"),
    "document": ("type", "data", "uri", "mime_type", "processing", "resolution"),
    "audio": ("type", "data", "uri", "mime_type", "channels", "sample_rate", "processing"),
}
_DEFAULT_TYPES: Final = {"image": "image/png", "document": "application/pdf", "audio": "audio/wav"}


def read_contents(
    step: Cursor, key: str, counter: PartCounter, *, said: bool = False
) -> list[dict[str, Any]]:
    """Return the parts at `key`: those of the model if they are `said`, which are texts only.

    A string is one text, an object one content. What is wrong is noted.
    """
    value = step.values.get(key)
    if value is None:
        return []
    if type(value) is str:
        return [text_part(value, said=said)]
    if type(value) is dict:
        contents = [Cursor(value, step.problems, step, key)]
    elif type(value) is list:
        contents = list(step.objects(key))
    else:
        why = f"must be a string, a content or an array of contents, not {kind_of(value)}"
        step.problem(key, why, "invalid_type")
        return []
    counter.parts += len(contents)
    if counter.parts > counter.options.parts_max:
        most = counter.options.parts_max
        step.problem(key, f"a request may have at most {most} contents")
        return []
    return [read_content(content, counter, said=said) for content in contents]


def read_content(content: Cursor, counter: PartCounter, *, said: bool = False) -> dict[str, Any]:
    """Return the part of one content; what is wrong with it is noted."""
    kind = content.text("type", required=True)
    if kind is None:
        return {}
    if kind not in CONTENT_TYPES:
        why = f"contents of type {quoted(kind)} are not supported"
        content.problem("type", why, "unsupported_content_type")
        return {}
    if kind == "video" or (said and kind != "text"):
        where = "what the model said" if said else "requests"
        content.problem("type", f"{kind} is not supported in {where}", "unsupported_media")
        return {}
    content.only(_KEYS[kind])
    if kind == "text":
        text = content.text("text", required=True)
        annotations = content.array("annotations") or []
        return text_part(text or "", said=said, annotations=annotations)
    _count(content, _MEDIA[kind], counter)
    return _media_part(content, kind)


def text_part(text: str, *, said: bool, annotations: list[Any] | None = None) -> dict[str, Any]:
    """Return the part of a text."""
    if not said:
        return {"type": "input_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": annotations or [], "logprobs": []}


def _media_part(content: Cursor, kind: str) -> dict[str, Any]:
    mime_type = content.text("mime_type", characters_max=128) or ""
    if content.has("data") and content.has("uri"):
        content.problem("uri", "cannot be combined with data")
    data = content.text("data", characters_min=1)
    uri = content.text("uri", required=data is None, characters_min=1)
    if data is None and uri is None:
        return {}
    kept = {
        key: content.values[key]
        for key in _KEYS[kind][3:]
        if content.has(key) and key != "mime_type"
    }
    if mime_type:
        kept["mime_type"] = mime_type
    source = uri or f"data:{mime_type or _DEFAULT_TYPES[kind]};base64,{data}"
    if kind == "image":
        return {"type": "input_image", "image_url": source, "detail": "auto", **kept}
    if kind == "document":
        return {"type": "input_file", "file_url" if uri else "file_data": source, **kept}
    if uri:
        content.problem("uri", "is not supported for audio: send its data", "unsupported_media")
        return {}
    form = (mime_type or _DEFAULT_TYPES["audio"]).partition("/")[2].partition(";")[0]
    if not form.isalnum():
        content.problem("mime_type", "must be an audio type, such as 'audio/wav'")
    return {"type": "input_audio", "input_audio": {"data": data, "format": form}, **kept}


def _count(content: Cursor, media: MediaKind, counter: PartCounter) -> None:
    counter.media[media] = counter.media.get(media, 0) + 1
    most = counter.limit(media)
    if counter.media[media] > most:
        content.problem("", f"a request may have at most {most} contents of kind {media}")
