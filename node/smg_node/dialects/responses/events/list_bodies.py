"""List bodies: pages of items, and the small objects around responses and conversations."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.events import Usage
from smg_node.core.json_cursor import Cursor, Problems, quoted
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.responses.events.response_object import usage_object
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from, item_of, list_of
from smg_node.dialects.responses.request.output_parameters import read_include
from smg_storage.ids import is_id
from smg_storage.records import PageAsk

LIMIT_MAX: Final = 100
LIMIT: Final = 20
NUMBER_DIGITS_MAX: Final = 18


def page_of(query: Mapping[str, str]) -> PageAsk:
    """Return the page that a query asks for; INVALID_REQUEST for an invalid one."""
    order = query.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid(f"order: must be 'asc' or 'desc'; got {quoted(order)}", "order")
    spelled = query.get("limit", str(LIMIT))
    limit = _number(spelled)
    if limit is None or not 1 <= limit <= LIMIT_MAX:
        why = f"limit: must be an integer between 1 and {LIMIT_MAX}; got {quoted(spelled)}"
        raise invalid(why, "limit")
    after = query.get("after", "")
    if after and not is_id(after):
        raise unknown_cursor(after)
    return PageAsk(limit=limit, after=after, newest_first=order == "desc")


def unknown_cursor(after: str) -> SmgError:
    """Return the error for a page that begins after an item that is not in the list."""
    return invalid(f"after: there is no {quoted(after)} in this list", "after")


def starting_after_of(query: Mapping[str, str]) -> int | None:
    """Return after which event of a stream to go on; None from the first one on."""
    spelled = query.get("starting_after")
    if spelled is None:
        return None
    number = _number(spelled)
    if number is None:
        why = f"starting_after: must be an integer of at least 0; got {quoted(spelled)}"
        raise invalid(why, "starting_after")
    return number


def include_of(values: Iterable[str]) -> tuple[str, ...]:
    """Return the `include` values of a query; INVALID_REQUEST for an unknown one."""
    problems = Problems()
    include = read_include(Cursor({"include": list(values)}, problems))
    problems.check()
    return include


def _number(spelled: str) -> int | None:
    plain = spelled.isascii() and spelled.isdigit() and len(spelled) <= NUMBER_DIGITS_MAX
    return int(spelled) if plain else None


def list_body(documents: Sequence[bytes], *, has_more: bool) -> bytes:
    """Return a page of items, byte for byte as they are stored."""
    items = [item_of(document) for document in documents]
    return json_line(
        {
            "object": "list",
            "data": msgspec.Raw(list_of(items)),
            "first_id": items[0].id if items else None,
            "last_id": items[-1].id if items else None,
            "has_more": has_more,
        }
    )


def deleted_response(response_id: str) -> bytes:
    """Return the body that confirms a response's deletion."""
    return json_line({"id": response_id, "object": "response", "deleted": True})


def deleted_conversation(conversation_id: str) -> bytes:
    """Return the body that confirms a conversation's deletion."""
    return json_line({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


def conversation_body(conversation_id: str, *, created_s: int, metadata: bytes) -> bytes:
    """Return the object of a conversation; `metadata` is the stored document."""
    return json_line(
        {
            "id": conversation_id,
            "object": "conversation",
            "created_at": created_s,
            "metadata": msgspec.Raw(metadata),
        }
    )


def compaction_item(item_id: str, encrypted_content: str) -> ItemDoc:
    """Return the item that stands for a compacted history."""
    values = {"id": item_id, "type": "compaction", "encrypted_content": encrypted_content}
    return item_from(values)


def compaction_body(
    compaction_id: str, *, created_s: int, output: Sequence[ItemDoc], usage: Usage
) -> bytes:
    """Return the answer of `POST /v1/responses/compact`."""
    return json_line(
        {
            "id": compaction_id,
            "object": "response.compaction",
            "created_at": created_s,
            "output": msgspec.Raw(list_of(output)),
            "usage": usage_object(usage),
        }
    )


def input_tokens_body(input_tokens: int) -> bytes:
    """Return the answer of `POST /v1/responses/input_tokens`."""
    return json_line({"object": "response.input_tokens", "input_tokens": input_tokens})
