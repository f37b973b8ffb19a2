"""Row mapping: records as rows, and back, with logical names on both sides."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import (
    DOCUMENT_BYTES_MAX,
    Conversation,
    Item,
    Location,
    Status,
    StoredResponse,
)
from smg_storage.sql.schema.tables import Tables

Values = dict[str, Any]


def conversation_values(record: Conversation) -> Values:
    """Return the row of a conversation without items."""
    return {
        "id": record.id,
        "created_at": record.created_us,
        "updated_at": record.updated_us,
        "metadata": record.metadata,
        "version": record.version,
        "next_position": 1,
        "expires_at": record.expires_us,
    }


def conversation_of(row: Row[Any]) -> Conversation:
    """Return the conversation of a row."""
    return Conversation(
        id=row.id,
        created_us=row.created_at,
        updated_us=row.updated_at,
        metadata=row.metadata,
        version=row.version,
        expires_us=row.expires_at,
    )


def item_values(record: Item) -> Values:
    """Return the row of an item, all but `refs`."""
    return {
        "id": record.id,
        "response_id": record.response_id,
        "item_type": record.item_type,
        "role": record.role,
        "status": record.status,
        "doc": record.document,
        "document_bytes": len(record.document),
        "created_at": record.created_us,
        "expires_at": record.expires_us,
    }


def item_of(row: Row[Any]) -> Item:
    """Return the item of a row."""
    return Item(
        id=row.id,
        item_type=row.item_type,
        document=row.doc,
        created_us=row.created_at,
        role=row.role,
        status=row.status,
        response_id=row.response_id,
        expires_us=row.expires_at,
    )


def response_values(record: StoredResponse) -> Values:
    """Return the row of a response."""
    return {
        "id": record.id,
        "conversation_id": record.conversation_id,
        "previous_response_id": record.previous_response_id,
        "depth": record.depth,
        "status": record.status.value,
        "background": int(record.background),
        "model": record.model,
        "created_at": record.created_us,
        "completed_at": record.completed_us,
        "input": record.input,
        "raw_response": record.response,
        "document_bytes": len(record.input) + len(record.response),
        "safety_identifier": record.safety_identifier,
        "owner_node": record.owner,
        "lease_token": record.lease_token,
        "lease_until": record.lease_until_us,
        "cancel_requested": int(record.cancel_requested),
        "expires_at": record.expires_us,
        "version": record.version,
    }


def response_of(row: Row[Any]) -> StoredResponse:
    """Return the response of a row. CORRUPT if it has a status that there is none of."""
    try:
        status = Status(row.status)
    except ValueError:
        raise StoreError(StoreErrorKind.CORRUPT, f"response {row.id} has no known status") from None
    return StoredResponse(
        id=row.id,
        status=status,
        model=row.model,
        created_us=row.created_at,
        input=row.input,
        response=row.raw_response,
        conversation_id=row.conversation_id,
        previous_response_id=row.previous_response_id,
        depth=row.depth,
        background=bool(row.background),
        completed_us=row.completed_at,
        safety_identifier=row.safety_identifier,
        owner=row.owner_node,
        lease_token=row.lease_token,
        lease_until_us=row.lease_until,
        cancel_requested=bool(row.cancel_requested),
        expires_us=row.expires_at,
        version=row.version,
    )


def location_values(record: Location) -> Values:
    """Return the row of a location."""
    return {
        "item_id": record.item_id,
        "response_id": record.response_id,
        "side": record.side.value,
        "idx": record.index,
    }


def of_tenant(tables: Tables, table: str, tenant: str, rows: Sequence[Values]) -> list[Values]:
    """Return rows for an INSERT: a tenant's, and without columns that are not there."""
    skipped = tables.naming.of(table).skip_columns
    return [
        {"tenant": tenant, **{key: value for key, value in row.items() if key not in skipped}}
        for row in rows
    ]


def new_values(tables: Tables, table: str, tenant: str, row: Mapping[str, Any]) -> Values:
    """Return the parameters of an UPDATE that replaces a row."""
    skipped = tables.naming.of(table).skip_columns
    values = {f"new_{key}": value for key, value in row.items() if key not in (*skipped, "id")}
    return {"of_tenant": tenant, "of_id": row["id"], **values}


def check_size(document: bytes) -> None:
    """Return if it can be kept; TOO_LARGE."""
    if len(document) > DOCUMENT_BYTES_MAX:
        raise StoreError(StoreErrorKind.TOO_LARGE, f"a document of {len(document)} bytes")
