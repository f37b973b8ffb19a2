"""What tests of migrations ask of a database: does it have the shape that the code expects, with rows in it."""

from typing import Any, Final

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, Connection, Float, LargeBinary, SmallInteger, insert

from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.schema.types import Document, UtcTime

_ROWS_AT_ONCE: Final = 500


def differences(connection: Connection, tables: Tables) -> list[Any]:
    """Return what Alembic would change to make the database what the tables are; it changes nothing."""
    owner = tables.metadata.schema

    def included(name: str | None, kind: str, _parents: Any) -> bool:
        return name == owner if kind == "schema" else name != tables.version.name

    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "include_schemas": owner is not None,
            "include_name": included,
        },
    )
    return list(compare_metadata(context, tables.metadata))


def fill(connection: Connection, tables: Tables, *, rows: int) -> None:
    """Put rows into every table, with something in every column."""
    for table in tables.by_name.values():
        made = [
            {column.key: _value(column.type, place) for column in table.c} for place in range(rows)
        ]
        for start in range(0, rows, _ROWS_AT_ONCE):
            connection.execute(insert(table), made[start : start + _ROWS_AT_ONCE])


def _value(kind: Any, place: int) -> Any:
    match kind:
        case UtcTime():
            return 1_700_000_000_000_000 + place
        case Document():
            return b'{"place": %d}' % place
        case LargeBinary():
            return b"\x00" * 16
        case SmallInteger():
            return 1
        case BigInteger() | Float():
            return place
        case _:
            return f"x{place}" if hasattr(kind, "length") else place
