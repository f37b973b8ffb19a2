"""What a voter has stored of what owners minted: one total for each (key, window), and never a smaller one later.

    total    the largest an owner asked it to store
    base     what was stored of it before the present term wrote for the first time: what an owner of this term must
             take for used by others
    durable  how much of the total is known to be on disk

Records are forgotten a while after they were touched, by the monotonic clock, never by the wall clock, which may
jump. What is forgotten leaves a *floor* for its key: windows up to it are not stored any more, so that a clock that
jumps back cannot mint a window again.

A key with LEVEL_MARK in it is a *level*: how much of a limit without windows one node holds. Its windows are numbers
of writes; only the record of the largest one is kept. Such records are not forgotten while anything touches them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final

from smg_mesh.escrow.messages import Minted

LEVEL_MARK: Final = "\x1f"
RECORDS_MAX: Final = 65_536
"""Some 20 MB. Above that a voter stores nothing new: mints wait, standing rights go on."""
KEPT_MIN_MS: Final = 10_000
FLOORS_KEPT_MS: Final = 3_600_000
WINDOWS_KEPT: Final = 3
"""A record is kept for so many windows after it was touched: its own, and two more."""


@dataclass(slots=True)
class Record:
    """One total, under the term that wrote it last."""

    term: int
    base: int
    total: int
    durable: int
    touched_ms: int


@dataclass(slots=True)
class _Floor:
    window: int
    touched_ms: int


def window_ms_of(key: str) -> int:
    """Return how long the windows of a key are, as the key says; 0 for those without windows, and for odd keys."""
    digits = key.rpartition("/")[2].partition(LEVEL_MARK)[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 15 else 0


class Records:
    """All of one voter."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, int], Record] = {}
        self._levels: dict[str, int] = {}
        self._floors: dict[str, _Floor] = {}

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str, window: int) -> Record | None:
        """Return what is stored, if anything is."""
        return self._records.get((key, window))

    def floor(self, key: str) -> int:
        """Return the last window of a key of which something was forgotten; -1 if nothing was."""
        floor = self._floors.get(key)
        return floor.window if floor is not None else -1

    def level(self, key: str) -> int:
        """Return the number of the write that a level was stored with last; -1 if there is none."""
        return self._levels.get(key, -1)

    def store(self, row: Minted, term: int, *, now_ms: int) -> Record | None:
        """Store a total under a term that is not older than any before, or return None: it cannot be stored."""
        record = self._records.get((row.key, row.window))
        if record is None:
            record = self._made(row, now_ms)
            if record is None:
                return None
        if record.term != term:
            record.term, record.base = term, record.total
        record.total = max(record.total, row.total)
        record.touched_ms = now_ms
        return record

    def remember(self, key: str, window: int, total: int, *, durable: int, now_ms: int) -> None:
        """Take what is known from a disk or from another voter, of a term that nobody knows any more."""
        record = self._records.get((key, window)) or self._made(Minted(key, window, 0), now_ms)
        if record is None:
            return
        if total > record.total:
            record.total = total
            record.base = max(record.base, total) if record.term == 0 else record.base
        record.durable = max(record.durable, durable)

    def persisted(self, rows: Iterable[Minted]) -> None:
        """Learn what is on disk."""
        for row in rows:
            record = self._records.get((row.key, row.window))
            if record is not None:
                record.durable = max(record.durable, row.total)

    def page(
        self, after: tuple[str, int], *, bytes_max: int, rows_max: int
    ) -> tuple[list[Minted], bool]:
        """Return what follows a (key, window), in order, as much as fits; and whether there is more."""
        later = (place for place in self._records if place > after)
        places = nsmallest(rows_max + 1, later)
        rows: list[Minted] = []
        used = 0
        for place in places[:rows_max]:
            used += row_bytes(place[0])
            if used > bytes_max and rows:
                break
            rows.append(Minted(*place, self._records[place].total))
        return rows, len(rows) < len(places)

    def tidy(self, *, now_ms: int) -> None:
        """Forget what nobody can ask for any more."""
        over = [
            place
            for place, record in self._records.items()
            if now_ms - record.touched_ms > _kept_ms(place[0])
        ]
        for key, window in over:
            del self._records[key, window]
            if self._levels.get(key) == window:
                del self._levels[key]
            elif LEVEL_MARK not in key:
                self._floors[key] = _Floor(max(window, self.floor(key)), now_ms)
        idle = [
            key
            for key, floor in self._floors.items()
            if now_ms - floor.touched_ms > FLOORS_KEPT_MS + _kept_ms(key)
        ]
        for key in idle:
            del self._floors[key]

    def _made(self, row: Minted, now_ms: int) -> Record | None:
        """Begin a record; None where there is no room, or where it was forgotten."""
        if LEVEL_MARK in row.key:
            last = self.level(row.key)
            if row.window <= last or (last < 0 and len(self._records) >= RECORDS_MAX):
                return None
            self._records.pop((row.key, last), None)
            self._levels[row.key] = row.window
        elif row.window <= self.floor(row.key) or len(self._records) >= RECORDS_MAX:
            return None
        record = self._records[row.key, row.window] = Record(0, 0, 0, 0, now_ms)
        return record


def row_bytes(key: str) -> int:
    """Return the most that one row with this key takes in a packet."""
    return len(key.encode()) + 34


def _kept_ms(key: str) -> int:
    if LEVEL_MARK in key:
        return FLOORS_KEPT_MS
    return max(KEPT_MIN_MS, WINDOWS_KEPT * window_ms_of(key))
