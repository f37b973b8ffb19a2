"""Document epochs: all that one node holds of one document through its
epochs, and the index over it.

The present document is made when it is first needed. When a later epoch begins, the present document
becomes the earlier one: its entries stay in the index as *leftovers* until they are written again, and for
a while it still takes updates of nodes that have not heard of the new epoch.

Every entry that comes or goes passes `_absorb`, so that the index, the leftovers and what changed agree
whatever happens; also when the library fails over foreign bytes and the document must be begun anew.
"""

from collections.abc import Collection, Mapping, Sequence
from heapq import heappush
from typing import Final, Protocol

from smg_mesh.crdt.documents.document import CLIENT_BITS, Change, Document, DocumentError, Merged
from smg_mesh.crdt.documents.document_slot import Slot
from smg_mesh.crdt.documents.early_updates import EarlyUpdates
from smg_mesh.crdt.documents.epoch_leftovers import EpochLeftovers
from smg_mesh.crdt.documents.key_index import KeyIndex
from smg_mesh.crdt.entry import Entry
from smg_mesh.crdt.hybrid_clock import hlc_ms

_MANY: Final = 64
"""Keys of a larger update are all told as changed: to compare costs more than it saves."""


class Rng(Protocol):
    """Chance, as an argument; `random.Random` fits."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of `k` random bits."""
        ...


class DocumentEpochs:
    """The present document, what is left of earlier ones, and every entry of both by key."""

    def __init__(self, me: str, *, future_ms: int, rng: Rng) -> None:
        self.me: Final = me
        self.epoch = 0
        self.document: Document | None = None
        self.left: EpochLeftovers | None = None
        self.cells: Final = KeyIndex(future_ms=future_ms)
        self.wall_ms = 0
        """The latest wall time said: what has counted once does not become future again."""
        self.early: Final = EarlyUpdates()
        self.crowded: dict[str, None] = {}
        """Keys of which more than one entry is held, or was: some of ours may be needless now."""
        self.unripe: dict[str, int] = {}
        """Keys with an entry from the future, and the wall time at which to look at them again."""
        self.removals: list[tuple[int, str]] = []
        """A heap: when this node's own removals were written, in wall time, and their keys."""
        self.fallen: dict[str, int] = {}
        """Removals that were here and that nobody remembers now, by key, and when they were written."""
        self._rng: Final = rng
        self._undated: list[Slot] = []
        self._shadows: dict[tuple[str, str], Slot] = {}
        self._before: dict[str, Entry | None] = {}
        self._reported: dict[str, None] = {}

    # ── What changed ─────────────────────────────────────────────────────────

    def see(self, wall_ms: int) -> int:
        """Take note of the wall time; return the latest ever said."""
        if wall_ms > self.wall_ms:
            self.wall_ms = wall_ms
            if self._undated:
                undated, self._undated = self._undated, []
                self._date(undated)
        return self.wall_ms

    def report(self, key: str) -> None:
        """Let a key be among those that changed."""
        self._reported[key] = None

    def touch(self, key: str) -> None:
        """Remember what is latest for a key before it changes."""
        if key not in self._before:
            self._before[key] = self.cells.latest(key)

    def told(self, key: str) -> None:
        """Leave out a changed key that its writer knows of already."""
        self._before.pop(key, None)

    def changed(self) -> tuple[str, ...]:
        """Return the keys for which another write may count than when this was last asked, sorted."""
        if not self._before and not self._reported:
            return ()
        before, self._before = self._before, {}
        reported, self._reported = self._reported, {}
        for key, was in before.items():
            if key in self.unripe or was != self.cells.latest(key):
                reported[key] = None
        return tuple(sorted(reported))

    def _absorb(self, added: Sequence[Slot], dropped: Sequence[Slot]) -> None:
        readable = [slot for slot in added if slot.entry is not None]
        late: Sequence[Slot] = ()
        if self.wall_ms:
            late = self._date(readable)
        else:
            self._undated += readable
        gone = [slot for slot in dropped if slot.entry is not None]
        if late or self._shadows:
            gone = self._shadowed(late, gone)
        replaced = {(slot.root, slot.name): slot for slot in gone}
        done: set[int] = set()
        note = self.report if len(readable) > _MANY else self.touch
        for slot in readable:
            note(slot.key)
            before = replaced.pop((slot.root, slot.name), None) if replaced else None
            if before is None:
                count = self.cells.add(slot)
            else:
                count = self.cells.replace(before, slot)
                done.add(id(before))
                if self.left is not None:
                    self.left.discard(before)
            if count > 1:
                self.crowded[slot.key] = None
            if slot.said.value is None and slot.root == self.me:
                heappush(self.removals, (hlc_ms(slot.said.hlc), slot.key))
        gone = [slot for slot in gone if id(slot) not in done]
        for slot in gone:
            self.forget(slot)
        if any(slot.said.value is None for slot in gone):
            self._fell(gone)

    def _fell(self, gone: Sequence[Slot]) -> None:
        """See which removals were deleted of which neither a copy nor a later word is left.

        What they had beaten and is left of an earlier epoch would be carried over, and count again.
        """
        for slot in gone:
            key, hlc = slot.key, slot.said.hlc
            others = self.cells.slots(key)
            if slot.said.value is None and not any(one.said.hlc >= hlc for one in others):
                self.fallen[key] = max(hlc, self.fallen.get(key, 0))
        if self.left is not None and self.fallen:
            for slot in [slot for slot in self.left.slots() if self.outlived(slot)]:
                self.forget(slot)

    def outlived(self, slot: Slot) -> bool:
        """Return whether this is a value that a removal had beaten which is no longer remembered.

        A removal of `ID` beats earlier values of `ID` and of every key below, `ID/…`.
        """
        if slot.said.value is None:
            return False
        parted, head = "/", slot.key
        while parted:
            if self.fallen.get(head, 0) > slot.said.hlc:
                return True
            head, parted, _ = head.rpartition("/")
        return False

    def _date(self, slots: Sequence[Slot]) -> Sequence[Slot]:
        """Return which of these are from the future, and note when they will count."""
        late = self.cells.later(slots, self.wall_ms)
        for slot in late:
            ripe_ms = self.cells.ripe_ms(slot)
            self.unripe[slot.key] = min(ripe_ms, self.unripe.get(slot.key, ripe_ms))
        return late

    def _shadowed(self, late: Sequence[Slot], gone: Sequence[Slot]) -> list[Slot]:
        """Keep what an owner replaced by an entry from the future until that counts; return the rest.

        Otherwise a key would vanish for a while because its owner's clock is ahead.
        """
        places = {(slot.root, slot.name) for slot in late}
        rest: list[Slot] = []
        for slot in gone:
            place = (slot.root, slot.name)
            if place in places and place not in self._shadows and self._counts(slot):
                slot.old = True
                self._shadows[place] = slot
                continue
            rest.append(slot)
            if place in self._shadows and place not in places:
                rest.append(self._shadows.pop(place))
        return rest

    def _counts(self, slot: Slot) -> bool:
        return self.cells.counts(slot, self.wall_ms)

    def ripen(self) -> None:
        """Let what was from the future count if its time has come."""
        for key in [key for key, due_ms in self.unripe.items() if due_ms <= self.wall_ms]:
            del self.unripe[key]
            self.report(key)
            self.crowded[key] = None
            for slot in [slot for slot in self.cells.slots(key) if self._counts(slot)]:
                shadow = self._shadows.get((slot.root, slot.name))
                if shadow is not None and shadow is not slot:
                    self.forget(self._shadows.pop((slot.root, slot.name)))
            self._date(self.cells.slots(key))

    def forget(self, slot: Slot) -> None:
        """Take an entry out of the index."""
        key = slot.key
        self.touch(key)
        self.cells.remove(slot)
        others = self.cells.slots(key)
        if len(others) > 1 or (others and others[0].said.value is None):
            self.crowded[key] = None
        else:
            self.crowded.pop(key, None)
        if self.left is not None:
            self.left.discard(slot)

    # ── Writing and merging ──────────────────────────────────────────────────

    def open(self) -> Document:
        """Return the present document, made now if it was not needed before."""
        if self.document is None:
            self.epoch = max(self.epoch, 1)
            self.document = Document(self._rng.getrandbits(CLIENT_BITS))
        return self.document

    def change(self, puts: Mapping[str, bytes], drops: Collection[Slot] = ()) -> Change | None:
        """Write into this node's own array; None if that changes nothing."""
        document = self.open()
        try:
            change = document.change(self.me, puts, drops)
        except DocumentError:
            # What peers sent has left something in the library that it chokes on.
            self.begin_again()
            change = self.open().change(self.me, puts)
        if change is not None:
            self._absorb(change.added, change.dropped)
        return change

    def merge(
        self, update: bytes, *, upto: int | None = None, head: tuple[int, int] | None = None
    ) -> None:
        """Take an update into the present document; DocumentError, and then nothing has changed."""
        document = self.open()
        try:
            merged = document.merge(update, upto=upto, head=head)
        except DocumentError:
            if not document.broken:
                raise
            # It may be this update, or what an earlier one left behind: a fresh document will tell.
            self.begin_again()
            merged = self._merge_once_more(update)
        self._absorb(merged.added, merged.dropped)

    def _merge_once_more(self, update: bytes) -> Merged:
        document = self.open()
        try:
            return document.merge(update)
        except DocumentError:
            if document.broken:
                self.begin_again()
            raise

    def merge_earlier(self, update: bytes) -> None:
        """Take an update into the earlier document; DocumentError if it is none, or cannot be taken."""
        assert self.left is not None
        assert self.left.document is not None
        try:
            merged = self.left.document.merge(update)
        except DocumentError:
            if self.left.document.broken:
                self.left.document = None
            raise
        for slot in merged.added:
            self.leave(slot)
        self._absorb(merged.added, merged.dropped)

    def earlier(self, epoch: int) -> Document | None:
        """Return the document of that earlier epoch while it is still read."""
        return self.left.document if self.left is not None and self.left.epoch == epoch else None

    def leave(self, slot: Slot) -> None:
        """Make an entry one that is left of an earlier epoch."""
        assert self.left is not None
        slot.old = True
        if slot.entry is not None:
            self.left.add(slot)

    # ── Epochs ───────────────────────────────────────────────────────────────

    def move_up(self, epoch: int) -> None:
        """Begin a later epoch: what is held becomes what is left."""
        assert epoch > self.epoch
        earlier = [] if self.left is None else self.left.slots()
        document, self.document = self.document, None
        usable = document if document is not None and not document.broken else None
        self.left = EpochLeftovers(self.epoch, usable)
        self.epoch = epoch
        self.early.clear()
        for slot in earlier:
            self.left.add(slot)
        if document is not None:
            for slot in document.mirror.slots():
                self.leave(slot)
        if not self.cells:
            self.left = None

    def begin_again(self, update: bytes | None = None) -> None:
        """Begin the present document anew, under a fresh client id.

        From `update`, the whole document of a peer; without one, from what can be had of our own. What
        was held and is not in it is left over.
        """
        broken = self.open()
        fresh, added = self._renewed(broken, update)
        self.document = fresh
        if self.left is None:
            self.left = EpochLeftovers(self.epoch, None)
        for slot in broken.mirror.slots():
            self.leave(slot)
        self.early.clear()
        self._absorb(added, ())

    def _renewed(self, broken: Document, update: bytes | None) -> tuple[Document, Sequence[Slot]]:
        fresh = Document(self._rng.getrandbits(CLIENT_BITS))
        try:
            whole = broken.dump() if update is None else update
            fresh.declare(broken.owners())
            return fresh, fresh.merge(whole).added
        except DocumentError:
            if update is not None:
                raise
            return Document(self._rng.getrandbits(CLIENT_BITS)), ()

    def take_left(self, update: bytes, owners: Sequence[str]) -> None:
        """Take in a whole document of an earlier epoch as something that is left; DocumentError."""
        document = Document(self._rng.getrandbits(CLIENT_BITS))
        document.declare(owners)
        added = document.merge(update).added
        if self.left is None:
            self.left = EpochLeftovers(self.epoch, None)
        for slot in added:
            self.leave(slot)
        self._absorb(added, ())

    def take_left_slots(self, slots: Sequence[Slot]) -> None:
        """Take in entries that an earlier life of this node had left over."""
        if self.left is None:
            self.left = EpochLeftovers(0, None)
        for slot in slots:
            self.leave(slot)
        self._absorb(slots, ())
