"""Block table of a prefix index: hash table of block hashes, grown by linear hashing.

A *value* is a small number that is never 0; its lowest bit says whether the hash was looked up
since the hand came by. The *hand* goes round over all hashes for ever, a few at a time, and decides
for each what becomes of it: that is how what is void is swept, and what is not looked up makes room
(the clock algorithm, Corbató 1968).

    cells    hash │ next, value │ hash │ next, value │ …      16 bytes each, dense; the hand goes over them in order
    heads    first cell │ first cell │ …                      4 bytes each, as many as there are hashes

Hashes of the same head are in one chain. For each hash that is added one chain is split in two
(linear hashing, Litwin 1980), so that no moment moves all. Memory is used from the front on, and
doubled by copying it: 5 ms on the way to a million, and twice as long for each doubling beyond. A
dict of a million hashes takes four times as much, and stands still for 50 ms whenever it makes room
among what was deleted, which under load is every few seconds. Open addressing does not do either:
behind the hand all is empty, and before it, where all is old, it would be nearly full.
"""

import mmap
import sys
from array import array
from collections.abc import Callable, Sequence, Set
from typing import Final, Literal, TypeAlias

Judge: TypeAlias = Callable[[int, int], int]
"""What becomes of (hash, value): the value it has from now on, 0 to drop it."""

_CELLS_MIN: Final = 64
_MAPPED_FROM: Final = 1 << 16
"""So many bytes are pages of their own: zero without being written, and returned when they are let go."""


class BlockTable:
    """Hashes (0 to 2^64 - 1) and their values (1 to 2^32 - 1). The caller keeps it within its
    bound.

    A cell is called by its number, from 1 on; 0 is no cell.
    """

    def __init__(self) -> None:
        self._cells = _column("Q", 2 * _CELLS_MIN)
        self._room = _CELLS_MIN
        self._count = 0
        self._hand = 0
        # Chains: twice as many as `_low` says in the end, of which those before `_split` are two already.
        self._heads = _column("I", 2 * _CELLS_MIN)
        self._low = _CELLS_MIN - 1
        self._split = 0

    def __len__(self) -> int:
        return self._count

    @property
    def mapped_bytes(self) -> int:
        """What is in use of pages of its own, which are no part of Python's heap."""
        used = (16 * self._room, 16 * self._count), (8 * (self._low + 1), 4 * self._chains())
        return sum(bytes_ for room, bytes_ in used if room >= _MAPPED_FROM)

    def get(self, one: int) -> int:
        """Return the value of a hash, 0 if it is not there."""
        cell = self._find(one)
        return self._cells[2 * cell - 1] & 0xFFFFFFFF if cell else 0

    def look(self, hashes: Sequence[int]) -> list[int]:
        """Return the value of each hash, 0 for those that are not there."""
        found = []
        for one in hashes:
            cell = self._find(one)
            value = self._cells[2 * cell - 1] & 0xFFFFFFFF if cell else 0
            found.append(value)
        return found

    def add(self, hashes: Sequence[int], value: int) -> None:
        """Give hashes that are not there, each named once, a value."""
        for one in hashes:
            if self._count == self._room:
                self._enlarge()
            at = self._home(one)
            above = self._heads[at]
            self._cells[2 * self._count] = one
            self._cells[2 * self._count + 1] = above << 32 | value
            self._count += 1
            self._heads[at] = self._count
            if self._count > self._chains():
                self._split_one()

    def put(self, hashes: Sequence[int], value: int) -> None:
        """Give hashes that are there another value."""
        for one in hashes:
            cell = self._find(one)
            assert cell, "only what is there gets another value"
            self._cells[2 * cell - 1] = self._cells[2 * cell - 1] >> 32 << 32 | value

    # ── The hand ─────────────────────────────────────────────────────────────

    def turn(self, places: int, judge: Judge) -> bool:
        """Let the hand go over that many hashes at most; return whether it came to the end, where it stops."""
        for _ in range(places):
            if self._hand >= self._count:
                break
            value = self._cells[2 * self._hand + 1] & 0xFFFFFFFF
            after = judge(self._cells[2 * self._hand], value)
            if not after:
                # What comes in its place, the last, is looked at next.
                self._drop(self._hand + 1)
                continue
            if after != value:
                self._cells[2 * self._hand + 1] = (
                    self._cells[2 * self._hand + 1] >> 32 << 32 | after
                )
            self._hand += 1
        return self._ended()

    def ahead(self, places: int) -> set[int]:
        """Return the values, each once, that the hand comes by on the next so many places."""
        met: set[int] = set()
        last = 0
        for at in range(self._hand, min(self._hand + places, self._count)):
            value = self._cells[2 * at + 1] & 0xFFFFFFFF
            if value != last:
                met.add(value)
                last = value
        return met

    def skip(self, places: int) -> bool:
        """Let the hand go on as `turn` does where everything stays as it is."""
        self._hand += places
        return self._ended()

    # ── All of it ────────────────────────────────────────────────────────────

    def having(self, values: Set[int]) -> list[int]:
        """Return the hashes that have one of these values; looks at all, which takes 30 ms for a million."""
        found = []
        for at in range(self._count):
            value = self._cells[2 * at + 1] & 0xFFFFFFFF
            if value in values:
                found.append(self._cells[2 * at])
        return found

    def items(self) -> list[tuple[int, int]]:
        """Return all hashes with their values."""
        found = []
        for at in range(self._count):
            value = self._cells[2 * at + 1] & 0xFFFFFFFF
            found += [(self._cells[2 * at], value)]
        return found

    # ── Chains ───────────────────────────────────────────────────────────────

    def _chains(self) -> int:
        return self._low + 1 + self._split

    def _home(self, one: int) -> int:
        """Return the chain of a hash."""
        at = one & self._low
        return one & (2 * self._low + 1) if at < self._split else at

    def _find(self, one: int) -> int:
        """Return the cell of a hash."""
        cell = self._heads[self._home(one)]
        while cell and self._cells[2 * cell - 2] != one:
            cell = self._cells[2 * cell - 1] >> 32
        return cell

    def _point(self, cell: int, instead: int) -> None:
        """Let what points to a cell, a head or the cell before it, point to another one."""
        at = self._home(self._cells[2 * cell - 2])
        before = self._heads[at]
        if before == cell:
            self._heads[at] = instead
            return
        following = self._cells[2 * before - 1] >> 32
        while following != cell:
            before = following
            following = self._cells[2 * before - 1] >> 32
        self._cells[2 * before - 1] = instead << 32 | self._cells[2 * before - 1] & 0xFFFFFFFF

    def _drop(self, cell: int) -> None:
        """Take a hash out, and let the last one have its cell."""
        self._point(cell, self._cells[2 * cell - 1] >> 32)
        if cell != self._count:
            self._point(self._count, cell)
            self._cells[2 * cell - 2] = self._cells[2 * self._count - 2]
            self._cells[2 * cell - 1] = self._cells[2 * self._count - 1]
        self._count -= 1

    def _ended(self) -> bool:
        if self._hand < self._count:
            return False
        self._hand = 0
        return True

    # ── Growing ──────────────────────────────────────────────────────────────

    def _split_one(self) -> None:
        """Make two chains of the next one: those whose hash has one more bit set are the new one."""
        bit = self._low + 1
        near = far = 0
        cell = self._heads[self._split]
        while cell:
            following = self._cells[2 * cell - 1] >> 32
            value = self._cells[2 * cell - 1] & 0xFFFFFFFF
            if self._cells[2 * cell - 2] & bit:
                self._cells[2 * cell - 1] = far << 32 | value
                far = cell
            else:
                self._cells[2 * cell - 1] = near << 32 | value
                near = cell
            cell = following
        self._heads[self._split] = near
        self._heads[bit + self._split] = far
        self._split += 1
        if self._split == bit:
            self._low, self._split = 2 * self._low + 1, 0
            wider = _column("I", 4 * bit)
            wider[: 2 * bit] = self._heads
            self._heads = wider

    def _enlarge(self) -> None:
        wider = _column("Q", 4 * self._room)
        wider[: 2 * self._room] = self._cells
        self._cells = wider
        self._room *= 2


def _column(code: Literal["Q", "I"], numbers: int) -> memoryview:
    """Return so many numbers of 8 or 4 bytes, all 0."""
    size = numbers * (8 if code == "Q" else 4)
    if size < _MAPPED_FROM:
        return memoryview(array(code, bytes(size)))
    if sys.platform == "win32":
        pages = mmap.mmap(-1, size)
    else:
        # Its own, also after a fork.
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return memoryview(pages).cast(code)
