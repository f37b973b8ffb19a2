"""Expressions that statements are put together from: conditions, parameters and columns.

Names of parameters are never those of columns: SQLAlchemy keeps these for what an UPDATE or INSERT sets.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Insert,
    Integer,
    SmallInteger,
    String,
    Table,
    bindparam,
    insert,
    literal_column,
    null,
    or_,
    type_coerce,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeEngine

from smg_storage.records import Status
from smg_storage.sql.schema.naming import LOGICAL
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.schema.types import UtcTime, Word

OPEN: Final = tuple(status.value for status in Status if not status.is_final)
"""The statuses in which a response can still change."""
IN_MAX: Final = 500
"""How many literals an IN has at most: Oracle allows 1,000."""

_MISSING: Final[dict[str, ColumnElement[Any]]] = {
    "response_id": type_coerce(null(), Word()),
    "role": type_coerce(null(), Word()),
    "model": type_coerce(null(), Word()),
    "depth": literal_column("0", Integer()),
    "completed_at": type_coerce(null(), UtcTime(or_never=True)),
}


def own(table: FromClause) -> ColumnElement[bool]:
    """Say which tenant's rows are meant: in every statement that is about a tenant's."""
    return table.c.tenant == bindparam("of_tenant", type_=String())


def given(column: ColumnElement[Any], name: str = "of_id") -> ColumnElement[bool]:
    """Say that a column is a parameter."""
    return column == bindparam(name, type_=String())


def among(column: ColumnElement[Any], name: str = "ids") -> ColumnElement[bool]:
    """Say that a column is in a list; see `padded`."""
    return column.in_(bindparam(name, expanding=True, type_=String()))


def alive(table: FromClause) -> ColumnElement[bool]:
    """Say that a row is not over."""
    expires = table.c.expires_at
    return or_(expires.is_(None), expires > now())


def always() -> ColumnElement[bool]:
    """Say what is true: Oracle has no word for it where two tables are joined."""
    return literal_column("1") == literal_column("1")


def now() -> ColumnElement[int]:
    """Name the time of asking."""
    return bindparam("now", type_=UtcTime())


def number(name: str) -> ColumnElement[int]:
    """Name a parameter that is a number."""
    return bindparam(name, type_=BigInteger())


def small(name: str) -> ColumnElement[int]:
    """Name a parameter that is a limit."""
    return bindparam(name, type_=Integer())


def new(name: str, kind: TypeEngine[Any]) -> ColumnElement[Any]:
    """Name what a column becomes."""
    return bindparam(name, type_=kind)


def yes(column: ColumnElement[Any]) -> ColumnElement[bool]:
    """Say that a truth value, a small number everywhere, is 1."""
    return column == literal_column("1", SmallInteger())


def shown(tables: Tables, name: str) -> Sequence[ColumnElement[Any]]:
    """Return all columns of a table under their logical names, also those that were left out of it."""
    table = tables.by_name[name]
    return [
        (table.c[key] if key in table.c else _MISSING[key]).label(key)
        for key in LOGICAL[name]
        if key != "tenant"
    ]


def insert_missing(table: Table, dialect: str) -> Insert:
    """Return an INSERT that leaves alone what is there; on Oracle it fails, and
    the caller looks first next time.
    """
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return insert(table)


def padded(ids: Sequence[str]) -> list[str]:
    """Return a list for an IN, with its last one repeated up to a power of two.

    A database prepares and keeps a statement per text, and the number of literals is part of the text.
    """
    assert 0 < len(ids) <= IN_MAX
    length = min(IN_MAX, 1 << (len(ids) - 1).bit_length())
    return [*ids, *([ids[-1]] * (length - len(ids)))]
