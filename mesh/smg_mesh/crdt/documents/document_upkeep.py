"""Document upkeep: an owner's unasked work on its entries: deletions,
copies, new epochs; in small steps.

- What another owner's later write has seen, and what is there twice, is deleted by its owner.
- A removal is deleted once it is old enough and no node holds a value of its key. A node that has
  an earlier value all the same, on its way or left of an earlier epoch, drops it when the removal
  goes.
- After an epoch has begun, what is left of the earlier one is written again: one's own at once, others'
  when it is this node's turn.
- A document that has grown too much, or too old, is begun anew, by the first of the living in line.

Every call is bounded (256 entries), so that no loop stalls; `due_ms` says when to call again. An
epoch needs no majority: numbers merge by maximum, two that begin the same epoch on two sides of a
cut have begun the same document, and any node that holds an entry that the new document lacks
writes it again, so nothing is lost whichever node begins one, and when. Copies keep origin, boot,
time and `seen`: two of them are one write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Final

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents.document import CHANGE_ENTRIES_MAX, Change
from smg_mesh.crdt.documents.document_epochs import DocumentEpochs
from smg_mesh.crdt.documents.document_slot import Slot, name_of_copy
from smg_mesh.crdt.documents.epoch_leftovers import EpochLeftovers, place_of
from smg_mesh.crdt.hybrid_clock import hlc_ms

SETTLE_KEYS_MAX: Final = 128
CARRY_ENTRIES_MAX: Final = 256
"""Looked at in one call: about 2 ms."""
LOOK_AGAIN_MS: Final = 3_600_000
"""An old removal that is still needed is looked at again after an hour."""
_GARBAGE_SHARE: Final = 8
"""A large document is begun anew if at least so small a part of it would go."""


@dataclass(frozen=True, slots=True)
class Done:
    """Result of one call: what was written, and when there is more to do;
    None: only when something changes.
    """

    writes: Sequence[Change]
    deleted: bool
    due_ms: int | None


class DocumentUpkeep:
    """Upkeep of one document by one node."""

    def __init__(self, name: str, holding: DocumentEpochs, *, options: StateOptions) -> None:
        self._name: Final = name
        self._holding: Final = holding
        self._options: Final = options
        self.begun_ms: int | None = None
        """The wall time at which the present epoch was first seen here."""
        self._heads: Mapping[str, int] | None = None

    def tend(self, *, now_ms: int, living: Sequence[str]) -> Done:
        """Do what is due."""
        holding = self._holding
        if holding.left is None and self._wants_epoch(living):
            holding.move_up(holding.epoch + 1)
            self.begun_ms = holding.wall_ms
        self._heads = None
        deleted = self._settle()
        writes: Sequence[Change] = ()
        if holding.left is not None:
            holding.left.begin(now_ms)
            writes = self._carry_due(holding.left, now_ms=now_ms, living=living)
        dues_ms = [now_ms] if holding.crowded else []
        if holding.left is not None:
            union_ms = self._options.union_ms
            dues_ms.append(holding.left.next_ms(self._name, holding.me, living, union_ms))
        dues_ms += [now_ms + due_ms - holding.wall_ms for due_ms in self._wall_dues()]
        return Done(writes, deleted, max(now_ms, min(dues_ms)) if dues_ms else None)

    # ── Own entries that nobody needs ────────────────────────────────────────

    def _settle(self) -> bool:
        """Delete own entries that are beaten, doubled, or removals that are old enough; return whether there were any."""
        holding = self._holding
        holding.ripen()
        old: list[str] = []
        while holding.removals and self._grown_old(holding.removals[0][0]):
            _, key = heappop(holding.removals)
            holding.crowded[key] = None
            old.append(key)
        keys = list(holding.crowded)[:SETTLE_KEYS_MAX]
        for key in keys:
            del holding.crowded[key]
        needless = [slot for key in keys for slot in self._needless(key)]
        needless += [slot for slot in self._outlived() if slot not in needless]
        if needless:
            holding.change({}, needless)
        for key in old:
            if holding.cells.slots(key):  # somebody still needs it: look again later
                again_ms = holding.wall_ms - self._keep_ms + LOOK_AGAIN_MS
                heappush(holding.removals, (again_ms, key))
        return bool(needless)

    def _outlived(self) -> Sequence[Slot]:
        """Return own values whose removal was forgotten before its owner heard of them."""
        holding = self._holding
        if not holding.fallen:
            return ()
        keys = holding.cells.keys()
        slots = [slot for key in keys for slot in holding.cells.slots(key)]
        found = [
            slot
            for slot in slots
            if slot.root == holding.me and not slot.old and holding.outlived(slot)
        ]
        holding.fallen.clear()
        return found

    def _needless(self, key: str) -> Sequence[Slot]:
        cells, wall_ms = self._holding.cells, self._holding.wall_ms
        mine = [slot for slot in cells.slots(key) if slot.root == self._holding.me and not slot.old]
        return [
            slot
            for slot in mine
            if cells.beaten(slot, wall_ms, now_only=True)
            or cells.doubled(slot, wall_ms, now_only=True)
            or self._forgettable(slot)
        ]

    def _forgettable(self, slot: Slot) -> bool:
        """Return whether this is an old removal that nothing held needs any more.

        Needed is it by a value of its key, and by an earlier value of any key below: who removed `ID`
        removed `ID/api`.
        """
        if slot.said.value is not None or not self._grown_old(hlc_ms(slot.said.hlc)):
            return False
        if any(other.said.value is not None for other in self._holding.cells.slots(slot.key)):
            return False
        if self._heads is None:
            self._heads = self._earliest_below()
        return self._heads.get(slot.key, slot.said.hlc) >= slot.said.hlc

    def _earliest_below(self) -> Mapping[str, int]:
        """Return of each key that others lie below (`KEY/…`) when the earliest value there was written."""
        earliest: dict[str, int] = {}
        cells = self._holding.cells
        keys = cells.keys()
        for key in keys:
            times = [slot.said.hlc for slot in cells.slots(key) if slot.said.value is not None]
            head, parted, _ = key.rpartition("/")
            while parted and times:
                earliest[head] = min(earliest.get(head, times[0]), *times)
                head, parted, _ = head.rpartition("/")
        return earliest

    @property
    def _keep_ms(self) -> int:
        """For how long a removal is kept: longer than a node may be away,
        whose disk is a save older still.
        """
        return self._options.removed_keep_ms + self._options.save_apart_ms

    def _grown_old(self, written_ms: int) -> bool:
        return written_ms + self._keep_ms <= self._holding.wall_ms

    # ── What is left of earlier epochs ───────────────────────────────────────

    def carry_own(self) -> None:
        """Write own entries again, as many as one call may; what is written is in the document."""
        self._heads = None
        if self._holding.left is not None:
            self._carry_root(self._holding.left, self._holding.me, CARRY_ENTRIES_MAX, [])

    def _carry_due(
        self, left: EpochLeftovers, *, now_ms: int, living: Sequence[str]
    ) -> Sequence[Change]:
        """Write again what it is this node's turn to write; end the window when it is over."""
        union_ms, room = self._options.union_ms, CARRY_ENTRIES_MAX
        changes: list[Change] = []
        roots = left.due_roots(
            self._name, self._holding.me, living, now_ms=now_ms, union_ms=union_ms
        )
        for root in roots:
            room -= self._carry_root(left, root, room, changes)
        if left.over(now_ms, union_ms):
            self._holding.left = None
        return changes

    def _carry_root(self, left: EpochLeftovers, root: str, room: int, changes: list[Change]) -> int:
        """Carry the first `room` entries of one root, adding what was written; return how many."""
        carried = 0
        while slots := left.first(root, min(room - carried, CHANGE_ENTRIES_MAX)):
            carried += len(slots)
            changes += self._carry(slots)
        return carried

    def _carry(self, slots: Sequence[Slot]) -> list[Change]:
        """Write these into the present document if it lacks them; then they are not left any more."""
        holding = self._holding
        puts = {self._name_of(slot): slot.value for slot in slots if self._lacked(slot)}
        change = holding.change(puts) if puts else None
        for slot in slots:
            holding.forget(slot)
        return [] if change is None else [change]

    def _name_of(self, slot: Slot) -> str:
        """Return under which name this node writes it: its own, or a copy of another's."""
        return slot.key if slot.origin == self._holding.me else name_of_copy(slot.key, slot.origin)

    def _lacked(self, slot: Slot) -> bool:
        cells, wall_ms = self._holding.cells, self._holding.wall_ms
        return not (
            cells.beaten(slot, wall_ms, now_only=False)
            or cells.doubled(slot, wall_ms, now_only=False)
            or self._forgettable(slot)
        )

    def _wall_dues(self) -> Sequence[int]:
        holding = self._holding
        dues = sorted(holding.unripe.values())[:1]
        if holding.removals:
            dues.append(holding.removals[0][0] + self._keep_ms)
        return dues

    # ── A new epoch ──────────────────────────────────────────────────────────

    def _wants_epoch(self, living: Sequence[str]) -> bool:
        """Return whether the document is to be begun anew, and by this node."""
        holding = self._holding
        if self.begun_ms is None or self.begun_ms > holding.wall_ms:
            self.begun_ms = holding.wall_ms
        if holding.document is None or not (self._too_large() or self._too_old(living)):
            return False
        return place_of(holding.me, f"{self._name}\0{holding.epoch}", living) == 0

    def _too_large(self) -> bool:
        document, options = self._holding.document, self._options
        assert document is not None
        if document.clients > options.epoch_clients or document.deletions > options.epoch_deletions:
            return True
        text_bytes = document.mirror.text_bytes

        def wasteful() -> bool:
            size_bytes = document.size_bytes
            garbage_bytes = size_bytes - text_bytes
            return size_bytes > options.epoch_bytes and garbage_bytes * _GARBAGE_SHARE > size_bytes

        if not wasteful():  # The size that is kept is never less than the real one …
            return False
        document.dump()  # … which is measured before anything is done about it.
        return wasteful()

    def _too_old(self, living: Sequence[str]) -> bool:
        """Return whether a week is over and anything would be gained: documents do not all go at once."""
        holding, document = self._holding, self._holding.document
        assert document is not None
        assert self.begun_ms is not None
        spread = int.from_bytes(blake2b(self._name.encode(), digest_size=2).digest()) / 0xFFFF
        age_ms = self._options.epoch_age_ms * (0.9 + 0.2 * spread)
        if holding.wall_ms - self.begun_ms < age_ms:
            return False
        if document.deletions or any(name not in living for name in document.owners()):
            return True
        self.begun_ms = holding.wall_ms
        return False
