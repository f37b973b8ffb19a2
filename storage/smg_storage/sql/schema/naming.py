"""Naming of tables and columns, where an operator has other names than this code.

Logical names are those of this code, physical ones those in the database. Names are always quoted, so that they mean
the same everywhere (Oracle would turn them into capitals). What cannot work is refused when it is said, not when the
first row is written.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from smg_storage.options import SchemaNames, TableNames

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")

LOGICAL: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "conversations": (
            "tenant",
            "id",
            "created_at",
            "updated_at",
            "metadata",
            "version",
            "next_position",
            "expires_at",
        ),
        "conversation_items": (
            "tenant",
            "id",
            "response_id",
            "item_type",
            "role",
            "status",
            "doc",
            "document_bytes",
            "refs",
            "created_at",
            "expires_at",
        ),
        "conversation_item_links": (
            "tenant",
            "conversation_id",
            "position",
            "item_id",
            "added_at",
        ),
        "responses": (
            "tenant",
            "id",
            "conversation_id",
            "previous_response_id",
            "depth",
            "status",
            "background",
            "model",
            "created_at",
            "completed_at",
            "input",
            "raw_response",
            "document_bytes",
            "safety_identifier",
            "owner_node",
            "lease_token",
            "lease_until",
            "cancel_requested",
            "expires_at",
            "version",
        ),
        "item_locations": ("tenant", "item_id", "response_id", "side", "idx"),
        "response_events": (
            "tenant",
            "response_id",
            "first_seq",
            "last_seq",
            "payload",
            "expires_at",
        ),
        "idempotency_keys": ("tenant", "idem_key", "digest", "response_id", "expires_at"),
    }
)
"""Every table, and its columns in order."""

SKIPPABLE: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "conversation_items": frozenset({"response_id", "role"}),
        "conversation_item_links": frozenset({"added_at"}),
        "responses": frozenset({"depth", "model", "completed_at"}),
    }
)
"""What may be left out: nothing but itself is lost with it."""

EXTRA_TYPES: Final = ("string", "integer", "number", "text", "boolean")


class NamingError(ValueError):
    """A mapping of names that cannot work; the message says which."""


class Naming(msgspec.Struct, frozen=True):
    """Naming of all tables: nothing said is our own names in the connection's own schema."""

    schema: SchemaNames = SchemaNames()

    def of(self, table: str) -> TableNames:
        """Return what was said about a table."""
        return self.schema.tables.get(table, TableNames())

    def table(self, table: str) -> str:
        """Return the physical name of a table."""
        return self.of(table).table or table

    def column(self, table: str, column: str) -> str:
        """Return the physical name of a column."""
        return self.of(table).columns.get(column, column)

    def has(self, table: str, column: str) -> bool:
        """Return whether a column is there."""
        return column not in self.of(table).skip_columns

    def check(self) -> None:
        """Return if this can work; NamingError says what cannot."""
        if self.schema.owner:
            _check_name("owner", self.schema.owner)
        for table in self.schema.tables:
            if table not in LOGICAL:
                raise NamingError(
                    f"{table}: there is no such table; there are {', '.join(LOGICAL)}"
                )
        _check_unique("tables", [self.table(table) for table in LOGICAL])
        for table in LOGICAL:
            self._check_table(table)

    def _check_table(self, table: str) -> None:
        said, known = self.of(table), LOGICAL[table]
        _check_name(table, self.table(table))
        for column in [*said.columns, *said.skip_columns]:
            if column not in known:
                raise NamingError(f"{table}.{column}: there is no such column")
        for column in said.skip_columns:
            if column not in SKIPPABLE.get(table, frozenset()):
                raise NamingError(f"{table}.{column} cannot be left out")
        for name, extra in said.extra_columns.items():
            _check_extra(f"{table}.{name}", extra)
        here = [self.column(table, column) for column in known if self.has(table, column)]
        for name in [*here, *said.extra_columns]:
            _check_name(table, name)
        _check_unique(table, [*here, *said.extra_columns])


def _check_extra(where: str, extra: Mapping[str, str]) -> None:
    unknown = sorted(extra.keys() - {"type", "default"})
    if unknown:
        raise NamingError(f"{where}: has a type and a default, not {', '.join(unknown)}")
    if extra.get("type", "string") not in EXTRA_TYPES:
        raise NamingError(f"{where}: {extra['type']} is none of {', '.join(EXTRA_TYPES)}")


def _check_name(where: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise NamingError(f"{where}: {name!r} is no name: letters, digits, _ and $, at most 63")


def _check_unique(where: str, names: list[str]) -> None:
    # SQLite folds names even if they are quoted, so what differs in case only is the same.
    folded = [name.lower() for name in names]
    for name in names:
        if folded.count(name.lower()) > 1:
            raise NamingError(f"{where}: {name!r} is the name of two")
