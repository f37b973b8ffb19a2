"""Tool sessions: sessions with servers of tools, as all nodes know them, so that any of them goes on where another was.

    table row: key → bytes of the writer's, sealed by it; as long as the session may be idle

A key is a digest that says nothing of whose session it is. Of two writes the later counts, a row survives the node that
wrote it, and ends by itself. Lost, it costs a session that is opened anew.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from smg_mesh.crdt.tables.table_rows import Row, TableError
from smg_mesh.sync.bound_views import BoundTable

SESSION_BYTES_MAX: Final = 320
"""Of content: with a key of 32 characters and the longest name of a node it fits into one rumor."""


class SessionRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One session. Times are milliseconds, the end is a wall clock's; no content: it was taken away, or is over."""

    key: str
    content: bytes = b""
    until_ms: int = 0
    life_ms: int = 0


class ToolSessions:
    """The rows of all nodes, over one table."""

    def __init__(self, table: BoundTable) -> None:
        self._table: Final = table

    def __len__(self) -> int:
        """How many rows are held."""
        return len(self._table)

    def put(self, row: SessionRow) -> SessionRow:
        """Let all nodes know a row for its life from now on, and return it with its end; ValueError for one too long to travel.

        It never ends before the one in its place would have.
        """
        if len(row.content) > SESSION_BYTES_MAX:
            raise TableError(f"{len(row.content)} bytes are too much for a session")
        return _told(self._table.put(row.key, row.content, ttl_ms=row.life_ms))

    def remove(self, key: str) -> None:
        """Take a row away, on all nodes."""
        self._table.remove(key)

    def get(self, key: str) -> SessionRow | None:
        """Return the row that counts, None if there is none or it is over."""
        row = self._table.get(key)
        return None if row is None else _told(row)

    def rows(self) -> Iterator[SessionRow]:
        """Return all rows that count."""
        return map(_told, self._table.items())

    def watch(self, heard: Callable[[Sequence[SessionRow]], None]) -> None:
        """Tell `heard` the rows that are written, taken away or over from now on. It may read and must not write."""
        self._table.watch(lambda keys: heard([self.get(key) or SessionRow(key) for key in keys]))


def _told(row: Row) -> SessionRow:
    return SessionRow(row.key, row.content, row.ends_ms, row.ttl_ms)
