"""Conversations bodies: new conversations, new items, new metadata."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from smg_node.core.json_cursor import Cursor
from smg_node.dialects.openai.extras import take_metadata
from smg_node.dialects.openai.frames import json_line
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.openai.request_draft import Draft, Take, problems_for, take_all
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_types import ITEM_REFERENCE
from smg_node.dialects.responses.request.input_items import read_items

ITEMS_MAX: Final = 20
"""How many items one call may bring."""


class NewConversation(NamedTuple):
    """First items of a conversation; `metadata` is its document."""

    items: tuple[ItemDoc, ...]
    metadata: bytes


class ConversationsReader:
    """Reads bodies of the Conversations API. INVALID_REQUEST names everything that is wrong with a
    body.

    An item may be a reference to an item of the tenant, resolved by the history service. `ignored` are
    the names of what had no effect in the body read last.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self.ignored: tuple[str, ...] = ()

    def new(self, body: dict[str, Any]) -> NewConversation:
        """Return a new conversation's first items, at most 20, and its metadata."""
        draft = self._taken(body, {"items": _items(0), "metadata": take_metadata})
        return NewConversation(draft.request.get("items", ()), _metadata(draft))

    def items(self, body: dict[str, Any]) -> tuple[ItemDoc, ...]:
        """Return 1 to 20 items to be appended to a conversation."""
        draft = self._taken(body, {"items": _items(1)}, required="items")
        items: tuple[ItemDoc, ...] = draft.request["items"]
        return items

    def metadata(self, body: dict[str, Any]) -> bytes:
        """Return the document of the metadata that takes the place of the old; null clears it."""
        return _metadata(self._taken(body, {"metadata": take_metadata}, present="metadata"))

    def _taken(
        self,
        body: dict[str, Any],
        table: Mapping[str, Take],
        *,
        required: str = "",
        present: str = "",
    ) -> Draft:
        draft = Draft(self._options)
        cursor = Cursor(body, problems_for(self._options))
        take_all(draft, cursor, table)
        if required and not cursor.has(required):
            cursor.raw(required, required=True)
        if present and present not in body:
            cursor.raw(present, required=True)
        cursor.problems.check()
        self.ignored = draft.ignored_in(cursor.problems)
        return draft


def _items(at_least: int) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        items = read_items(
            cursor, key, PartCounter(draft.options), at_least=at_least, at_most=ITEMS_MAX
        )
        draft.request["items"] = items

    return take


def references_in(items: tuple[ItemDoc, ...]) -> tuple[str, ...]:
    """Return the ids that references among these items name, in order."""
    return tuple(item.id for item in items if item.type == ITEM_REFERENCE)


def _metadata(draft: Draft) -> bytes:
    return json_line(draft.view.get("metadata", {}))
