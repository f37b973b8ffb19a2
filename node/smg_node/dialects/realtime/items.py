"""Items of a realtime conversation: read from a client's events, shown in the server's, rendered as items of Responses.

An item is kept in both forms. What is shown is the public object, without nulls. What a prompt is made of is the item
that the Responses API has for the same, read by its own reader: so the two APIs cannot render one conversation differently.
Sound is known by its words only: `input_audio` and `output_audio` have a transcript, and a prompt has that.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.request.input_items import read_item as read_response_item

NewId: TypeAlias = Callable[[str], str]
"""Makes an id with this prefix."""

ROOT: Final = "root"
"""What a client names as the predecessor of an item that is to be the first."""
REFERENCE: Final = "item_reference"
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "system": ("input_text",),
    "user": ("input_text", "input_audio", "input_image"),
    "assistant": ("output_text", "output_audio"),
}
_PART_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "input_text": ("type", "text"),
    "output_text": ("type", "text"),
    "input_image": ("type", "image_url", "detail"),
    "input_audio": ("type", "audio", "transcript"),
    "output_audio": ("type", "audio", "transcript"),
}
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "message": ("role", "content"),
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id", "output"),
}
_ALL: Final = ("id", "type", "object", "status")
_DETAILS: Final = ("auto", "low", "high")
_WORDS_OF: Final = {"input_audio": "input_text", "output_audio": "output_text"}
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_NO_SOUND: Final = (
    "is sound without its words: give a transcript, this session has no voice to hear it with"
)


@dataclass(frozen=True, slots=True)
class Item:
    """One item. `shown` is the public object; `prompt` is the same as an item of Responses.

    `before` and `after` are what the model thought and what its vendor wants back, of which no client knows. `is_cut`: it is
    a call that the model did not say to its end; the status that a client gives to an item has no effect.
    """

    id: str
    shown: Mapping[str, Any]
    prompt: ItemDoc
    before: tuple[ItemDoc, ...] = ()
    after: tuple[ItemDoc, ...] = ()
    is_cut: bool = False

    @property
    def size(self) -> int:
        """How many bytes its documents have."""
        return sum(len(doc.document) for doc in (*self.before, self.prompt, *self.after))


def shown_item(item_id: str, kind: str, status: str, **fields: Any) -> dict[str, Any]:
    """Return the public object of an item."""
    return {"id": item_id, "object": "realtime.item", "type": kind, "status": status, **fields}


def read_item(item: Cursor, counter: PartCounter, new_id: NewId) -> Item | None:
    """Return the item that a client sends; None if something is wrong with it, which is noted.

    One without an id gets one, and so does a call without a `call_id`.
    """
    before = len(item.problems)
    kind = item.text("type", required=True)
    if kind is None:
        return None
    if kind not in _KEYS:
        known_kinds = ", ".join(map(repr, _KEYS))
        why = f"items of type {quoted(kind)} are not supported; {known_kinds} are"
        item.problem("type", why, "unsupported_item_type")
        return None
    item.only((*_ALL, *_KEYS[kind]))
    item_id = _id_of(item) or new_id("item")
    known = {key: item.values[key] for key in ("type", "status", *_KEYS[kind]) if item.has(key)}
    shown = {key: known[key] for key in _KEYS[kind] if key in known}
    if kind == "message":
        parts = _parts(item)
        known["content"] = [_for_prompt(part) for part in parts]
        shown["content"] = [_for_show(part) for part in parts]
    elif kind == "function_call":
        shown["call_id"] = known["call_id"] = known.get("call_id") or new_id("call")
    else:
        # Parts, which an output may have in Responses, have no form in this API.
        item.text("output", required=True)
    if len(item.problems) > before:
        return None
    doc = read_response_item(item.standing_for({"id": item_id, **known}), counter)
    if doc is None:
        return None
    return Item(item_id, shown_item(item_id, kind, doc.status, **shown), doc)


def _id_of(item: Cursor) -> str | None:
    item_id = item.text("id")
    if item_id is not None and not _ID.match(item_id):
        item.problem("id", "must be 1 to 64 letters, digits, underscores and hyphens")
    elif item_id == ROOT:
        item.problem(
            "id", f"must not be {ROOT!r}, which stands for the beginning of a conversation"
        )
    return item_id


def _parts(item: Cursor) -> list[dict[str, Any]]:
    """Return the parts of a message as they came; what is wrong with them is noted."""
    role = item.word("role", tuple(_PARTS), required=True)
    if role is None:
        return []
    at_least = 0 if role == "assistant" else 1
    parts = []
    for part in item.objects("content", required=True, at_least=at_least):
        kind = part.word("type", _PARTS[role], required=True)
        if kind is None:
            continue
        part.only(_PART_KEYS[kind])
        _check_part(part, kind)
        parts.append(part.values)
    return parts


def _check_part(part: Cursor, kind: str) -> None:
    if kind in _WORDS_OF:
        if part.text("transcript") is None and not part.problems:
            part.problem("", _NO_SOUND)
    elif kind == "input_image":
        source = part.text("image_url", required=True)
        if source is not None and not source.startswith("data:"):
            part.problem("image_url", "must be a data URI, such as 'data:image/png;base64,…'")
        part.word("detail", _DETAILS)
    else:
        part.text("text", required=True)


def _for_prompt(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as Responses has it."""
    words = _WORDS_OF.get(part["type"])
    if words is not None:
        return {"type": words, "text": part.get("transcript")}
    return {key: part[key] for key in _PART_KEYS[part["type"]] if part.get(key) is not None}


def _for_show(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part as it is shown: without its sound, which is not kept, and without nulls."""
    keys = (key for key in _PART_KEYS[part["type"]] if key != "audio")
    return {key: part[key] for key in keys if part.get(key) is not None}
