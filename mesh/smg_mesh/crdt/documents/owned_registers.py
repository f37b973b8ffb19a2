"""Owned registers: one document of a namespace through its epochs:
values by key, and entries by owner.

Every node writes into its own part only; what counts is decided by the reader (`key_index`), so no
write is ever refused because of another node, and a conflict is two entries side by side until some
node writes having seen both. Documents leak a little with every restart and every owner that is
gone; so now and then one is begun anew, as the next *epoch* (`document_upkeep`), and for a while
both are read.

Nothing here knows a clock. `wall_ms` is the wall clock, of which the latest ever said counts; `now_ms` is
monotonic. What a call writes, it returns for the others to hear, except what an exchange is about to carry
anyway: own entries written again when `summary`, `merge` or `load` move up to a later epoch.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from smg_mesh.config import StateOptions
from smg_mesh.crdt.documents import document_codec as envelope
from smg_mesh.crdt.documents.divergence_watch import DivergenceWatch
from smg_mesh.crdt.documents.document import Change, DocumentError
from smg_mesh.crdt.documents.document_codec import Summary, Update, check_epoch
from smg_mesh.crdt.documents.document_epochs import DocumentEpochs, Rng
from smg_mesh.crdt.documents.document_mirror import DIGEST_BYTES
from smg_mesh.crdt.documents.document_slot import COPY_MARK, Slot, weight_of
from smg_mesh.crdt.documents.document_upkeep import DocumentUpkeep
from smg_mesh.crdt.documents.state_vector import VectorError, beginning, origins, read_vector
from smg_mesh.crdt.entry import Entry, Held, encode_entry
from smg_mesh.crdt.namespace import KEY_BYTES_MAX, VALUE_BYTES_MAX, StateError

RESERVE_SHARE: Final = 8
"""A full document still takes removals and new values of old keys, up to an eighth above its limit."""
_NOTHING_SEEN: Final = b"\0"


class Written(msgspec.Struct, frozen=True):
    """An own write for the others: `upto` is how far `client` has written with it, in that epoch."""

    update: bytes
    client: int
    upto: int
    epoch: int


class MergedKeys(msgspec.Struct, frozen=True):
    """Keys for which another write may count now, sorted; `gap`: something before it did not come."""

    changed: tuple[str, ...]
    gap: bool


class Tended(msgspec.Struct, frozen=True):
    """Result of `tend`: what it changed and wrote; `due_ms`: when to call it
    again even if nothing changes.

    `writes` only add and may go as rumors. `deleted` says that needless entries were deleted, which
    is for exchanges only: a node that heard of that before the write that made them needless would
    hold nothing.
    """

    changed: tuple[str, ...]
    writes: tuple[Written, ...]
    deleted: bool
    due_ms: int | None


class OwnedRegisters:
    """The registers of document `name` as node `me` holds them; `boot` is its life, and may be set."""

    def __init__(self, name: str, me: str, boot: int, *, options: StateOptions, rng: Rng) -> None:
        self.name: Final = name
        self.boot = boot
        self._me: Final = me
        self._options: Final = options
        self._holding: Final = DocumentEpochs(me, future_ms=options.future_ms, rng=rng)
        self._tending: Final = DocumentUpkeep(name, self._holding, options=options)
        self._odd: Final = DivergenceWatch()

    # ── Reading ──────────────────────────────────────────────────────────────

    @property
    def epoch(self) -> int:
        """How often the document was begun anew; 0 before anything was ever in it."""
        return self._holding.epoch

    @property
    def digest(self) -> bytes:
        """16 bytes over the contents of the present epoch."""
        document = self._holding.document
        return bytes(DIGEST_BYTES) if document is None else document.digest

    @property
    def size_bytes(self) -> int:
        """About how large it is, with what is left of earlier epochs."""
        holding = self._holding
        size_bytes = 0 if holding.document is None else holding.document.size_bytes
        return size_bytes + (0 if holding.left is None else holding.left.weight)

    @property
    def empty(self) -> bool:
        """Whether nothing is held of any key."""
        return not self._holding.cells

    @property
    def pending(self) -> int:
        """How many updates wait for their predecessors."""
        return len(self._holding.early)

    def keys(self) -> Sequence[str]:
        """Return every key of which anything is held, sorted."""
        return self._holding.cells.keys()

    def winner(self, key: str, wall_ms: int) -> Held | None:
        """Return what counts for a key, which may be a removal."""
        slot = self._holding.cells.winner(key, self._holding.see(wall_ms))
        return None if slot is None else slot.held

    def conflicts(self, key: str, wall_ms: int) -> Sequence[Held]:
        """Return what is concurrent with the winner, or comes from the future; newest first."""
        return self._holding.cells.conflicts(key, self._holding.see(wall_ms))

    def has(self, epoch: int, client: int, upto: int) -> bool:
        """Return whether everything that writer wrote up to there in that epoch was seen."""
        holding = self._holding
        if epoch == holding.epoch:
            return holding.document is not None and holding.document.has(client, upto)
        earlier = holding.earlier(epoch)
        return earlier is not None and earlier.has(client, upto)

    # ── Writing ──────────────────────────────────────────────────────────────

    def write(self, key: str, value: bytes | None, *, hlc: int, seen: int, wall_ms: int) -> Written:
        """Write a value or a removal (None) that replaces what was written at `seen`.

        StateError "too_large" for a key or a value over its limit, and "full" if there is no room: for a
        new key at `document_bytes_max`, for a removal or a new value of a key that is there an eighth
        above. Nothing has changed then. ValueError for a key that holds NUL or is no Unicode.
        """
        holding = self._holding
        holding.see(wall_ms)
        _check_sizes(key, value)
        entry = encode_entry(Entry(hlc, self.boot, seen, value))
        self._check_room(key, value, entry)
        beaten = [
            slot
            for slot in self._own(key)
            if slot.name != key and slot.said.hlc <= seen and slot.order < (hlc, self._me)
        ]
        change = holding.change({key: entry}, beaten)
        assert change is not None, "a time was used twice"
        holding.told(key)
        return self._written(change)

    def retire(self, key: str) -> Written | None:
        """Take this node's own entry away; None if there is none.

        Without a trace where that is certain. Where copies of it may be about, a removal is written.
        """
        holding = self._holding
        own = [slot for slot in holding.cells.slots(key) if slot.origin == self._me]
        if not own:
            return None
        if all(slot.root == self._me and not slot.old for slot in own):
            change = holding.change({}, own)
        else:
            hlc = max(slot.said.hlc for slot in own)
            removal = Entry(hlc + 1, self.boot, hlc, None)
            change = holding.change({key: encode_entry(removal)})
        assert change is not None
        holding.told(key)
        return self._written(change)

    def _own(self, key: str) -> Sequence[Slot]:
        slots = self._holding.cells.slots(key)
        return [slot for slot in slots if slot.root == self._me and not slot.old]

    def _check_room(self, key: str, value: bytes | None, entry: bytes) -> None:
        holding, room_bytes = self._holding, self._options.document_bytes_max
        winner = holding.cells.winner(key, holding.wall_ms)
        if value is None or (winner is not None and winner.said.value is not None):
            room_bytes += room_bytes // RESERVE_SHARE
        replaced = sum(slot.weight for slot in self._own(key) if slot.name == key)
        grown_bytes = weight_of(key, entry) - replaced
        if grown_bytes <= 0 or self._used_bytes() + grown_bytes <= room_bytes:
            return
        if holding.document is not None:
            holding.document.dump()  # measures it: the size that is kept is an upper bound
        if self._used_bytes() + grown_bytes > room_bytes:
            message = (
                f"{self.name} has no room for {key[:64]}: {self._used_bytes()} bytes are in use"
            )
            raise StateError("full", message)

    def _used_bytes(self) -> int:
        holding = self._holding
        used_bytes = 0 if holding.left is None else holding.left.weight
        if holding.document is not None:
            used_bytes += max(holding.document.size_bytes, holding.document.mirror.weight)
        return used_bytes

    def _written(self, change: Change) -> Written:
        return Written(change.update, change.client, change.upto, self._holding.epoch)

    # ── Rumors ───────────────────────────────────────────────────────────────

    def hear(self, update: bytes, client: int, upto: int, epoch: int) -> MergedKeys:
        """Take one write of another node; DocumentError if it is none, and then nothing has changed.

        A write of a later epoch is a gap: an exchange moves up to it. One of the epoch before counts
        while that document is still read.
        """
        check_epoch(epoch)
        holding = self._holding
        if epoch > holding.epoch and self.empty:
            self._move_up(epoch)
        if epoch != holding.epoch or epoch == 0:
            if holding.earlier(epoch) is None:
                return MergedKeys((), gap=True)
            holding.merge_earlier(update)
            return MergedKeys(holding.changed(), gap=not self.has(epoch, client, upto))
        self._take(update, upto)
        return MergedKeys(holding.changed(), gap=not holding.open().has(client, upto))

    def _take(self, update: bytes, upto: int) -> None:
        """Merge an update if its predecessor is here, and those that waited for it."""
        holding = self._holding
        try:
            head = beginning(update)
        except VectorError as error:
            raise DocumentError("corrupt", str(error)) from error
        if head is not None and not self._has_all(head, update):
            holding.early.keep(head, update, upto)
            return
        holding.merge(update, upto=upto, head=head)
        if len(holding.early):
            self._take_early()

    def _take_early(self) -> None:
        """Merge what has waited for what is here now."""
        holding = self._holding
        for client in holding.early.clients():
            while found := holding.early.take(client, reached := holding.open().upto(client)):
                if not self._has_all((client, reached), found[0]):
                    holding.early.keep((client, reached), *found)
                    break
                holding.merge(found[0], upto=found[1])

    def _has_all(self, head: tuple[int, int], update: bytes) -> bool:
        """Return whether everything is here that an update follows: else it would be taken by halves."""
        document = self._holding.open()
        try:
            return all(document.has(*known) for known in (head, *origins(update)))
        except VectorError as error:
            raise DocumentError("corrupt", str(error)) from error

    # ── Exchanges ────────────────────────────────────────────────────────────

    def summary(self, epoch: int) -> bytes:
        """Return what this side holds, after moving up to `epoch` if it is later; DocumentError."""
        check_epoch(epoch)
        if epoch > self.epoch:
            self._move_up(epoch)
        return envelope.pack(self._summary())

    def _summary(self) -> Summary:
        document = self._holding.document
        vector = _NOTHING_SEEN if document is None else document.summary()
        return Summary(self.epoch, self._me, self.digest, vector)

    def missing(self, epoch: int, summary: bytes) -> bytes:
        """Return what a side that said `summary` lacks; b"" if nothing. DocumentError for nonsense.

        Both may have seen the same and hold something else: deletions move no vector, and what is
        returned brings them. If that is so again and again though they have exchanged, one copy is
        damaged: the side with the smaller name is told to begin anew from the whole of the other.
        """
        theirs = envelope.read_summary(summary)
        check_epoch(epoch)
        if max(epoch, theirs.epoch) > self.epoch:
            self._move_up(max(epoch, theirs.epoch))
        document = self._holding.document
        if document is None:
            return b""
        if theirs.epoch < self.epoch:
            return self._update(_NOTHING_SEEN)
        try:
            seen = read_vector(theirs.vector)
        except VectorError as error:
            raise DocumentError("corrupt", str(error)) from error
        if seen != read_vector(document.summary()):
            return self._update(theirs.vector)
        if theirs.digest == document.digest:
            return b""
        oddity = (theirs.digest, document.digest, dict(seen))
        if self._odd.again(theirs.name, oddity) and theirs.name < self._me:
            return self._update(_NOTHING_SEEN, whole=True)
        return self._update(theirs.vector)

    def _update(self, vector: bytes, *, whole: bool = False) -> bytes:
        document = self._holding.open()
        update = document.missing(vector)
        return envelope.pack(Update(self.epoch, tuple(document.owners()), update, whole))

    def merge(self, epoch: int, update: bytes) -> Sequence[str]:
        """Take in what a peer sent, moving up to a later epoch; return the keys that changed.

        DocumentError if it makes no sense; then at most the epoch has changed.
        """
        check_epoch(epoch)
        if not update:
            return ()
        said = envelope.read_update(update)
        holding = self._holding
        if said.epoch > holding.epoch:
            self._move_up(said.epoch)
        if said.epoch == holding.epoch:
            if said.whole:
                # What is not in it is left over, and written again if nobody else has it: the peer's
                # copy need not be the better one.
                holding.begin_again(said.update)
                self._carry_own()
            else:
                holding.open().declare(said.owners)
                holding.merge(said.update)
                self._take_early()
        elif holding.earlier(said.epoch) is not None:
            holding.merge_earlier(said.update)
        return holding.changed()

    def _move_up(self, epoch: int) -> None:
        self._holding.move_up(epoch)
        self._tending.begun_ms = None
        self._odd.clear()
        self._carry_own()

    def _carry_own(self) -> None:
        """Write own entries again at once, as far as they go at once; `tend` does the rest."""
        self._tending.carry_own()

    # ── Tending ──────────────────────────────────────────────────────────────

    def tend(self, *, wall_ms: int, now_ms: int, living: Sequence[str]) -> Tended:
        """Do what an owner does without being asked: see
        `document_upkeep`. At most 3 ms of work a call.
        """
        holding = self._holding
        holding.see(wall_ms)
        done = self._tending.tend(now_ms=now_ms, living=living)
        writes = tuple(self._written(change) for change in done.writes)
        return Tended(holding.changed(), writes, done.deleted, done.due_ms)

    # ── The disk ─────────────────────────────────────────────────────────────

    def dump(self) -> bytes:
        """Return all that is held, for the disk."""
        holding = self._holding
        left = () if holding.left is None else holding.left.slots()
        document = holding.document
        return envelope.pack_kept(
            envelope.kept_of(
                holding.epoch,
                self._tending.begun_ms or 0,
                () if document is None else document.owners(),
                b"" if document is None else document.dump(),
                [(slot.root, slot.name, slot.value) for slot in left],
            )
        )

    def load(self, content: bytes) -> Sequence[str]:
        """Take in what an earlier life kept; return the keys that changed. DocumentError if damaged.

        It is merged like another node's: this life writes under a client id of its own.
        """
        kept = envelope.read_kept(content)
        holding = self._holding
        if kept.epoch > holding.epoch:
            self._move_up(kept.epoch)
        if kept.update and kept.epoch == holding.epoch:
            holding.open().declare(kept.owners)
            holding.merge(kept.update)
            self._tending.begun_ms = kept.begun_ms or None
        elif kept.update:
            holding.take_left(kept.update, kept.owners)
        if kept.left:
            holding.take_left_slots([Slot.at(*place) for place in kept.left])
        self._carry_own()
        return holding.changed()


def _check_sizes(key: str, value: bytes | None) -> None:
    if COPY_MARK in key:
        raise ValueError("a key holds no NUL")
    if not 0 < len(key.encode()) <= KEY_BYTES_MAX:
        raise StateError("too_large", f"a key has 1 to {KEY_BYTES_MAX} bytes")
    if value is not None and len(value) > VALUE_BYTES_MAX:
        raise StateError("too_large", f"a value has at most {VALUE_BYTES_MAX} bytes")
