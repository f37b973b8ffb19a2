"""Item document: canonical JSON of one item of a conversation, with its id, type, role and status.

A document is canonical: the id first, then the type, then everything else in the order it came in,
as one line of JSON that can stand inside an SSE frame. It is made once; from then on its bytes are
stored, sent and read back as they are, and decoded only where values are needed.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.core.cooperative_steps import ITEM_WEIGHT, Steps, whole
from smg_node.dialects.openai.frames import json_line, json_text
from smg_node.dialects.responses.items.item_types import ITEM_REFERENCE, kind_named
from smg_storage.ids import Chance, new_id

ITEM_BYTES_MAX: Final = 10 << 20
"""No document is longer."""
_SCAN_RATIO: Final = 8
"""Finding where items begin and end is so many times as quick as making turns of them."""
_OWN_ID: Final = re.compile(r"[a-z]{2,8}_[A-Za-z0-9_-]{1,55}\Z")


@dataclass(frozen=True, slots=True)
class ItemDoc:
    """One item of input, history or output, as it is kept and shown.

    `id` is empty until it has one; `role` and `status` are where the type has none. Of an
    item_reference `id` is the id of the referenced item.
    """

    id: str
    type: str
    role: str
    status: str
    document: bytes

    def values(self) -> dict[str, Any]:
        """Return the decoded document."""
        decoded: dict[str, Any] = _decode(self.document)
        return decoded

    @property
    def weight(self) -> int:
        """Cost of processing it, in the unit of cooperative steps: bytes, plus a constant."""
        return ITEM_WEIGHT + len(self.document)


class _Head(msgspec.Struct):
    type: str
    id: str = ""
    role: Any = ""
    """Only that of a message is checked: in any other item it is one more key of the client's."""
    status: str | None = ""


_decode: Final = msgspec.json.Decoder().decode
_head: Final = msgspec.json.Decoder(_Head).decode


def item_of(document: bytes) -> ItemDoc:
    """Return the item of a stored document; ValueError for an invalid one."""
    try:
        head = _head(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not the document of an item: {error}") from error
    role = head.role if type(head.role) is str else ""
    return ItemDoc(head.id, head.type, role, head.status or "", document)


def items_of(documents: bytes) -> tuple[ItemDoc, ...]:
    """Return the items of a stored JSON list, each byte for byte; ValueError for an invalid one."""
    return whole(items_in_steps(documents))


def items_in_steps(documents: bytes) -> Steps[tuple[ItemDoc, ...]]:
    """Return what `items_of` does, in steps."""
    try:
        rows = _rows(documents)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a list of items: {error}") from error
    yield len(documents) // _SCAN_RATIO
    items = []
    for row in rows:
        items.append(item_of(bytes(row)))
        yield items[-1].weight
    return tuple(items)


_rows: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def item_from(values: Mapping[str, Any]) -> ItemDoc:
    """Return the item of checked values; an id that a client may not choose is dropped."""
    spelled = values.get("id")
    item_id = spelled if type(spelled) is str and _is_usable(spelled, values["type"]) else ""
    first: dict[str, Any] = {"id": item_id} if item_id else {}
    others = {key: value for key, value in values.items() if key not in ("id", "type")}
    role, status = values.get("role"), values.get("status")
    return ItemDoc(
        item_id,
        values["type"],
        role if type(role) is str else "",
        status if type(status) is str else "",
        json_line({**first, "type": values["type"], **others}),
    )


def _is_usable(item_id: str, kind: str) -> bool:
    return kind == ITEM_REFERENCE or _OWN_ID.match(item_id) is not None


def assign_ids(
    items: Sequence[ItemDoc],
    *,
    thread: str,
    now_ms: int,
    chance: Chance,
    taken: AbstractSet[str] = frozenset(),
) -> tuple[ItemDoc, ...]:
    """Return the items, each with an id of its own.

    A client's own id stays, unless it is in `taken` or an earlier item has it. References must be resolved.
    """
    seen: set[str] = set()
    named: list[ItemDoc] = []
    for item in items:
        assert item.type != ITEM_REFERENCE, "a reference has no id of its own"
        if not item.id or item.id in taken or item.id in seen:
            kind = kind_named(item.type)
            assert kind is not None, "the type was checked when it was read"
            item = with_id(item, new_id(kind.prefix, thread, now_ms=now_ms, chance=chance))
        seen.add(item.id)
        named.append(item)
    return tuple(named)


def with_id(item: ItemDoc, item_id: str) -> ItemDoc:
    """Return the same item under this id."""
    bare = item.document
    if item.id:
        # Canonical, so the id comes first, and its spelling needs no escapes.
        head = b'{"id":%b,' % json_text(item.id)
        assert bare.startswith(head)
        bare = b"{" + bare[len(head) :]
    document = b'{"id":%b,' % json_text(item_id) + bare[1:]
    return ItemDoc(item_id, item.type, item.role, item.status, document)


def length_of(items: Sequence[ItemDoc]) -> int:
    """Return the total bytes of their documents."""
    return sum(len(item.document) for item in items)


def list_of(items: Sequence[ItemDoc]) -> bytes:
    """Return the documents as one JSON list; `items_of` is the inverse."""
    return b"[" + b",".join([item.document for item in items]) + b"]"
