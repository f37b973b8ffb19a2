"""Document: arrays of entries, one array per owner, that merge in any order (Yjs, through pycrdt).

The only place that knows the library (Yjs's algorithm, through pycrdt). What it makes sure of:

- Only bytes are written, under a name: `[name, bytes]`. To replace an entry is to delete it and append
  the new one in one transaction: so all that is deleted lies in one piece and is forgotten, and a million
  updates leave a document as large as its contents. Nested maps, or several writers in one array, leak.
- An array is written by its owner only, and every document is written under a fresh client id: one that is
  used again after its state was lost diverges without a trace.
- Whatever a peer sent, a call returns or raises DocumentError. The library panics on some of it, with an
  exception that is no `Exception`, and may go on panicking over what it keeps of it: a document that
  failed in any other way than by refusing to read an update is `broken`, and begun anew by its owner.
- Nothing is written while the library reports changes; they are gathered, and read afterwards.

An array that turns up in an update and was not declared is found afterwards and read once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from smg_mesh.crdt.documents.document_mirror import Mirror, Row
from smg_mesh.crdt.documents.document_slot import Slot
from smg_mesh.crdt.documents.state_vector import VectorError, beginning, read_vector

if TYPE_CHECKING:
    from pycrdt import _pycrdt as library

CHANGE_ENTRIES_MAX: Final = 32
"""Put in one transaction. Appending walks over what the same transaction has appended, so that a thousand
entries in one cost 60 µs each, and in lots of 32 cost 2."""
CLIENT_BITS: Final = 53
_ROOTS_MAX: Final = 4096
_ROOT_CHARS_MAX: Final = 64
_EMPTY_VECTOR: Final = b"\0"

T = TypeVar("T")


class DocumentError(Exception):
    """Bytes or names that a document cannot take. `reason` is a word for a counter."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason


class Change(msgspec.Struct, frozen=True):
    """Result of one transaction here: the bytes for the others, and up
    to which entry we have written.
    """

    update: bytes
    client: int
    upto: int
    added: Sequence[Slot]
    dropped: Sequence[Slot]


class Merged(msgspec.Struct, frozen=True):
    """Entries that an update of others brought and took, in the order of the document."""

    added: Sequence[Slot]
    dropped: Sequence[Slot]


class _Reports:
    """What the library reports while it commits. It knows no document, so that nothing goes in circles:
    the collector does not see references that the library keeps."""

    __slots__ = ("deltas", "failed", "update", "writing")

    def __init__(self) -> None:
        self.writing = False
        self.update = b""
        self.deltas: list[tuple[str, Sequence[Mapping[str, Any]]]] = []
        self.failed = False

    def committed(self, event: "library.TransactionEvent") -> None:
        if self.writing:
            self.update = event.update

    def changed(self, root: str, event: Any) -> None:
        if self.writing:
            return
        try:
            self.deltas.append((root, event.delta))
        except (
            BaseException
        ):  # The library would lose an error raised here; `failed` says it instead.
            self.failed = True


class Document:
    """One document, written under `client_id`, which no life of any node ever used before."""

    def __init__(self, client_id: int) -> None:
        assert 0 <= client_id < 1 << CLIENT_BITS
        # Imported with the first document: it costs several megabytes, which a node alone does not pay.
        from pycrdt import _pycrdt as library

        self.client: Final = client_id
        self.broken = False
        """A call failed inside the library: take what can be had, and begin anew."""
        self.mirror: Final = Mirror()
        self._reports = _Reports()
        self._doc = library.Doc(client_id, None, None)
        self._subscriptions = [self._doc.observe(self._reports.committed)]
        self._arrays: dict[str, library.Array] = {}
        self._clocks: dict[int, int] | None = {}
        self._gapped = False
        self._size_bytes = 2

    # ── Reading ──────────────────────────────────────────────────────────────

    @property
    def digest(self) -> bytes:
        """16 bytes over contents: equal vectors with different contents are told apart."""
        return self.mirror.digest

    @property
    def size_bytes(self) -> int:
        """About how long the encoded document is, from above; exact after a `dump`."""
        return self._size_bytes

    @property
    def clients(self) -> int:
        """How many lives of nodes have written."""
        return len(self._vector())

    @property
    def deletions(self) -> int:
        """How many entries were written and are there no more: equal where the same was merged."""
        return sum(self._vector().values()) - self.mirror.live

    def owners(self) -> Sequence[str]:
        """Return whose arrays there are, sorted; they may be empty."""
        return sorted(self._arrays)

    def entries(self, owner: str) -> Mapping[str, bytes]:
        """Return the bytes under each name in one array; of a name that lies there twice the later."""
        row = self.mirror.rows.get(owner)
        return {} if row is None else {slot.name: slot.value for slot in row.items if slot}

    def get(self, owner: str, name: str) -> bytes | None:
        """Return the bytes under one name in one array."""
        return self.entries(owner).get(name)

    def has(self, client: int, upto: int) -> bool:
        """Return whether every entry of that writer up to there was seen, deleted or not."""
        return self.upto(client) >= upto

    def upto(self, client: int) -> int:
        """Return up to which entry a writer is known without a gap."""
        return self._vector().get(client, 0)

    # ── Writing ──────────────────────────────────────────────────────────────

    def change(
        self, owner: str, puts: Mapping[str, bytes], drops: Collection[Slot] = ()
    ) -> Change | None:
        """Write into the array of `owner`, who is us; None if that changes nothing.

        `puts`, at most `CHANGE_ENTRIES_MAX`, replace whatever lies under their names. DocumentError
        ("panic") if the library failed: the document is `broken`, its mirror as it was.
        """
        assert len(puts) <= CHANGE_ENTRIES_MAX
        if owner not in self._arrays:
            self._declare((owner,))
        row = self.mirror.rows[owner]
        gone = list(drops)
        fresh = dict(puts)
        for name, value in puts.items():
            for slot in row.named(name):
                if slot.value == value and name in fresh:
                    del fresh[
                        name
                    ]  # it is there: this one may stay, and what else has the name goes
                elif slot not in gone:
                    gone.append(slot)
        if not gone and not fresh:
            return None
        places = row.places(gone)
        update = self._write(row, places, fresh)
        added = row.replace(places, fresh)
        self._size_bytes += len(update) - self.mirror.count(added, gone)
        vector = self._vector()
        upto = vector.get(self.client, 0) + len(fresh)
        if fresh:
            vector[self.client] = upto
        return Change(update, self.client, upto, added, gone)

    def _write(self, row: Row, places: Sequence[int], fresh: Mapping[str, bytes]) -> bytes:
        """Delete and append in one transaction; return the bytes of it."""
        array, length = self._arrays[row.name], len(row.items)

        def work(txn: "library.Transaction") -> None:
            if array.len(txn) != length:
                raise IndexError("the mirror of an array is not as long as the array")
            for place in reversed(places):
                array.remove_range(txn, place, 1)
            for at, (name, value) in enumerate(fresh.items(), length - len(places)):
                array.insert(txn, at, [name, value])

        self._reports.writing = True
        try:
            self._guard(work)
        finally:
            self._reports.writing = False
        return self._reports.update

    # ── Merging ──────────────────────────────────────────────────────────────

    def merge(
        self, update: bytes, *, upto: int | None = None, head: tuple[int, int] | None = None
    ) -> Merged:
        """Take in what others wrote; `upto` is what the writer of a single change said of it.

        `head` is its `beginning`, if the caller has it at hand.

        DocumentError("corrupt") if it is no update: nothing has changed. DocumentError("panic") if the
        library failed over it: the document is `broken`, its mirror as it was.
        """
        reports = self._reports
        reports.deltas = []
        self._guard(lambda txn: self._doc.apply_update(txn, update))
        if reports.failed:
            self.broken = True
            raise DocumentError("panic", "what the library reported cannot be read")
        added: list[Slot] = []
        dropped: list[Slot] = []
        inserted = 0
        for name, delta in reports.deltas:
            inserted += self.mirror.rows[name].splice(delta, added, dropped)
        reports.deltas = []
        if upto is None or not inserted:
            inserted += self._find_arrays(added)
        gone_bytes = self.mirror.count(added, dropped)
        if added or dropped:
            self._size_bytes += len(update) - gone_bytes
        self._advance(head if head or upto is None else _beginning(update), inserted, upto)
        return Merged(added, dropped)

    def declare(self, owners: Sequence[str]) -> None:
        """Make the arrays of these owners known before an update that has them: it is read faster."""
        missing = [name for name in owners if name not in self._arrays]
        room = _ROOTS_MAX - len(self._arrays)
        self._declare([name for name in missing if len(name) <= _ROOT_CHARS_MAX][:room])

    def summary(self) -> bytes:
        """Return the vector: up to which entry of each writer this document goes."""
        return self._guard(self._doc.get_state)

    def missing(self, summary: bytes) -> bytes:
        """Return what a document with that vector lacks, every deletion included."""
        return self._guard(lambda txn: self._doc.get_update(txn, summary))

    def dump(self) -> bytes:
        """Return the whole document, as an update; 0.2 ms for a large one."""
        update = self.missing(_EMPTY_VECTOR)
        self._size_bytes = len(update)
        return update

    # ── Inside ───────────────────────────────────────────────────────────────

    def _guard(self, work: "Callable[[library.Transaction], T]") -> T:
        """Do `work` in a transaction of its own; DocumentError if it fails."""
        try:
            txn = self._doc.create_transaction()
            try:
                try:
                    return work(txn)
                finally:
                    txn.commit()
            finally:
                txn.drop()
        except ValueError as error:
            raise DocumentError("corrupt", str(error)) from error
        except (KeyboardInterrupt, SystemExit):
            raise
        except (
            BaseException
        ) as error:  # The library panics on foreign bytes; a panic is no Exception.
            self.broken = True
            raise DocumentError("panic", f"{type(error).__name__}: {error}") from error

    def _declare(self, owners: Sequence[str]) -> None:
        if not owners:
            return
        doc, changed = self._doc, self._reports.changed
        arrays = self._guard(lambda txn: [doc.get_or_insert_array(txn, name) for name in owners])
        for name, array in zip(owners, arrays, strict=True):
            self._arrays[name] = array
            self.mirror.rows[name] = Row(name)
            self._subscriptions.append(array.observe(partial(changed, name)))

    def _find_arrays(self, added: list[Slot]) -> int:
        """Read the arrays that an update brought undeclared; return how many items they have."""
        names = self._guard(lambda txn: sorted(self._doc.roots(txn)))
        known = len(self._arrays)
        if len(names) == known:
            return 0
        self.declare(names)
        inserted = 0
        for name in list(self._arrays)[known:]:
            row, array = self.mirror.rows[name], self._arrays[name]
            row.items = [row.read(item) for item in self._items(array)]
            added += [slot for slot in row.items if slot is not None]
            inserted += len(row.items)
        return inserted

    def _items(self, array: "library.Array") -> list[Any]:
        return self._guard(lambda txn: [array.get(txn, at) for at in range(array.len(txn))])

    def _vector(self) -> dict[int, int]:
        if self._clocks is None:
            self._clocks = dict(read_vector(self.summary()))
        return self._clocks

    def _advance(self, head: tuple[int, int] | None, inserted: int, upto: int | None) -> None:
        """Keep the vector up to date where that is certain; else it is read again when needed."""
        clocks, self._clocks = self._clocks, None
        if clocks is None or upto is None:
            return
        if head == (0, 0):
            self._clocks = clocks
        elif head is not None and clocks.get(head[0], 0) == head[1] == upto - inserted:
            clocks[head[0]] = upto
            self._clocks = None if self._gapped else clocks
        elif head is not None and clocks.get(head[0], 0) <= head[1]:
            self._gapped = True  # the library keeps it, and adds it to a later update


def _beginning(update: bytes) -> tuple[int, int] | None:
    try:
        return beginning(update)
    except VectorError:
        return None
