"""Key index: all entries of a document by key, and which of several writes of one key counts.

The index is kept as entries come and go.

Between writes of one node the one of its later life counts, and in one life the later one. Between nodes
the largest (hybrid time, name) wins. A write whose `seen` reaches another's time, and is later, has beaten
it; two of which neither beats the other are concurrent: the larger wins, and the other one is shown. What
is ahead of the wall clock by more than `future_ms` is held and does not count.

Reading the winner costs a dictionary and a comparison, however many there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from smg_mesh.crdt.documents.document_slot import Slot
from smg_mesh.crdt.entry import Entry, Held
from smg_mesh.crdt.hybrid_clock import hlc_from, hlc_ms


class _Cell:
    """Several entries of one key."""

    __slots__ = ("last", "ranked", "slots")

    def __init__(self, *slots: Slot) -> None:
        self.slots = list(slots)
        self.ranked: list[Slot] | None = None
        """One of each origin, the winner first, if all of them count; made when asked for."""
        self.last = max(slot.said.hlc for slot in slots)
        """The largest time among them."""

    def best(self) -> list[Slot]:
        """Return the word of each origin, the latest first."""
        if self.ranked is None:
            self.ranked = _best(self.slots)
        return self.ranked

    def changed(self) -> None:
        """Follow a slot that came or went."""
        self.ranked = None
        self.last = max(slot.said.hlc for slot in self.slots)


class KeyIndex:
    """All entries that can be read, by key. One alone lies there itself: most keys have one."""

    def __init__(self, *, future_ms: int) -> None:
        self._future_ms: Final = future_ms
        self._cells: dict[str, Slot | _Cell] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def keys(self) -> Sequence[str]:
        """Return all keys that anything is held of, sorted."""
        return sorted(self._cells)

    def slots(self, key: str) -> Sequence[Slot]:
        """Return all entries of a key."""
        cell = self._cells.get(key)
        if cell is None:
            return ()
        return cell.slots if isinstance(cell, _Cell) else (cell,)

    def add(self, slot: Slot) -> int:
        """Take an entry in; return how many its key has now."""
        cell = self._cells.get(slot.key)
        if cell is None:
            self._cells[slot.key] = slot
            return 1
        if isinstance(cell, Slot):
            self._cells[slot.key] = _Cell(cell, slot)
            return 2
        cell.slots.append(slot)
        cell.changed()
        return len(cell.slots)

    def replace(self, gone: Slot, slot: Slot) -> int:
        """Take an entry in and another one of its key out; return how many the key has now."""
        if self._cells.get(slot.key) is gone:
            self._cells[slot.key] = slot
            return 1
        self.remove(gone)
        return self.add(slot)

    def remove(self, slot: Slot) -> None:
        """Forget an entry; nothing if it is forgotten already."""
        cell = self._cells.get(slot.key)
        if cell is slot:
            del self._cells[slot.key]
        elif isinstance(cell, _Cell) and slot in cell.slots:
            cell.slots.remove(slot)
            if len(cell.slots) == 1:
                self._cells[slot.key] = cell.slots[0]
            else:
                cell.changed()

    def counts(self, slot: Slot, wall_ms: int) -> bool:
        """Return whether its time has come."""
        return hlc_ms(slot.said.hlc) <= wall_ms + self._future_ms

    def later(self, slots: Sequence[Slot], wall_ms: int) -> Sequence[Slot]:
        """Return those whose time has not come."""
        first = hlc_from(wall_ms + self._future_ms + 1)
        return [slot for slot in slots if slot.entry is not None and slot.entry.hlc >= first]

    def ripe_ms(self, slot: Slot) -> int:
        """Return the wall time at which it begins to count."""
        return hlc_ms(slot.said.hlc) - self._future_ms

    def latest(self, key: str) -> Entry | None:
        """Return what counts for a key, or will count when its time has come."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        return cell.entry if isinstance(cell, Slot) else cell.best()[0].entry

    def winner(self, key: str, wall_ms: int) -> Slot | None:
        """Return the entry that counts, a removal too; None if there is none."""
        cell = self._cells.get(key)
        if cell is None:
            return None
        if isinstance(cell, Slot):
            return cell if self.counts(cell, wall_ms) else None
        ranked = self._ranked(cell, wall_ms)
        return ranked[0] if ranked else None

    def conflicts(self, key: str, wall_ms: int) -> Sequence[Held]:
        """Return what is concurrent with the winner, and what comes from the future; newest first.

        Two nodes that say the same as of the same time, as when both write a removal again, do not disagree.
        """
        cell = self._cells.get(key)
        later = [slot for slot in self.slots(key) if not self.counts(slot, wall_ms)]
        shown = [replace(slot.held, future=True) for slot in _best(later)]
        ranked = self._ranked(cell, wall_ms) if isinstance(cell, _Cell) else ()
        shown += [
            slot.held
            for slot in ranked[1:]
            if not (_same(slot, ranked[0]) or self.beaten(slot, wall_ms, now_only=False))
        ]
        return shown

    def beaten(self, slot: Slot, wall_ms: int, *, now_only: bool) -> bool:
        """Return whether a later write has seen this one. `now_only`: one of the present document."""
        order, hlc = slot.order, slot.said.hlc
        return any(
            other.said.seen >= hlc
            and other.order > order
            and not (now_only and other.old)
            and self.counts(other, wall_ms)
            for other in self.slots(slot.key)
        )

    def doubled(self, slot: Slot, wall_ms: int, *, now_only: bool) -> bool:
        """Return whether its writer's latest entry of this key is
        another one, or the same elsewhere.
        """
        rank, before = slot.rank, True
        for other in self.slots(slot.key):
            if other is slot:
                before = False
            elif other.origin == slot.origin and not (now_only and other.old):
                # Of two that are the same to the last byte in one array, the first stays.
                more = other.rank > rank or (before and other.rank == rank)
                if more and self.counts(other, wall_ms):
                    return True
        return False

    def _ranked(self, cell: _Cell, wall_ms: int) -> Sequence[Slot]:
        if hlc_ms(cell.last) > wall_ms + self._future_ms:
            return _best(slot for slot in cell.slots if self.counts(slot, wall_ms))
        return cell.best()


def _same(one: Slot, other: Slot) -> bool:
    return one.said.hlc == other.said.hlc and one.said.value == other.said.value


def _best(slots: Iterable[Slot]) -> list[Slot]:
    """Return the word of each origin, the latest first."""
    best: dict[str, Slot] = {}
    for slot in slots:
        known = best.get(slot.origin)
        if known is None or slot.rank > known.rank:
            best[slot.origin] = slot
    return sorted(best.values(), key=lambda slot: slot.order, reverse=True)
