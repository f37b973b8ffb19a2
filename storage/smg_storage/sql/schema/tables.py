"""Tables of history, under whatever names they have.

A column's key is its logical name, so that statements are the same under every naming. There are no foreign keys: what
is over may go in any order, and a table may lack what another one points at. Oracle gets BLOBs that are checked to be
JSON; other databases have a type for it, or do without.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    quoted_name,
)
from sqlalchemy.types import TypeEngine

from smg_storage.sql.schema.naming import LOGICAL, Naming
from smg_storage.sql.schema.revision import VERSION_TABLE
from smg_storage.sql.schema.types import Document, UtcTime, Word, octets
from smg_storage.text_limits import (
    ID_CHARACTERS,
    KEY_CHARACTERS,
    NAME_CHARACTERS,
    TYPE_CHARACTERS,
    WORD_CHARACTERS,
)

ID_CHARS: Final = ID_CHARACTERS
KEY_CHARS: Final = KEY_CHARACTERS
_INDEX_TABLE_CHARS: Final = 36
"""Of a table's name that go into those of its indexes, which have a limit of their own."""

Kind = tuple[TypeEngine[Any], bool]
"""A type, and whether it can be NULL."""


def _id() -> Kind:
    return String(ID_CHARS), False


def _no_id() -> Kind:
    return Word(ID_CHARS), True


def _never() -> Kind:
    return UtcTime(or_never=True), True


def _kinds() -> Mapping[str, Mapping[str, Kind]]:
    return {**_kinds_of_conversations(), **_kinds_of_responses()}


def _kinds_of_conversations() -> Mapping[str, Mapping[str, Kind]]:
    time, document, number = (UtcTime(), False), (Document(), False), (Integer(), False)
    return {
        "conversations": {
            "tenant": _id(),
            "id": _id(),
            "created_at": time,
            "updated_at": time,
            "metadata": document,
            "version": number,
            "next_position": (BigInteger(), False),
            "expires_at": _never(),
        },
        "conversation_items": {
            "tenant": _id(),
            "id": _id(),
            "response_id": _no_id(),
            "item_type": (Word(TYPE_CHARACTERS), True),
            "role": (Word(WORD_CHARACTERS), True),
            "status": (Word(WORD_CHARACTERS), True),
            "doc": document,
            "document_bytes": number,
            "refs": number,
            "created_at": time,
            "expires_at": _never(),
        },
        "conversation_item_links": {
            "tenant": _id(),
            "conversation_id": _id(),
            "position": (BigInteger(), False),
            "item_id": _id(),
            "added_at": time,
        },
    }


def _kinds_of_responses() -> Mapping[str, Mapping[str, Kind]]:
    time, document, number = (UtcTime(), False), (Document(), False), (Integer(), False)
    return {
        "responses": {
            "tenant": _id(),
            "id": _id(),
            "conversation_id": _no_id(),
            "previous_response_id": _no_id(),
            "depth": number,
            "status": (String(16), False),
            "background": (SmallInteger(), False),
            "model": (Word(NAME_CHARACTERS), True),
            "created_at": time,
            "completed_at": _never(),
            "input": document,
            "raw_response": document,
            "document_bytes": number,
            "safety_identifier": (Word(KEY_CHARS), True),
            "owner_node": (Word(NAME_CHARACTERS), True),
            "lease_token": (BigInteger(), False),
            "lease_until": _never(),
            "cancel_requested": (SmallInteger(), False),
            "expires_at": _never(),
            "version": number,
        },
        "item_locations": {
            "tenant": _id(),
            "item_id": _id(),
            "response_id": _id(),
            "side": (SmallInteger(), False),
            "idx": number,
        },
        "response_events": {
            "tenant": _id(),
            "response_id": _id(),
            "first_seq": number,
            "last_seq": number,
            "payload": (octets(), False),
            "expires_at": _never(),
        },
        "idempotency_keys": {
            "tenant": _id(),
            "idem_key": (String(KEY_CHARS), False),
            "digest": (octets(16), False),
            "response_id": _no_id(),
            "expires_at": _never(),
        },
    }


_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "conversations": ("tenant", "id"),
    "conversation_items": ("tenant", "id"),
    "conversation_item_links": ("tenant", "conversation_id", "position"),
    "responses": ("tenant", "id"),
    "item_locations": ("tenant", "item_id"),
    "response_events": ("tenant", "response_id", "first_seq"),
    "idempotency_keys": ("tenant", "idem_key"),
}
_INDEXES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "conversations": {"expires": ("expires_at",)},
    "conversation_items": {"expires": ("expires_at",)},
    "responses": {
        "safety": ("tenant", "safety_identifier", "created_at"),
        "previous": ("tenant", "previous_response_id"),
        "expires": ("expires_at",),
        "leases": ("status", "lease_until"),
    },
    "item_locations": {"response": ("tenant", "response_id")},
    "response_events": {"expires": ("expires_at",)},
    "idempotency_keys": {"expires": ("expires_at",)},
}
_NARROW: Final = ("conversation_item_links", "item_locations")
"""Rows that are hardly more than their key: in SQLite they lie in it."""


class Tables:
    """The tables under one naming."""

    def __init__(self, naming: Naming | None = None) -> None:
        self.naming = naming or Naming()
        self.naming.check()
        owner = self.naming.schema.owner
        self.metadata = MetaData(schema=_quoted(owner) if owner else None)
        tables = {name: self._table(name, kinds) for name, kinds in _kinds().items()}
        self.conversations: Final = tables["conversations"]
        self.items: Final = tables["conversation_items"]
        self.links: Final = tables["conversation_item_links"]
        self.responses: Final = tables["responses"]
        self.locations: Final = tables["item_locations"]
        self.events: Final = tables["response_events"]
        self.keys: Final = tables["idempotency_keys"]
        self.by_name: Final[Mapping[str, Table]] = tables
        # Alembic keeps its own table, and would find a second one of it in the metadata.
        self.version: Final = Table(
            VERSION_TABLE,
            MetaData(schema=self.metadata.schema),
            Column("version_num", String(32), primary_key=True),
        )

    def _table(self, name: str, kinds: Mapping[str, Kind]) -> Table:
        assert tuple(kinds) == LOGICAL[name]
        said = self.naming.of(name)
        parts: list[Any] = [
            Column(_quoted(self.naming.column(name, key)), kind, key=key, nullable=nullable)
            for key, (kind, nullable) in kinds.items()
            if self.naming.has(name, key)
        ]
        parts += [_extra(key, extra) for key, extra in said.extra_columns.items()]
        physical = self.naming.table(name)
        parts.append(PrimaryKeyConstraint(*_KEYS[name], name=_label("pk", physical)))
        if name == "conversation_item_links":
            parts.append(
                UniqueConstraint(
                    "tenant", "conversation_id", "item_id", name=_label("uq", physical, "item")
                )
            )
        parts += [
            CheckConstraint(
                f'"{self.naming.column(name, key)}" IS JSON', name=_label("js", physical, key)
            ).ddl_if(dialect="oracle")
            for key, (kind, _) in kinds.items()
            if isinstance(kind, Document)
        ]
        table = Table(
            _quoted(physical), self.metadata, *parts, sqlite_with_rowid=name not in _NARROW
        )
        for suffix, keys in _INDEXES.get(name, {}).items():
            self._index(table, _label("ix", physical, suffix), keys)
        return table

    def _index(self, table: Table, name: str, keys: Sequence[str]) -> None:
        # Few rows have a lease, and those of one status are few again: where it can be, the index is of those only.
        where = table.c.background == 1 if "lease_until" in keys else None
        Index(name, *(table.c[key] for key in keys), postgresql_where=where, sqlite_where=where)


def _quoted(name: str) -> quoted_name:
    return quoted_name(name, quote=True)


def _label(what: str, table: str, suffix: str = "") -> quoted_name:
    return _quoted("_".join(filter(None, (what, table[:_INDEX_TABLE_CHARS], suffix))))


def _extra(name: str, extra: Mapping[str, str]) -> Column[Any]:
    kinds: Mapping[str, TypeEngine[Any]] = {
        "string": String(256),
        "integer": BigInteger(),
        "number": Float(53),
        "text": Text(),
        "boolean": SmallInteger(),
    }
    kind = kinds[extra.get("type", "string")]
    return Column(_quoted(name), kind, server_default=extra.get("default") or None)
