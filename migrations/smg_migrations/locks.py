"""Locks of migrations: one process migrates, the others wait and find nothing left to do.

The right is held by a connection of its own, so that it outlasts the transactions of the steps (in Oracle every DDL
statement ends one; in PostgreSQL an index that is made beside running work needs to be outside of any). SQLite has one
file and one writer: there the transaction that does the work is the right to do it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from zlib import crc32

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from smg_migrations.names import Names

_PROGRAM: Final = 0x534D4749
"""Ours among all that take advisory locks in a database."""
_LOCK_TABLE: Final = "smg_schema_lock"
_IN_USE: Final = "ORA-00955"


@contextmanager
def only_one(connection: Connection, names: Names, *, wait_s: int) -> Iterator[None]:
    """Hold the right to migrate these tables; the driver's error if it is not had in that time."""
    with connection.begin():
        match connection.dialect.name:
            case "postgresql":
                _lock_postgresql(connection, names, wait_s)
            case "oracle":
                _lock_oracle(connection, wait_s)
            case _:
                # The transaction itself, which has been begun as an exclusive one.
                pass
        yield


def _lock_postgresql(connection: Connection, names: Names, wait_s: int) -> None:
    # Nothing that outlives the transaction: behind a pooler, the session is not ours.
    connection.execute(text(f"SET LOCAL lock_timeout = {wait_s * 1000}"))
    which = int.from_bytes(crc32(names.owner.encode()).to_bytes(4, "big"), "big", signed=True)
    connection.execute(
        text(f"SELECT pg_advisory_xact_lock(CAST({_PROGRAM} AS int), CAST({which} AS int))")
    )
    # After it, so that the snapshot of the SELECT is let go of: an index that is made concurrently waits for it.
    connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))


def _lock_oracle(connection: Connection, wait_s: int) -> None:
    table = connection.dialect.identifier_preparer.quote_identifier(_LOCK_TABLE)
    try:
        connection.execute(text(f"CREATE TABLE {table} (id NUMBER(1))"))
    except DBAPIError as error:
        if _IN_USE not in str(error.orig):
            raise
    connection.execute(text(f"LOCK TABLE {table} IN EXCLUSIVE MODE WAIT {wait_s}"))
