"""Unit of work: one transaction's view of the tables: what an operation is written against.

Operations are plain functions of a `Work`. Nothing in them waits: a store runs them where waiting
is done elsewhere, in a thread (SQLite) or under a driver that does it for them (PostgreSQL,
Oracle). An operation may be run again from its beginning, after nothing of it was kept: `careful`
is set then, and it looks before it writes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Executable, Row

from smg_storage.sql.schema.row_mapping import Values
from smg_storage.sql.schema.tables import Tables
from smg_storage.sql.statements.all_statements import Statements
from smg_storage.sql.statements.expressions import IN_MAX, padded

_NO_ROWS: Final[Sequence[Row[Any]]] = ()


class Work:
    """Work within a transaction, for one tenant."""

    def __init__(
        self, connection: Connection, say: Statements, tenant: str, now_us: int, *, careful: bool
    ) -> None:
        self.connection = connection
        self.say = say
        self.tenant = tenant
        self.now_us = now_us
        self.careful = careful
        """Whether what is to be written may be there already."""

    @property
    def tables(self) -> Tables:
        """The tables."""
        return self.say.tables

    def skipped(self, table: str) -> Sequence[str]:
        """Return the columns that a table was left without."""
        return self.tables.naming.of(table).skip_columns

    def for_tenant(self, tenant: str) -> "Work":
        """Return the same for another tenant."""
        return Work(self.connection, self.say, tenant, self.now_us, careful=self.careful)

    def rows(self, statement: Executable, **values: Any) -> Sequence[Row[Any]]:
        """Return what a statement finds for this tenant, now."""
        return self.connection.execute(statement, self._filled(values)).all()

    def row(self, statement: Executable, **values: Any) -> Row[Any] | None:
        """Return the first of it."""
        return self.connection.execute(statement, self._filled(values)).first()

    def rows_of(
        self, statement: Executable, ids: Sequence[str], **values: Any
    ) -> Iterator[Row[Any]]:
        """Yield what a statement finds for a list of ids, in order of its own within each part of it."""
        known = sorted(set(ids))
        for start in range(0, len(known), IN_MAX):
            yield from self.rows(statement, ids=padded(known[start : start + IN_MAX]), **values)

    def change(self, statement: Executable, **values: Any) -> int:
        """Run a statement, and return how many rows it was about."""
        return self.connection.execute(statement, {"of_tenant": self.tenant, **values}).rowcount

    def change_all(self, statement: Executable, rows: Sequence[Values]) -> None:
        """Run a statement for each of these."""
        if len(rows) == 1:
            self.connection.execute(statement, rows[0])
        elif rows:
            self.connection.execute(statement, rows)

    def change_each(self, statement: Executable, ids: Sequence[str], **values: Any) -> None:
        """Run a statement for each id, in the order of ids: all operations that
        lock several do it in that order.
        """
        filled = {"of_tenant": self.tenant, **values}
        self.change_all(statement, [{**filled, "of_id": each} for each in sorted(ids)])

    def _filled(self, values: Values) -> Values:
        return {"of_tenant": self.tenant, "now": self.now_us, **values}
