"""Kinds of columns in each database, for revisions: fixed in meaning once one has used them."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BLOB, BigInteger, Column, Float, SmallInteger, String, Text
from sqlalchemy.dialects import oracle, postgresql
from sqlalchemy.types import TypeEngine, UserDefinedType

from smg_migrations.names import quoted


class _Json(UserDefinedType[str]):
    """PostgreSQL's JSON as the text it is: SQLAlchemy's own type would write it as a JSON string."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return what it is called."""
        return "JSON"


def moment() -> TypeEngine[Any]:
    """Return the type of a time: microseconds, with the zone where the database knows zones."""
    return (
        BigInteger()
        .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
        .with_variant(oracle.TIMESTAMP(timezone=True), "oracle")
    )


def document() -> TypeEngine[Any]:
    """Return the type of JSON that is kept byte for byte."""
    return Text().with_variant(_Json(), "postgresql").with_variant(BLOB(), "oracle")


def extra_column(name: str, extra: Mapping[str, str]) -> Column[Any]:
    """Return a column that hooks fill."""
    kinds: Mapping[str, TypeEngine[Any]] = {
        "string": String(256),
        "integer": BigInteger(),
        "number": Float(53),
        "text": Text(),
        "boolean": SmallInteger(),
    }
    kind = kinds[extra.get("type", "string")]
    return Column(quoted(name), kind, server_default=extra.get("default") or None)
