"""Table shard: keeps and drops rows so that all replicas that heard the same keep the same.

What is held depends on what was heard and on nothing else, as far as that is possible: clocks differ, and
a row that one node holds and another does not makes their digests differ for as long. So a row whose time
is over is hidden at once, by the table, but held for another day, and then rows go in steps of
ten minutes: two clocks disagree about what is held for a moment at each step, and not all the time. Of
more rows than a shard may have, those that end first go, on all nodes the same.
"""

from collections.abc import Iterator
from typing import Final

from smg_mesh.crdt.deadline_heap import Deadlines
from smg_mesh.crdt.hybrid_clock import hlc_ms
from smg_mesh.crdt.tables.table_rows import MARK_BYTES, Row, digest_of, encode_row

FLOOR_STEP_MS: Final = 600_000
FLOOR_BEHIND_MS: Final = 86_400_000
"""A clock may be a day wrong, and its node drops nothing that counts elsewhere."""


class Shard:
    """Rows by key, the digest over them, and which of them goes first."""

    def __init__(self, *, rows_max: int) -> None:
        self.floor_ms = 0
        self.size_bytes = 0
        self._rows_max: Final = rows_max
        self._rows: dict[str, Row] = {}
        self._digest = 0
        self._ends: Final[Deadlines[str, int]] = Deadlines()
        """Hybrid times: the milliseconds of the end, and the counter of the write."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def digest(self) -> bytes:
        """XOR over the digests of all rows: zeros if it is empty."""
        return self._digest.to_bytes(16, "big")

    @property
    def places(self) -> int:
        """How much the order of the rows takes; bounded by what is held."""
        return self._ends.places

    def get(self, key: str) -> Row | None:
        """Return the row of a key, a removal too."""
        return self._rows.get(key)

    def rows(self) -> Iterator[Row]:
        """Return all rows, sorted by key."""
        return (self._rows[key] for key in sorted(self._rows))

    def marked(self) -> Iterator[tuple[bytes, Row, int]]:
        """Return each row with its mark and its size, sorted by key."""
        for row in self.rows():
            data = encode_row(row)
            yield digest_of(data)[:MARK_BYTES], row, len(data)

    def take(self, row: Row) -> list[str]:
        """Take a row if it counts; return the keys that changed, of rows that had to go too."""
        held = self._rows.get(row.key)
        if row.ends_ms < self.floor_ms or (held is not None and held.order >= row.order):
            return []
        if held is not None:
            self._fold(held, -1)
        self._rows[row.key] = row
        self._fold(row, 1)
        self._ends.put(row.key, row.end)
        return [row.key, *self.raise_floor(self.floor_ms)]

    def raise_floor(self, floor_ms: int) -> list[str]:
        """Drop what ended before, and what is too many; return the keys."""
        self.floor_ms = max(self.floor_ms, floor_ms)
        dropped: list[str] = []
        while (first := self._ends.first()) is not None:
            end, key = first
            if hlc_ms(end) >= self.floor_ms and len(self._rows) <= self._rows_max:
                break
            self._ends.forget(key)
            self._fold(self._rows.pop(key), -1)
            dropped.append(key)
        return dropped

    def _fold(self, row: Row, sign: int) -> None:
        data = encode_row(row)
        self._digest ^= int.from_bytes(digest_of(data), "big")
        self.size_bytes += sign * len(data)


def floor_by_clock(wall_ms: int) -> int:
    """Return before when a row must have ended to go."""
    return max(0, wall_ms // FLOOR_STEP_MS * FLOOR_STEP_MS - FLOOR_BEHIND_MS)
