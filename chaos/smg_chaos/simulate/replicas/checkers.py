"""Checkers of replicated state: invariants that are tested after every step.

After every call into a replica its pieces that changed are looked at, cell by cell:

- nothing counts that was never written;
- what counts never goes back to an earlier write, and never vanishes, also over a restart from a complete
  disk; only removals are forgotten, when they are old enough, and never what they removed comes back;
- an acknowledged write counts at once where it was made;
- documents, rows and registers stay below their caps.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from smg_chaos.simulate.hosts.state_write import Cell, Write
from smg_chaos.simulate.replicas.recorded_views import Views
from smg_chaos.simulate.replicas.replica_interface import Replica
from smg_chaos.simulate.replicas.write_ledger import Held, Ledger
from smg_mesh.config import StateOptions

_CAPS_EVERY: Final = 16
"""Looks at one node after which its sizes are looked at."""
HLC_COUNTER_BITS: Final = 16
CLOCKS_APART_MS: Final = 1_000
"""Two clocks may be so far apart where removals are kept for seconds only."""
_DOCUMENT_GROWTH_FACTOR: Final = 4
"""A document is refused new keys at its cap; what other nodes wrote meanwhile is taken all the same."""


class CheckedLife(Protocol):
    """The life that is checked."""

    number: int
    held: Held
    replica: Replica
    views: Views

    def wall_ms(self) -> int:
        """Return what the node's wall clock shows."""
        ...

    def broken(self, promise: str) -> None:
        """Note that something happened which must not."""
        ...


class CheckedCommons(Protocol):
    """The replicated state of the world that is checked."""

    options: StateOptions
    wild: bool
    ledger: Ledger

    def note_cell(self, cell: Cell) -> None:
        """Look at a cell from now on."""
        ...

    def cells_of(self, space: str) -> Iterable[Cell]:
        """Return all cells of a namespace or table that were ever written."""
        ...


class StateCheckers:
    """All invariants of one world's replicated state."""

    def __init__(self, commons: CheckedCommons) -> None:
        self._commons = commons
        self.looks = 0

    def counts(self, life: CheckedLife, write: Write) -> None:
        """A write was acknowledged: it counts there now."""
        before = life.held.writes.get(write.cell)
        self._commons.note_cell(write.cell)
        if before is not None and write.order < before.order and not self._commons.wild:
            life.broken(f"acknowledged {_told(write)}, which {_told(before)} beats")
            return
        self._commons.ledger.holds(life.number, write)

    def restored(self, life: CheckedLife, sure: Mapping[Cell, Write]) -> None:
        """A life began on a disk on which all of this was: it must still count."""
        for write in sure.values():
            self._commons.ledger.holds(life.number, write)
        for cell in sure:
            self._cell(life, cell)

    def look(self, life: CheckedLife, pieces: Iterable[str]) -> None:
        """Look at all cells of these pieces."""
        self.looks += 1
        if self.looks % _CAPS_EVERY == 0:
            self._caps(life)
        for space in dict.fromkeys(piece.partition("/")[0] for piece in pieces):
            for cell in self._commons.cells_of(space):
                self._cell(life, cell)

    def _cell(self, life: CheckedLife, cell: Cell) -> None:
        before = life.held.writes.get(cell)
        now = life.views.latest(cell)
        if now is None:
            if before is not None and not self._may_vanish(life, before):
                life.broken(
                    f"does not have {cell[0]}/{cell[1]} any more, which was {_told(before)}"
                )
                life.held.writes.pop(cell)
            return
        hlc, owner, value = now
        if before is not None and (hlc, value) == (before.hlc, before.value):
            return
        write = self._commons.ledger.known(cell, hlc, value)
        if write is None and value is None:
            write = self._commons.ledger.taken_away(cell, hlc, owner)
        if write is None and self._commons.wild:
            write = self._commons.ledger.dated_again(cell, hlc, owner, value)
        if write is None:
            told = f"{value!r:.60} of {owner} at {hlc}"
            life.broken(f"has {told} for {cell[0]}/{cell[1]}, which nobody wrote")
        elif (
            before is not None
            and write.order < before.order
            and not self._may_go_back(life, before, write)
        ):
            life.broken(f"went back from {_told(before)} to {_told(write)}")
            life.held.writes[cell] = write
        else:
            self._commons.ledger.holds(life.number, write)

    def _may_go_back(self, life: CheckedLife, before: Write, now: Write) -> bool:
        """Return whether an earlier write may count where a later one did."""
        ledger = self._commons.ledger
        return (
            self._commons.wild
            or ledger.is_beaten(before)
            or ledger.is_void(before)
            or (now.value is None and self._is_old_removal(life, before))
        )

    def _may_vanish(self, life: CheckedLife, before: Write) -> bool:
        """Return whether a node may know nothing of a cell any more."""
        ledger = self._commons.ledger
        return (
            self._commons.wild
            or ledger.is_retired(before.cell)
            or ledger.is_beaten(before)
            or self._is_old_removal(life, before)
            or self._was_removed(life, before)
        )

    def _was_removed(self, life: CheckedLife, before: Write) -> bool:
        """Return whether a write was removed, so long ago that the others may not know of it any more.

        Who missed the removal learns only that there is nothing.
        """
        writes = self._commons.ledger.writes(before.cell)
        return any(
            one.order > before.order and self._is_old_removal(life, one)
            for one in writes
            if one.value is None
        )

    def _is_old_removal(self, life: CheckedLife, write: Write) -> bool:
        keep_ms = self._commons.options.removed_keep_ms - CLOCKS_APART_MS
        return is_old_removal(write, life.wall_ms(), keep_ms)

    def _caps(self, life: CheckedLife) -> None:
        options = self._commons.options
        size_bytes_max = _DOCUMENT_GROWTH_FACTOR * options.document_bytes_max
        for piece in life.replica.holdings(full=False):
            if (
                piece.name.partition("/")[0] in options.documents
                and piece.size_bytes > size_bytes_max
            ):
                life.broken(f"let {piece.name} grow to {piece.size_bytes} bytes")
        for name in options.tables:
            if len(life.replica.table(name)) > options.table_rows_max:
                life.broken(f"keeps {len(life.replica.table(name))} rows of {name}")


def is_old_removal(write: Write, wall_ms: int, removed_keep_ms: int) -> bool:
    """Return whether nodes may forget a write: a removal made long enough ago."""
    removal = write.value is None or (write.cell[0] == "sticky" and not write.value)
    return removal and wall_ms - (write.hlc >> HLC_COUNTER_BITS) >= removed_keep_ms


def _told(write: Write) -> str:
    said = "removed" if write.value is None else f"{write.value!r:.60}"
    return f"{write.cell[0]}/{write.cell[1]} {said} by {write.owner} at {write.hlc}"
