"""Names of tables where they are made: revisions are written in logical names alone.

The caller of a migration says what a table and its columns are called there; the same mapping is
read by the statements of the store, so that renamed tables migrate as well.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from sqlalchemy import quoted_name

_LABEL_TABLE_CHARS: Final = 36
"""Of a table's name that go into those of its indexes and constraints, which have a limit of their own."""


class Names(Protocol):
    """The physical names, and what of a table was left out or added."""

    @property
    def owner(self) -> str:
        """The schema they are in; empty: that of the connection."""
        ...

    def table(self, table: str, /) -> str:
        """Return the physical name of a table."""
        ...

    def column(self, table: str, column: str, /) -> str:
        """Return the physical name of a column."""
        ...

    def has(self, table: str, column: str, /) -> bool:
        """Return whether a column is wanted."""
        ...

    def extra(self, table: str, /) -> Mapping[str, Mapping[str, str]]:
        """Return the columns that hooks fill: name to `type` and `default`."""
        ...


def quoted(name: str) -> quoted_name:
    """Return a name that means the same everywhere: Oracle would turn it into capitals."""
    return quoted_name(name, quote=True)


def owner_of(names: Names) -> quoted_name | None:
    """Return the schema as SQLAlchemy wants it."""
    return quoted(names.owner) if names.owner else None


def label(what: str, table: str, suffix: str = "") -> quoted_name:
    """Return the name of an index or a constraint of a table, by its physical name."""
    return quoted("_".join(filter(None, (what, table[:_LABEL_TABLE_CHARS], suffix))))
