"""Write equality: whether what is there is what was to be written, so
that the write was done before.
"""

from collections.abc import Collection
from typing import Final

from smg_storage.records import Conversation, Item, Patch, StoredResponse

_RESPONSE: Final = (
    ("status", "status"),
    ("model", "model"),
    ("created_us", "created_at"),
    ("input", "input"),
    ("response", "raw_response"),
    ("conversation_id", "conversation_id"),
    ("previous_response_id", "previous_response_id"),
    ("background", "background"),
    ("completed_us", "completed_at"),
    ("safety_identifier", "safety_identifier"),
)
"""What makes a response what it is, and the column it is in. Who runs it, and when it goes, may have changed."""
_ITEM: Final = (
    ("item_type", "item_type"),
    ("role", "role"),
    ("status", "status"),
    ("document", "doc"),
)


def same_conversation(found: Conversation, given: Conversation) -> bool:
    """Return whether this conversation was made from that."""
    return found.created_us == given.created_us and found.metadata == given.metadata


def same_item(found: Item, given: Item, *, without: Collection[str] = ()) -> bool:
    """Return whether they say the same, apart from columns that are not kept."""
    return all(
        getattr(found, name) == getattr(given, name)
        for name, column in _ITEM
        if column not in without
    )


def same_response(
    found: StoredResponse, given: StoredResponse, *, without: Collection[str] = ()
) -> bool:
    """Return whether they say the same, apart from columns that are not kept."""
    return all(
        getattr(found, name) == getattr(given, name)
        for name, column in _RESPONSE
        if column not in without
    )


def is_patched(found: StoredResponse, patch: Patch, *, without: Collection[str] = ()) -> bool:
    """Return whether a response is already what a patch would make of it."""
    wanted = (
        (patch.status, found.status, "status"),
        (patch.response, found.response, "raw_response"),
        (patch.completed_us, found.completed_us, "completed_at"),
        (patch.expires_us, found.expires_us, "expires_at"),
    )
    return all(new in (None, old) for new, old, column in wanted if column not in without)
