"""Prompt caches: which beginnings of prompts lie in which vendor's cache, as all nodes know it.

    table row: base64 of (hash of the beginning, 8 bytes; scope, 4 bytes) → the state, one byte; as long as it is cached

A scope is an account's cache of one model, as a number that all nodes make alike. The row is 36 bytes and the name of
the node that wrote it. Of two writes the later counts; a row ends with what it speaks of, so it is never tidied up by
anybody. Lost, it costs one prompt that is read anew.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Final

import msgspec

from smg_mesh.crdt.tables.table_rows import TTL_MS_MAX, Row
from smg_mesh.sync.bound_views import BoundTable

_KEY: Final = Struct(">QI")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{16}", re.ASCII)
STATE_MAX: Final = 255


class CacheRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One beginning in one scope; the state is a number of the writer's. Times are milliseconds, the end is a wall
    clock's; no life: it was taken away.
    """

    beginning: int
    scope: int
    state: int = 0
    until_ms: int = 0
    life_ms: int = 0


class PromptCaches:
    """The rows of all nodes, over one table."""

    def __init__(self, table: BoundTable) -> None:
        self._table: Final = table

    def __len__(self) -> int:
        """How many rows are held."""
        return len(self._table)

    def put(self, row: CacheRow) -> None:
        """Let all nodes know a row, for its life from now on; ValueError for one out of range."""
        if not 0 <= row.state <= STATE_MAX or not 0 < row.life_ms <= TTL_MS_MAX:
            raise ValueError("no state, or no life, of a cached beginning")
        self._table.put(_key(row.beginning, row.scope), bytes((row.state,)), ttl_ms=row.life_ms)

    def remove(self, beginning: int, scope: int) -> None:
        """Take a row away, on all nodes."""
        self._table.remove(_key(beginning, scope))

    def get(self, key: str) -> CacheRow | None:
        """Return what there is under a key of the table, a row without life where it is over; None for a strange key."""
        named = _named(key)
        if named is None:
            return None
        row = self._table.get(key)
        return CacheRow(*named) if row is None else _row(named, row)

    def rows(self) -> Iterator[CacheRow]:
        """Return all rows that count."""
        for row in self._table.items():
            named = _named(row.key)
            if named is not None:
                yield _row(named, row)

    def follow(self, heard: Callable[[Sequence[CacheRow]], None]) -> None:
        """Tell `heard` all rows that there are, and then those that are written or over. It may read and must not write."""
        if len(self._table):
            heard(list(self.rows()))
        self.watch(heard)

    def watch(self, heard: Callable[[Sequence[CacheRow]], None]) -> None:
        """Tell `heard` the rows that are written or over from now on."""

        def look(keys: Sequence[str]) -> None:
            rows = (self.get(key) for key in keys)
            heard([row for row in rows if row is not None])

        self._table.watch(look)


def _key(beginning: int, scope: int) -> str:
    return urlsafe_b64encode(_KEY.pack(beginning, scope)).decode()


def _named(key: str) -> tuple[int, int] | None:
    if not _NAME.fullmatch(key):
        return None
    beginning, scope = _KEY.unpack(urlsafe_b64decode(key))
    return beginning, scope


def _row(named: tuple[int, int], row: Row) -> CacheRow:
    return CacheRow(*named, row.content[0], row.ends_ms, row.ttl_ms)
