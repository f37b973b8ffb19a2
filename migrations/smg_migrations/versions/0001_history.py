"""The tables of history, made in an empty database or filled from those of another gateway."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from alembic.operations import Operations
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
)
from sqlalchemy.schema import CreateIndex, CreateTable, DropTable
from sqlalchemy.types import TypeEngine

from smg_migrations.adopting import adopt, give_back, set_aside
from smg_migrations.kinds import document, extra_column, moment
from smg_migrations.names import Names, label, owner_of, quoted

revision = "0001"
down_revision = None

Kind = tuple[TypeEngine[Any], bool]
"""A type, and whether it can be NULL."""

_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "conversations": ("tenant", "id"),
    "conversation_items": ("tenant", "id"),
    "conversation_item_links": ("tenant", "conversation_id", "position"),
    "responses": ("tenant", "id"),
    "item_locations": ("tenant", "item_id"),
    "response_events": ("tenant", "response_id", "first_seq"),
    "idempotency_keys": ("tenant", "idem_key"),
}
_INDEXES: Final[Sequence[tuple[str, str, Sequence[str]]]] = (
    ("conversations", "expires", ("expires_at",)),
    ("conversation_items", "expires", ("expires_at",)),
    ("responses", "safety", ("tenant", "safety_identifier", "created_at")),
    ("responses", "previous", ("tenant", "previous_response_id")),
    ("responses", "expires", ("expires_at",)),
    ("responses", "leases", ("status", "lease_until")),
    ("item_locations", "response", ("tenant", "response_id")),
    ("response_events", "expires", ("expires_at",)),
    ("idempotency_keys", "expires", ("expires_at",)),
)
_DOCUMENTS: Final = (
    ("conversations", "metadata"),
    ("conversation_items", "doc"),
    ("responses", "input"),
    ("responses", "raw_response"),
)
_NARROW: Final = ("conversation_item_links", "item_locations")
"""Rows that are hardly more than their key: in SQLite they lie in it."""


def upgrade(*, op: Operations, names: Names) -> None:
    """Make the tables; where SMG's are in their place, these are put aside and what is in them is copied."""
    tables = _tables(names)
    aside = set_aside(op, names, list(tables))
    for table in tables.values():
        op.execute(CreateTable(table))
    for name, suffix, columns in _INDEXES:
        op.execute(CreateIndex(_index(tables[name], names, name, suffix, columns)))
    if aside is not None:
        adopt(op.get_bind(), names, tables, aside)


def downgrade(*, op: Operations, names: Names) -> None:
    """Drop the tables, and give back those that were put aside."""
    for table in reversed(_tables(names).values()):
        op.execute(DropTable(table))
    give_back(op, names)


def _tables(names: Names) -> dict[str, Table]:
    metadata = MetaData(schema=owner_of(names))
    return {name: _table(metadata, names, name, kinds) for name, kinds in _kinds().items()}


def _table(metadata: MetaData, names: Names, name: str, kinds: Mapping[str, Kind]) -> Table:
    physical = names.table(name)
    parts: list[Any] = [
        Column(quoted(names.column(name, key)), kind, key=key, nullable=nullable)
        for key, (kind, nullable) in kinds.items()
        if names.has(name, key)
    ]
    parts += [extra_column(key, extra) for key, extra in names.extra(name).items()]
    parts.append(PrimaryKeyConstraint(*_KEYS[name], name=label("pk", physical)))
    if name == "conversation_item_links":
        once = ("tenant", "conversation_id", "item_id")
        parts.append(UniqueConstraint(*once, name=label("uq", physical, "item")))
    parts += [
        CheckConstraint(
            f'"{names.column(name, key)}" IS JSON', name=label("js", physical, key)
        ).ddl_if(dialect="oracle")
        for table, key in _DOCUMENTS
        if table == name
    ]
    return Table(quoted(physical), metadata, *parts, sqlite_with_rowid=name not in _NARROW)


def _index(table: Table, names: Names, name: str, suffix: str, columns: Sequence[str]) -> Index:
    # Few rows have a lease: where it can be, the index is of those only.
    where = table.c.background == 1 if suffix == "leases" else None
    return Index(
        label("ix", names.table(name), suffix),
        *(table.c[column] for column in columns),
        postgresql_where=where,
        sqlite_where=where,
    )


def _kinds() -> Mapping[str, Mapping[str, Kind]]:
    return {**_of_conversations(), **_of_responses()}


def _of_conversations() -> Mapping[str, Mapping[str, Kind]]:
    key, time, never = (String(64), False), (moment(), False), (moment(), True)
    number, large, said = (Integer(), False), (BigInteger(), False), (document(), False)
    return {
        "conversations": {
            "tenant": key,
            "id": key,
            "created_at": time,
            "updated_at": time,
            "metadata": said,
            "version": number,
            "next_position": large,
            "expires_at": never,
        },
        "conversation_items": {
            "tenant": key,
            "id": key,
            "response_id": (String(64), True),
            "item_type": (String(64), True),
            "role": (String(16), True),
            "status": (String(16), True),
            "doc": said,
            "document_bytes": number,
            "refs": number,
            "created_at": time,
            "expires_at": never,
        },
        "conversation_item_links": {
            "tenant": key,
            "conversation_id": key,
            "position": large,
            "item_id": key,
            "added_at": time,
        },
    }


def _of_responses() -> Mapping[str, Mapping[str, Kind]]:
    key, no_key = (String(64), False), (String(64), True)
    time, never, number = (moment(), False), (moment(), True), (Integer(), False)
    said, large, small = (document(), False), (BigInteger(), False), (SmallInteger(), False)
    return {
        "responses": {
            "tenant": key,
            "id": key,
            "conversation_id": no_key,
            "previous_response_id": no_key,
            "depth": number,
            "status": (String(16), False),
            "background": small,
            "model": (String(256), True),
            "created_at": time,
            "completed_at": never,
            "input": said,
            "raw_response": said,
            "document_bytes": number,
            "safety_identifier": (String(128), True),
            "owner_node": (String(256), True),
            "lease_token": large,
            "lease_until": never,
            "cancel_requested": small,
            "expires_at": never,
            "version": number,
        },
        "item_locations": {
            "tenant": key,
            "item_id": key,
            "response_id": key,
            "side": small,
            "idx": number,
        },
        "response_events": {
            "tenant": key,
            "response_id": key,
            "first_seq": number,
            "last_seq": number,
            "payload": (LargeBinary(), False),
            "expires_at": never,
        },
        "idempotency_keys": {
            "tenant": key,
            "idem_key": (String(128), False),
            "digest": (LargeBinary(16), False),
            "response_id": no_key,
            "expires_at": never,
        },
    }
