"""Minted records of a voter: one total for each (key, window), and never a smaller one later.

    total    the largest an owner asked it to store
    base     what was stored of it before the present term wrote for the first time: what an owner of this term must
             take for used by others
    durable  how much of the total is known to be on disk

Records are forgotten a while after they were touched, by the monotonic clock, never by the wall
clock, which may jump. What is forgotten leaves its mark for its key (see `forgotten_windows`): such
windows are not stored any more, so that a clock that jumps back cannot mint a window again. What is
to be forgotten stands in line, the soonest first: what was touched meanwhile gets in line again,
and what is not due costs nothing.

A key with LEVEL_MARK in it is a *level*: how much of a limit without windows one node holds. Its windows are numbers
of writes; only the record of the largest one is kept. Such records are not forgotten while anything touches them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush, nsmallest
from typing import Final

from smg_mesh.escrow.election.forgotten_windows import Forgotten
from smg_mesh.escrow.messages.messages import Minted

LEVEL_MARK: Final = "\x1f"
RECORDS_MAX: Final = 65_536
"""Some 20 MB. Above that a voter stores nothing new: mints wait, standing rights go on."""
KEPT_MIN_MS: Final = 10_000
FORGOTTEN_KEPT_MS: Final = 3_600_000
_LENGTHS_KEPT: Final = 1024
"""Of so many keys the length is not read again: those that are hot."""
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


@lru_cache(maxsize=_LENGTHS_KEPT)
def window_ms_of(key: str) -> int:
    """Return how long the windows of a key are, as the key says; 0 for those without windows, and for odd keys."""
    digits = key.rpartition("/")[2].partition(LEVEL_MARK)[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 15 else 0


class Records:
    """Records of one voter."""

    def __init__(self) -> None:
        self._records: dict[tuple[str, int], Record] = {}
        self._levels: dict[str, int] = {}
        self._forgotten: dict[str, Forgotten] = {}
        self._line: list[tuple[int, str, int]] = []
        """(when it may be forgotten, key, window): one for each record, or for each level."""
        self._forgotten_line: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._records)

    def get(self, key: str, window: int) -> Record | None:
        """Return what is stored, if anything is."""
        return self._records.get((key, window))

    def has_forgotten(self, key: str, window: int) -> bool:
        """Return whether something of that window was stored and forgotten, or may have been."""
        forgotten = self._forgotten.get(key)
        return forgotten is not None and window in forgotten

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
        """Take what a disk or another voter knows, of a term that is no longer known."""
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

    def tidy(self, *, now_ms: int, wall_ms: int) -> None:
        """Forget what no owner can ask for any more."""
        line = self._line
        while line and line[0][0] < now_ms:
            _, key, window = heappop(line)
            of = self.level(key) if LEVEL_MARK in key else window
            self._look(key, of, now_ms=now_ms, wall_ms=wall_ms)
        forgotten_line = self._forgotten_line
        while forgotten_line and forgotten_line[0][0] < now_ms:
            _, key = heappop(forgotten_line)
            due_ms = self._forgotten[key].touched_ms + FORGOTTEN_KEPT_MS + _kept_ms(key)
            if due_ms < now_ms:
                del self._forgotten[key]
            else:
                heappush(forgotten_line, (due_ms, key))

    def _look(self, key: str, window: int, *, now_ms: int, wall_ms: int) -> None:
        """Forget a record whose time has come, or let it get in line again: it was touched since."""
        kept_ms = _kept_ms(key)
        due_ms = self._records[key, window].touched_ms + kept_ms
        if due_ms >= now_ms:
            heappush(self._line, (due_ms, key, window))
            return
        del self._records[key, window]
        if LEVEL_MARK in key:
            del self._levels[key]
            return
        forgotten = self._forgotten.get(key)
        if forgotten is None:
            forgotten = self._forgotten[key] = Forgotten()
            heappush(self._forgotten_line, (now_ms + FORGOTTEN_KEPT_MS + kept_ms, key))
        # What is as old as this by the wall clock of now was forgotten by all; later windows still run.
        old_ms = wall_ms - kept_ms
        forgotten.add(window, window_ms=window_ms_of(key), now_ms=now_ms, wall_ms=old_ms)

    def _made(self, row: Minted, now_ms: int) -> Record | None:
        """Begin a record; None where there is no room, or where it was forgotten."""
        if LEVEL_MARK in row.key:
            last = self.level(row.key)
            if row.window <= last or (last < 0 and len(self._records) >= RECORDS_MAX):
                return None
            self._levels[row.key] = row.window
            in_line = self._records.pop((row.key, last), None) is not None
        elif self.has_forgotten(row.key, row.window) or len(self._records) >= RECORDS_MAX:
            return None
        else:
            in_line = False
        if not in_line:
            heappush(self._line, (now_ms + _kept_ms(row.key), row.key, row.window))
        record = self._records[row.key, row.window] = Record(0, 0, 0, 0, now_ms)
        return record


def row_bytes(key: str) -> int:
    """Return the most that one row with this key takes in a packet."""
    return len(key.encode()) + 34


def _kept_ms(key: str) -> int:
    if LEVEL_MARK in key:
        return FORGOTTEN_KEPT_MS
    return max(KEPT_MIN_MS, WINDOWS_KEPT * window_ms_of(key))
