"""Types of columns that mean the same in every database.

What is awkward about each:

- Times are microseconds, UTC. Oracle has no zone in what SQLAlchemy calls a DateTime (it becomes
  DATE, and loses the fraction as well), and its driver drops the zone of what it fetches: sessions
  there are in UTC (see `database_urls`).
- Documents come back byte for byte. PostgreSQL's JSONB orders keys, rewrites numbers and refuses a NUL; JSON keeps the
  text. Oracle's text types cannot hold it in UTF-8 under every database character set; a BLOB can.
- An empty string is NULL in Oracle, so an empty word is NULL everywhere.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import BLOB, BigInteger, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.dialects import oracle, postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine, UserDefinedType

from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import DOCUMENT_BYTES_MAX, NEVER_US
from smg_storage.text_limits import check_text

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class UtcTime(TypeDecorator[int]):
    """Microseconds since 1970. Where a time can be `NEVER_US`, that is NULL."""

    impl = BigInteger
    cache_ok = True

    def __init__(self, *, or_never: bool = False) -> None:
        super().__init__()
        self.or_never = or_never

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return what it is in that database."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        if dialect.name == "oracle":
            return dialect.type_descriptor(oracle.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(BigInteger())

    def process_bind_param(self, value: int | None, dialect: Dialect) -> Any:
        """Return what the driver takes."""
        if value is None or (self.or_never and value == NEVER_US):
            return None
        return value if dialect.name == "sqlite" else _EPOCH + timedelta(microseconds=value)

    def process_result_value(self, value: Any, dialect: Dialect) -> int:
        """Return microseconds; NULL is 0."""
        if value is None:
            return NEVER_US
        if isinstance(value, int):
            return value
        # Oracle's driver says nothing of the zone, which its sessions have been given.
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int((aware - _EPOCH) // _MICROSECOND)


class _Json(UserDefinedType[str]):
    """PostgreSQL's JSON as the text it is: the driver's own type would parse and write it again."""

    __visit_name__ = "JSON"
    cache_ok = True


class Document(TypeDecorator[bytes]):
    """JSON in UTF-8, byte for byte."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return what it is in that database."""
        if dialect.name == "postgresql":
            return _Json()
        return dialect.type_descriptor(BLOB() if dialect.name == "oracle" else Text())

    def process_bind_param(self, value: bytes | None, dialect: Dialect) -> Any:
        """Return what the driver takes. TOO_LARGE, or CORRUPT for what is no text."""
        if value is None:
            return None
        if len(value) > DOCUMENT_BYTES_MAX:
            raise StoreError(StoreErrorKind.TOO_LARGE, f"a document of {len(value)} bytes")
        if dialect.name == "oracle":
            return value
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise StoreError(StoreErrorKind.CORRUPT, "a document is not in UTF-8") from None

    def process_result_value(self, value: Any, dialect: Dialect) -> bytes | None:
        """Return the bytes that were given."""
        return value.encode() if isinstance(value, str) else value


class Word(TypeDecorator[str]):
    """A short text, where an empty one is NULL."""

    impl = String
    cache_ok = True

    def __init__(self, length: int | None = None) -> None:
        super().__init__(length)
        self.length = length

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return what the driver takes; errors as `check_text`, also where the database would not mind."""
        if value:
            check_text(value, self.length)
        return value or None

    def process_result_value(self, value: str | None, dialect: Dialect) -> str:
        """Return the text; NULL is empty."""
        return value or ""


def octets(length: int | None = None) -> LargeBinary:
    """Return the type of bytes that only this code reads."""
    return LargeBinary(length)
