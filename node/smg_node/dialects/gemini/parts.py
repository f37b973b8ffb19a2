"""Parts of a content: which of its fields a part is about, media, calls and their results."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import MediaKind, MediaPart, Part, TextPart, ToolCall
from smg_node.core.json_cursor import Cursor
from smg_node.dialects.gemini.spelling import names, spelled
from smg_node.dialects.openai.part_limits import PartCounter

DATA: Final = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
)  # fmt: skip
"""What a part can be; it is one of them."""
EXECUTED: Final = frozenset(DATA[5:])
"""What only Google's servers execute: it may stand in a history, and no template shows it."""
_KEYS: Final = names(*DATA, "thought", "thoughtSignature")
_BLOB_KEYS: Final = names("mimeType", "data")
_FILE_KEYS: Final = names("mimeType", "fileUri")
_CALL_KEYS: Final = names("id", "name", "args")
_RESULT_KEYS: Final = names("id", "name", "response", "parts")
_KINDS: Final[Mapping[str, MediaKind]] = {"image": "image", "video": "video", "audio": "audio"}
_ID_MAX: Final = 256
_PIECE: Final = 1 << 18
"""Digits that are looked at in one go."""
NAME_MAX: Final = 128
_OUTPUT: Final = "output"
_encode: Final = msgspec.json.Encoder().encode


def kind_of_part(part: Cursor) -> str:
    """Return the field of `DATA` that this part has; "" for none, which only a signature may have, and for several.

    Both mistakes are noted.
    """
    part.only(_KEYS)
    found = [name for name in DATA if part.has(spelled(part, name))]
    if len(found) == 1:
        return found[0]
    if found:
        part.problem("", f"has {' and '.join(found)}; a part has one of them")
    elif not part.has(spelled(part, "thoughtSignature")):
        part.problem("", f"must have one of {', '.join(DATA[:5])}")
    return ""


def read_media(part: Cursor, kind: str, shelf: PartCounter) -> MediaPart | None:
    """Return what `inlineData` or `fileData` is; None if something is wrong, which is noted."""
    key = spelled(part, kind)
    place = part.object(key)
    if place is None:
        return None
    place.only(_BLOB_KEYS if kind == "inlineData" else _FILE_KEYS)
    inline = kind == "inlineData"
    mime = place.text(
        spelled(place, "mimeType"), required=inline, characters_min=1, characters_max=256
    )
    source = place.text(
        "data" if inline else spelled(place, "fileUri"), required=True, characters_min=1
    )
    if source is None or (inline and mime is None):
        return None
    media = _KINDS.get((mime or "").partition("/")[0], "file")
    shelf.media[media] = shelf.media.get(media, 0) + 1
    limit = shelf.limit(media)
    if shelf.media[media] > limit:
        part.problem("", f"a request may have at most {limit} parts of kind {media}")
        return None
    if inline:
        source = f"data:{mime};base64,{_standard(source)}"
    return MediaPart(media, source, part.path(key))


def _standard(data: str) -> str:
    """Return bytes in the standard alphabet of base64 and with padding.

    This API takes bytes in either alphabet, with or without padding, as all of Google's do, and Google's library for
    Python sends the URL's alphabet.
    """
    if "-" in data or "_" in data:
        # In pieces: each takes less than a millisecond, in which nothing else has the interpreter.
        data = "".join(
            [
                data[at : at + _PIECE].replace("-", "+").replace("_", "/")
                for at in range(0, len(data), _PIECE)
            ]
        )
    return data + "=" * (-len(data) % 4)


def read_call(part: Cursor, made_id: str) -> ToolCall | None:
    """Return a call of the history; one without an id gets `made_id`."""
    call = part.object(spelled(part, "functionCall"))
    if call is None:
        return None
    call.only(_CALL_KEYS)
    name = call.text("name", required=True, characters_min=1, characters_max=NAME_MAX)
    call_id = call.text("id", characters_max=_ID_MAX)
    given = call.object("args")
    if name is None:
        return None
    arguments = "{}" if given is None else _encode(given.values).decode()
    return ToolCall(call_id or made_id, name, arguments)


class Result(msgspec.Struct, frozen=True):
    """A result of a call: the call's `id`, "" where the client told none, and what a tool turn says."""

    call_id: str
    name: str
    content: str | tuple[Part, ...]


def read_result(part: Cursor, shelf: PartCounter) -> Result | None:
    """Return a result; None if something is wrong, which is noted."""
    result = part.object(spelled(part, "functionResponse"))
    if result is None:
        return None
    result.only(_RESULT_KEYS)
    name = result.text("name", required=True, characters_min=1, characters_max=NAME_MAX)
    call_id = result.text("id", characters_max=_ID_MAX)
    response = result.object("response")
    media = [_result_media(inside, shelf) for inside in result.objects("parts")]
    if name is None:
        return None
    said = _said({} if response is None else response.values)
    shown = tuple(each for each in media if each is not None)
    return Result(call_id or "", name, (TextPart(said), *shown) if shown else said)


def _result_media(part: Cursor, shelf: PartCounter) -> MediaPart | None:
    shelf.parts += 1
    for kind in ("inlineData", "fileData"):
        if part.has(spelled(part, kind)):
            return read_media(part, kind, shelf)
    part.problem("", "must have inlineData or fileData")
    return None


def _said(response: Mapping[str, Any]) -> str:
    """Return what a result says: its `output` if that is all there is, else all of it as JSON."""
    if len(response) == 1 and _OUTPUT in response:
        output = response[_OUTPUT]
        return output if type(output) is str else _encode(output).decode()
    return _encode(response).decode()
