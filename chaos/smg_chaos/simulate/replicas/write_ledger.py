"""Write ledger: every acknowledged write, and which of them must still be held.

A write counts from the moment its call returned. For every cell (a key of a namespace or table) the
ledger knows the largest write that some living node holds: what is *expected*. Expectations only
grow, with two exceptions that physics demands: a process that ends takes what no other holds with
it, and a node that was away for longer than removals are kept drops what it holds. What was lost
like that may come back, from a packet still under way or from the disk of a host that starts again,
and then it counts again.

Between two writes of a cell the one with the larger (hybrid time, owner) counts, and of one writer the one
of its latest life. Copies that an adopter made keep the time of the write, and are the write.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.simulate.hosts.state_write import Cell, Write

WORKERS: Final = "workers"


@dataclass(slots=True)
class Held:
    """The writes that count for one living node, cell by cell."""

    label: str
    writes: dict[Cell, Write] = field(default_factory=dict)


class Ledger:
    """All writes of a world."""

    def __init__(self) -> None:
        self._writes: dict[Cell, dict[tuple[int, bytes | None], Write]] = {}
        self._holders: dict[int, Held] = {}
        self._expected: dict[Cell, Write] = {}
        self._retired: dict[Cell, None] = {}
        self._dated: dict[tuple[Cell, int, str], Write] = {}
        self.lost: dict[Cell, int] = {}
        """Cells of which a write was lost with its last holder, and how often."""
        self.blurred: dict[Cell, None] = {}
        """Cells of which a process wrote something that nobody else is known to have held when it ended."""
        self.written = 0
        self._unspread: dict[int, dict[tuple[Cell, int], None]] = {}

    # ── Writes ───────────────────────────────────────────────────────────────

    def wrote(self, number: int, write: Write) -> None:
        """Take note of a write that a living node acknowledged."""
        self.written += 1
        self._unspread.setdefault(number, {})[write.cell, write.hlc] = None
        self._retired.pop(write.cell, None)
        known = self._writes.setdefault(write.cell, {})
        other = known.get((write.hlc, write.value))
        if other is None or other.owner < write.owner:
            known[write.hlc, write.value] = write

    def retired(self, cell: Cell) -> None:
        """Take note that its owner took a cell away for good."""
        self._retired[cell] = None
        self._expected.pop(cell, None)

    def known(self, cell: Cell, hlc: int, value: bytes | None) -> Write | None:
        """Return the write that was acknowledged with that time and value."""
        return self._writes.get(cell, {}).get((hlc, value))

    def is_void(self, write: Write) -> bool:
        """Return whether its writer wrote the cell again in a later life.

        That is its word then, even if its clock was set back in between.
        """
        others = self._writes.get(write.cell, {}).values()
        return any(one.owner == write.owner and one.boot > write.boot for one in others)

    def is_beaten(self, write: Write) -> bool:
        """Return whether a write is about a worker that was removed later: it may lie there or not."""
        name, key = write.cell
        worker, _, part = key.partition("/")
        return (
            name == WORKERS
            and bool(part)
            and any(
                one.hlc >= write.hlc and one.value is None for one in self.writes((name, worker))
            )
        )

    def taken_away(self, cell: Cell, hlc: int, owner: str) -> Write | None:
        """Return the removal by which a writer took back its word: it is one later than that word."""
        for write in self.writes(cell):
            if write.hlc == hlc - 1 and write.owner == owner and write.value is not None:
                return Write(cell, owner, hlc, write.hlc, None, write.at_us, write.boot)
        dated = self._dated.get((cell, hlc - 1, owner))
        if dated is not None and dated.value is not None:
            return Write(cell, owner, hlc, dated.hlc, None, dated.at_us, dated.boot)
        return None

    def dated_again(self, cell: Cell, hlc: int, owner: str, value: bytes | None) -> Write | None:
        """Return what its writer dated again because its clock had been wrong; it is the same word."""
        for write in self.writes(cell):
            if write.owner == owner and write.value == value and write.hlc > hlc:
                again = Write(cell, owner, hlc, 0, value, write.at_us, write.boot)
                self._dated[cell, hlc, owner] = again
                return again
        return None

    def is_retired(self, cell: Cell) -> bool:
        """Return whether a cell was taken away for good."""
        return cell in self._retired

    def cells(self) -> Iterator[Cell]:
        """Return all cells that were ever written, in the order of their first write."""
        yield from self._writes

    def writes(self, cell: Cell) -> Iterable[Write]:
        """Return all writes of a cell, in order of acknowledgement."""
        return self._writes.get(cell, {}).values()

    # ── Who holds what ───────────────────────────────────────────────────────

    def began(self, number: int, held: Held) -> None:
        """A node lives and holds something, from now until `ended`."""
        self._holders[number] = held
        for write in held.writes.values():
            self._expect(write)

    def holds(self, number: int, write: Write) -> None:
        """A write counts on a node from now on."""
        self._holders[number].writes[write.cell] = write
        for other, unspread in self._unspread.items():
            if other != number:
                unspread.pop((write.cell, write.hlc), None)
        self._expect(write)

    def ended(self, number: int) -> None:
        """A node holds nothing any more: what it alone held is lost."""
        gone = self._holders.pop(number, None)
        if gone is None:
            return
        self.blurred.update((cell, None) for cell, _ in self._unspread.pop(number, {}))
        others: Final = list(self._holders.values())
        for cell, write in gone.writes.items():
            expected = self._expected.get(cell)
            if expected is None or expected.order > write.order:
                continue
            left = _largest(cell, others)
            if left is not None and left.order >= write.order:
                continue
            self.lost[cell] = self.lost.get(cell, 0) + 1
            if left is None:
                del self._expected[cell]
            else:
                self._expected[cell] = left

    def expected(self) -> Mapping[Cell, Write]:
        """Return what must count everywhere once all is quiet."""
        return self._expected

    def _expect(self, write: Write) -> None:
        known = self._expected.get(write.cell)
        if write.cell not in self._retired and (known is None or known.order < write.order):
            self._expected[write.cell] = write


def _largest(cell: Cell, holders: Iterable[Held]) -> Write | None:
    found = [held.writes[cell] for held in holders if cell in held.writes]
    return max(found, key=lambda write: write.order, default=None)
