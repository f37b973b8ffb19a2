"""Write equality: which records are the same one again, and what they cost. Pure."""

from collections.abc import Mapping
from typing import Final

import msgspec

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.memory.rows import ROW_BYTES
from smg_storage.records import (
    DOCUMENT_BYTES_MAX,
    NEVER_US,
    Conversation,
    Item,
    Patch,
    StoredResponse,
)

_EPHEMERAL: Final[Mapping[str, object]] = {
    "depth": 0,
    "expires_us": NEVER_US,
    "owner": "",
    "lease_token": 0,
    "lease_until_us": 0,
    "cancel_requested": False,
    "version": 0,
}


def same_conversation(one: Conversation, other: Conversation) -> bool:
    """Return whether they were made as the same: what happens to one later does not count."""
    return one.created_us == other.created_us and one.metadata == other.metadata


def same_item(one: Item, other: Item) -> bool:
    """Return whether they say the same."""
    return (one.item_type, one.role, one.status, one.document) == (
        other.item_type,
        other.role,
        other.status,
        other.document,
    )


def same_response(one: StoredResponse, other: StoredResponse) -> bool:
    """Return whether they say the same, whichever node runs them."""
    replace = msgspec.structs.replace
    return replace(one, **_EPHEMERAL) == replace(other, **_EPHEMERAL)


def patched(record: StoredResponse, patch: Patch) -> StoredResponse:
    """Return what a patch makes of a response."""
    changed = {
        name: value for name, value in msgspec.structs.asdict(patch).items() if value is not None
    }
    return msgspec.structs.replace(record, **changed)


def cost(*documents: bytes) -> int:
    """Return what a row with these documents takes; TOO_LARGE if one of them is longer than a document may be."""
    for document in documents:
        if len(document) > DOCUMENT_BYTES_MAX:
            raise StoreError(
                StoreErrorKind.TOO_LARGE,
                f"a document of {len(document)} bytes; {DOCUMENT_BYTES_MAX} is the most",
            )
    return ROW_BYTES + sum(map(len, documents))


def conflict(what: str, record_id: str) -> StoreError:
    """Return the error that something else is there."""
    return StoreError(StoreErrorKind.CONFLICT, f"{what} {record_id} is there and is another one")


def bad_reference(what: str, missing: str) -> StoreError:
    """Return the error that something is not there."""
    return StoreError(StoreErrorKind.BAD_REFERENCE, f"no {what} {missing}", missing=missing)
